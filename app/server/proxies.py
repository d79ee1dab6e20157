"""Trusted proxies: whose `X-Forwarded-For` is believed (INF_TRUSTED_PROXIES), and a warning.

uvicorn replaces the address of a connection from a trusted proxy by the one that the proxy states.
A proxy that is not named keeps its own: everyone behind it then shares the limit of failed sign-ins
of one address. The server warns once for each address that sends the header and is not named.
"""

import ipaddress
import logging
import os

from starlette.requests import HTTPConnection
from starlette.types import ASGIApp, Receive, Scope, Send

from db.errors import BadInput

log = logging.getLogger("inf.app")
VARIABLE = "INF_TRUSTED_PROXIES"
EVERYONE = "*"
MAX_WARNINGS = 20  # of addresses: anyone can send the header


def trusted_proxies() -> str:
    """INF_TRUSTED_PROXIES as uvicorn takes it. Raises BadInput for what is no address or network.

    uvicorn would take a host name as a literal that no connection ever has.
    """
    named = [
        one.strip() for one in os.environ.get("INF_TRUSTED_PROXIES", "").split(",") if one.strip()
    ]
    if named == [EVERYONE]:
        return EVERYONE
    for one in named:
        try:
            ipaddress.ip_network(one)
        except ValueError as error:
            raise BadInput(
                f"{VARIABLE} names {one!r}",
                "give addresses or networks, such as 127.0.0.1,10.0.0.0/8 (not host names)",
                code="proxy_address_invalid",
            ) from error
    return ",".join(named)


def note_at_start(*, has_accounts: bool, is_local: bool) -> str:
    """What whoever starts the server should know of its proxies; "" if there is nothing."""
    named = trusted_proxies()
    if named == EVERYONE:
        return (
            f"{VARIABLE}=*: anyone can state any address in X-Forwarded-For, so limits of failed "
            "sign-ins by address can be dodged; name your proxies instead"
        )
    if named or not has_accounts or (is_local and not os.environ.get("INF_PUBLIC_URL")):
        return ""
    return (
        f"no trusted proxy ({VARIABLE} is not set): X-Forwarded-For is ignored. Behind a proxy, "
        "name its address there; otherwise everyone has the proxy's address, and wrong passwords "
        "of one person count for all"
    )


class WarnOfProxies:
    """Log a warning when X-Forwarded-For comes from an address that is not a trusted proxy."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app
        self.warned: set[str] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] in ("http", "websocket"):
            self._look_at(HTTPConnection(scope))
        await self.app(scope, receive, send)

    def _look_at(self, request: HTTPConnection) -> None:
        sender = ignored_sender(request)
        if sender is None or sender in self.warned or len(self.warned) >= MAX_WARNINGS:
            return
        self.warned.add(sender)
        log.warning(
            "X-Forwarded-For from %s is ignored, as %s does not name this address. If it is your "
            "proxy, everyone behind it shares its limit of failed sign-ins: start the server with "
            "%s=%s",
            sender,
            VARIABLE,
            VARIABLE,
            sender,
        )


def ignored_sender(request: HTTPConnection) -> str | None:
    """The address whose X-Forwarded-For was not believed; None if it has none or was believed.

    Where it was believed, the connection's address is one that the header states. What an untrusted
    sender makes look so misses its warning and gains nothing.
    """
    stated = ",".join(request.headers.getlist("x-forwarded-for"))
    if not stated.strip():
        return None
    address = request.client.host if request.client else "a Unix socket"
    return None if any(_host(one) == address for one in stated.split(",")) else address


def _host(stated: str) -> str:
    """The host of `host`, `host:port`, `[host]` or `[host]:port`."""
    one = stated.strip()
    if one.startswith("["):
        return one[1:].partition("]")[0]
    return one.partition(":")[0] if one.count(":") == 1 else one
