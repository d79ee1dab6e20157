"""The endpoints that the environment or a recipe names, each with the SDK's client.

OPENAI_BASE_URL (several separated by commas) and OPENAI_API_KEY, or AZURE_OPENAI_ENDPOINT,
AZURE_OPENAI_API_KEY and OPENAI_API_VERSION. The SDK's own retries are off: they do not know our
gate.
"""

import os
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from openai import AsyncAzureOpenAI, AsyncOpenAI, DefaultAioHttpClient

from curation.providers.endpoints import Endpoint
from db.errors import BadInput, ProviderError

VENDOR_URL: Final = "https://api.openai.com/v1"


def endpoint_urls(endpoints: Sequence[str] = ()) -> list[str]:
    """The addresses of a run's endpoints: the recipe's, else those of the environment.

    Raises BadInput for an address that is none.
    """
    if not endpoints and (azure := os.environ.get("AZURE_OPENAI_ENDPOINT")):
        return [azure]
    given = list(endpoints) or (os.environ.get("OPENAI_BASE_URL") or VENDOR_URL).split(",")
    urls = list(dict.fromkeys(url.strip().rstrip("/") for url in given if url.strip()))
    for url in urls:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise BadInput(f"{url!r} is no address of a server: write http://HOST:PORT/v1")
    return urls


def make_endpoints(endpoints: Sequence[str] = ()) -> list[Endpoint]:
    """The endpoints with their clients. Raises ProviderError without a key, BadInput."""
    if not endpoints and os.environ.get("AZURE_OPENAI_ENDPOINT"):
        return [Endpoint(public_url(endpoint_urls()[0]), _azure_client(), own_server=False)]
    key = os.environ.get("OPENAI_API_KEY")
    if not key and not endpoints and not os.environ.get("OPENAI_BASE_URL"):
        raise ProviderError(
            "no OPENAI_API_KEY in the environment: set it, or OPENAI_BASE_URL for a server of your "
            "own, or use --provider offline"
        )
    return [
        Endpoint(
            public_url(url),
            AsyncOpenAI(
                api_key=key or "none",
                base_url=url,
                http_client=DefaultAioHttpClient(),
                max_retries=0,
            ),
            own_server="api.openai.com" not in url,
        )
        for url in endpoint_urls(endpoints)
    ]


def public_url(url: str) -> str:
    """An address without the user and password that it may hold, as it is stored and shown."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return parts._replace(netloc=host, scheme=parts.scheme.lower(), query="").geturl()


def _azure_client() -> AsyncAzureOpenAI:
    key, version = os.environ.get("AZURE_OPENAI_API_KEY"), os.environ.get("OPENAI_API_VERSION")
    if not key or not version:
        raise ProviderError(
            "AZURE_OPENAI_ENDPOINT is set: set AZURE_OPENAI_API_KEY and OPENAI_API_VERSION, too"
        )
    return AsyncAzureOpenAI(
        azure_endpoint=os.environ["AZURE_OPENAI_ENDPOINT"],
        api_key=key,
        api_version=version,
        http_client=DefaultAioHttpClient(),
        max_retries=0,
    )
