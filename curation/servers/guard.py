"""Which addresses a connection may reach, decided for each socket before it connects.

A check of the URL alone is not enough: a name may point elsewhere a moment later (DNS rebinding), a
server may redirect, and an address has many spellings (`2130706433`, `0x7f.1`, `::ffff:127.0.0.1`).
So the address that is connected to is the one that is checked; `require_reachable` only reports it
earlier, with a remedy.
"""

import ipaddress
import socket
from typing import Any, Final
from urllib.parse import urlsplit

import aiohttp

from db.errors import ProviderError

# Where clouds serve credentials to whoever asks from inside: AWS, GCP, Azure and most others on
# link-local addresses, Alibaba, Azure's wire server and Oracle on their own.
METADATA: Final = tuple(
    map(
        ipaddress.ip_network,
        (
            *("169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32"),
            *("fe80::/10", "fd00:ec2::254/128", "fd20:ce::254/128"),
        ),
    )
)
# IPv6 that carries an IPv4 address: network, and how many bits follow that address.
CARRIERS: Final = tuple(
    (ipaddress.IPv6Network(network), after)
    for network, after in (
        ("::ffff:0:0/96", 0),  # mapped
        ("::ffff:0:0:0/96", 0),  # translated
        ("::/96", 0),  # compatible, deprecated
        ("64:ff9b::/96", 0),  # NAT64
        ("64:ff9b:1::/48", 0),  # a network's own NAT64, read as with /96
        ("2002::/16", 80),  # 6to4
    )
)
REASONS: Final = {
    "metadata": "an address at which clouds serve credentials",
    "private": "an address of a private network",
    "many": "no address of a single server",
}
CONNECTIONS: Final = 1000  # as the SDK's own client
KEEPALIVE_SECONDS: Final = 5.0


def address_problem(address: str, *, private: bool) -> str | None:
    """Why a connection may not reach an IP address, as a key of REASONS; None if it may."""
    ip = _carried(ipaddress.ip_address(address.partition("%")[0]))
    if any(ip in network for network in METADATA if network.version == ip.version):
        return "metadata"
    if ip.is_multicast or ip == ipaddress.ip_address("255.255.255.255"):
        return "many"
    is_public = ip.is_global and not (ip.version == 6 and ip.is_site_local)
    return None if private or is_public else "private"


def _carried(
    ip: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """The IPv4 address that an IPv6 address stands for, where it does; `::` and `::1` do not."""
    if isinstance(ip, ipaddress.IPv6Address) and int(ip) > 1:
        for network, after in CARRIERS:
            if ip in network:
                return ipaddress.IPv4Address(int(ip) >> after & 0xFFFFFFFF)
    return ip


def addresses_of(url: str) -> list[str]:
    """The addresses that the host of a URL has now; empty where its name has none.

    The system's resolver reads every spelling of a number as the socket would.
    """
    parts = urlsplit(url)
    try:
        host = (parts.hostname or "").rstrip(".")
        found = socket.getaddrinfo(host, parts.port or 443, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return [str(address[0]) for *_, address in found]


def is_private(url: str) -> bool:
    """Whether the host of a URL is, now, in a private network."""
    return any(address_problem(each, private=False) == "private" for each in addresses_of(url))


def require_reachable(
    url: str,
    *,
    private: bool,
    by: str = "connections change NAME private=yes",
    server: str = "a model server",
) -> None:
    """Raise ProviderError where the host of a URL has an address that is refused.

    by: the operation that allows a private one; server: what the address is of.
    """
    for address in addresses_of(url):
        problem = address_problem(address, private=private)
        if problem is not None:
            raise ProviderError(
                f"{urlsplit(url).hostname} is {REASONS[problem]} ({address})",
                f"the store's owner can allow it with `{by}`"
                if problem == "private"
                else f"give the address of {server}",
                code=f"server_address_{problem}",
            )


def guarded_session(*, private: bool, ssl: Any = True) -> aiohttp.ClientSession:
    """A session of aiohttp whose sockets connect to allowed addresses only."""

    def guarded_socket(info: Any) -> socket.socket:
        family, kind, protocol, _, address = info
        problem = address_problem(str(address[0]), private=private)
        if problem is not None:
            raise PermissionError(f"{address[0]} is {REASONS[problem]}")
        return socket.socket(family=family, type=kind, proto=protocol)

    connector = aiohttp.TCPConnector(
        ssl=ssl,
        limit=CONNECTIONS,
        keepalive_timeout=KEEPALIVE_SECONDS,
        socket_factory=guarded_socket,
    )
    return aiohttp.ClientSession(connector=connector)
