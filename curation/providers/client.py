"""The SDK's client of the server that the environment names.

OPENAI_BASE_URL and OPENAI_API_KEY (or AZURE_OPENAI_ENDPOINT, AZURE_OPENAI_API_KEY and
OPENAI_API_VERSION) choose it. The SDK's own retries are off: they do not know our gate.
"""

import os

from openai import AsyncAzureOpenAI, AsyncOpenAI, DefaultAioHttpClient

from db.errors import ProviderError


def make_client() -> tuple[AsyncOpenAI, bool]:
    """The SDK's client, and whether the server is not the vendor's."""
    endpoint = os.environ.get("AZURE_OPENAI_ENDPOINT")
    http_client = DefaultAioHttpClient()
    if endpoint:
        key, version = os.environ.get("AZURE_OPENAI_API_KEY"), os.environ.get("OPENAI_API_VERSION")
        if not key or not version:
            raise ProviderError(
                "AZURE_OPENAI_ENDPOINT is set: set AZURE_OPENAI_API_KEY and OPENAI_API_VERSION, too"
            )
        return (
            AsyncAzureOpenAI(
                azure_endpoint=endpoint,
                api_key=key,
                api_version=version,
                http_client=http_client,
                max_retries=0,
            ),
            False,
        )
    base_url, key = os.environ.get("OPENAI_BASE_URL"), os.environ.get("OPENAI_API_KEY")
    if not key and not base_url:
        raise ProviderError(
            "no OPENAI_API_KEY in the environment: set it, or OPENAI_BASE_URL for a server of your "
            "own, or use --provider offline"
        )
    own = bool(base_url) and "api.openai.com" not in str(base_url)
    return (
        AsyncOpenAI(
            api_key=key or "none", base_url=base_url, http_client=http_client, max_retries=0
        ),
        own,
    )
