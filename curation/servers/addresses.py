"""Addresses of servers: those of the environment or a recipe, and how a connection's is written."""

import ipaddress
import os
import re
from collections.abc import Sequence
from typing import Final
from urllib.parse import urlsplit

from db.errors import BadInput

VENDOR_URL: Final = "https://api.openai.com/v1"
OWN_NAMES: Final = (".local", ".internal", ".lan", ".home", ".home.arpa", ".localdomain", ".test")
_ALONE: Final = "https://HOST/v1 alone, and give the key as the connection's secret"
HOST = re.compile(r"[a-z0-9._-]+|\[[0-9a-f:.]+\]")


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
            raise _no_address(repr(url))
    return urls


def checked_url(url: str, *, what: str = "") -> str:
    """The address of a connection, in lower case up to its path. Raises BadInput.

    what: how another address than a connection's is written.

    It is stored and shown: a user, a password, a query or a fragment would be, too. Hosts are plain
    ASCII, so that what is shown is what is looked up.
    """
    text = url.strip().rstrip("/")
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:
        raise _no_address("that") from None
    if parts.username is not None or parts.query or parts.fragment or "?" in text or "#" in text:
        raise _no_address(
            "an address with a user, password or query",
            f"write {what or _ALONE}",
        )
    host = parts.netloc.rpartition("@")[2].lower()
    name = host.removesuffix(f":{port}") if port is not None else host
    is_plain = text.isascii() and text.isprintable() and "\\" not in text and " " not in text
    if parts.scheme not in ("http", "https") or not is_plain or not HOST.fullmatch(name):
        raise _no_address(repr(text), f"write {what or 'http://HOST:PORT/v1'}")
    return parts._replace(netloc=host).geturl()


def _no_address(what: str, remedy: str = "write http://HOST:PORT/v1") -> BadInput:
    return BadInput(f"{what} is no address of a server", remedy, code="server_address_invalid")


def public_url(url: str) -> str:
    """An address without the user and password that it may hold, as it is stored and shown."""
    parts = urlsplit(url)
    host = parts.netloc.rpartition("@")[2].lower()
    return parts._replace(netloc=host, scheme=parts.scheme.lower(), query="").geturl()


def published_url(url: str) -> str:
    """An address as a dataset card names it: what is not in the public internet stays unnamed."""
    host = (urlsplit(url).hostname or "").rstrip(".")
    try:
        is_public = ipaddress.ip_address(host).is_global
    except ValueError:
        is_public = "." in host and not host.endswith(OWN_NAMES)
    return public_url(url) if is_public else "a server of its makers' own network"


def server_urls(endpoints: Sequence[str] = ()) -> list[str]:
    """The addresses as they are stored and shown."""
    return [public_url(url) for url in endpoint_urls(endpoints)]
