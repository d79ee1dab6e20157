"""The endpoints that the environment or a recipe names, each with the SDK's client.

OPENAI_BASE_URL (several separated by commas) and OPENAI_API_KEY, or AZURE_OPENAI_ENDPOINT,
AZURE_OPENAI_API_KEY and OPENAI_API_VERSION. The SDK's own retries are off: they do not know our
gate.
"""

import os
from collections.abc import Sequence

from openai import AsyncAzureOpenAI, AsyncOpenAI, DefaultAioHttpClient

from curation.providers.addresses import endpoint_urls, public_url
from curation.providers.endpoints import Endpoint
from db.errors import ProviderError


def make_endpoints(endpoints: Sequence[str] = ()) -> list[Endpoint]:
    """The endpoints with their clients. Raises ProviderError without a key, BadInput."""
    if not endpoints and os.environ.get("AZURE_OPENAI_ENDPOINT"):
        return [Endpoint(public_url(endpoint_urls()[0]), _azure_client(), own_server=False)]
    key = os.environ.get("OPENAI_API_KEY")
    if not key and not endpoints and not os.environ.get("OPENAI_BASE_URL"):
        raise ProviderError(
            "no OPENAI_API_KEY in the environment",
            "set it, or OPENAI_BASE_URL for a server of your own, or use `provider=offline`",
            code="server_key_missing",
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


def _azure_client() -> AsyncAzureOpenAI:
    key, version = os.environ.get("AZURE_OPENAI_API_KEY"), os.environ.get("OPENAI_API_VERSION")
    if not key or not version:
        raise ProviderError(
            "AZURE_OPENAI_ENDPOINT is set",
            "set AZURE_OPENAI_API_KEY and OPENAI_API_VERSION, too",
            code="azure_endpoint_unsupported",
        )
    return AsyncAzureOpenAI(
        azure_endpoint=os.environ["AZURE_OPENAI_ENDPOINT"],
        api_key=key,
        api_version=version,
        http_client=DefaultAioHttpClient(),
        max_retries=0,
    )
