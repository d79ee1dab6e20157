"""The addresses of a run's servers, from the recipe or the environment. Pure but for that."""

import os
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from db.errors import BadInput

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
            raise BadInput(
                f"{url!r} is no address of a server",
                "write http://HOST:PORT/v1",
                code="server_address_invalid",
            )
    return urls


def public_url(url: str) -> str:
    """An address without the user and password that it may hold, as it is stored and shown."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return parts._replace(netloc=host, scheme=parts.scheme.lower(), query="").geturl()


def server_urls(endpoints: Sequence[str] = ()) -> list[str]:
    """The addresses as they are stored and shown."""
    return [public_url(url) for url in endpoint_urls(endpoints)]
