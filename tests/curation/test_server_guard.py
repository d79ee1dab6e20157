"""Attacks on where a connection's requests go: metadata, private networks, in every spelling."""

import asyncio
import socket
from collections.abc import Iterator
from typing import Any

import aiohttp
import pytest
from aiohttp import web
from openai_server import Server

from curation.servers.addresses import checked_url, published_url
from curation.servers.guard import address_problem, guarded_session, require_reachable
from db.errors import BadInput, ProviderError

METADATA = (
    *("169.254.169.254", "169.254.170.2", "100.100.100.200", "168.63.129.16", "192.0.0.192"),
    *("fd00:ec2::254", "fd20:ce::254", "fe80::1%eth0", "::ffff:169.254.169.254"),
    *("64:ff9b::a9fe:a9fe", "2002:a9fe:a9fe::1", "::a9fe:a9fe"),
    *("64:ff9b:1::a9fe:a9fe", "::ffff:0:a9fe:a9fe"),
)
PRIVATE = (
    *("127.0.0.1", "127.8.9.10", "10.1.2.3", "172.16.0.1", "192.168.0.1", "0.0.0.0"),
    *("100.64.0.1", "198.18.0.1", "::1", "::", "fc00::1", "fd12:3456::1", "::ffff:10.0.0.1"),
    *("64:ff9b::7f00:1", "2002:7f00:1::", "::7f00:1"),
    *("::ffff:0:7f00:1", "fec0::1"),
)
PUBLIC = ("93.184.216.34", "2606:2800:220:1:248:1893:25c8:1946", "64:ff9b::5db8:d822")


@pytest.mark.parametrize("address", METADATA)
def test_a_metadata_service_is_refused_even_where_private_networks_are_allowed(
    address: str,
) -> None:
    assert address_problem(address, private=False) == "metadata"
    assert address_problem(address, private=True) == "metadata"


@pytest.mark.parametrize("address", PRIVATE)
def test_a_private_address_needs_permission(address: str) -> None:
    assert address_problem(address, private=False) == "private"
    assert address_problem(address, private=True) is None


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_is_allowed(address: str) -> None:
    assert address_problem(address, private=False) is None


@pytest.mark.parametrize("address", ["224.0.0.1", "ff02::1", "255.255.255.255"])
def test_what_is_no_single_host_is_refused(address: str) -> None:
    assert (
        address_problem(address, private=True) == "metadata"
        or address_problem(address, private=True) == "many"
    )


@pytest.mark.parametrize(
    "spelling",
    [
        *("127.1", "2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "127.0.0.1."),
        *("localhost", "LOCALHOST", "localhost.", "[::1]", "[::ffff:127.0.0.1]"),
        *("[0:0:0:0:0:0:0:1]", "0", "0.0.0.0"),
    ],
)
def test_no_spelling_of_this_machine_passes(spelling: str) -> None:
    with pytest.raises((ProviderError, BadInput)) as refused:
        require_reachable(checked_url(f"http://{spelling}:8000/v1"), private=False)
    assert refused.value.code in ("server_address_private", "server_address_invalid")


@pytest.mark.parametrize(
    "spelling", ["169.254.169.254", "2852039166", "0xa9fea9fe", "0251.0376.0251.0376"]
)
def test_no_spelling_of_the_metadata_service_passes(spelling: str) -> None:
    with pytest.raises(ProviderError) as refused:
        require_reachable(checked_url(f"http://{spelling}/latest"), private=True)
    assert refused.value.code == "server_address_metadata"


@pytest.mark.parametrize(
    "url",
    [
        "ftp://example.org/v1",
        "file:///etc/passwd",
        "http://",
        "example.org/v1",
        "http://key@example.org/v1",
        "http://user:key@example.org/v1",
        "http://example.org/v1?key=sk-1",
        "http://example.org/v1#sk-1",
        "http://example.org\\@169.254.169.254/v1",
        "http://exa mple.org/v1",
        "http://example.org/v1\nHost: other",
        "http://①⑥⑨.254.169.254/v1",
        "http://example.org:99999/v1",
        "http://example.org:x/v1",
        "http://ⅼocalhost/v1",
        "http://[::1/v1",
    ],
)
def test_an_address_that_hides_something_is_no_address(url: str) -> None:
    with pytest.raises(BadInput) as refused:
        checked_url(url)
    assert refused.value.code == "server_address_invalid"
    assert "sk-1" not in str(refused.value) and "user:key" not in str(refused.value)


def test_an_address_keeps_its_path_and_loses_its_last_slash() -> None:
    assert checked_url(" HTTPS://Example.org:8443/v1/ ") == "https://example.org:8443/v1"


class Rebinding:
    """A name server that answers with a public address first and with loopback afterwards."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        self.calls += 1
        address = "93.184.216.34" if self.calls == 1 else "127.0.0.1"
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))]


@pytest.fixture
def rebinding(monkeypatch: pytest.MonkeyPatch) -> Iterator[Rebinding]:
    name_server = Rebinding()
    monkeypatch.setattr(socket, "getaddrinfo", name_server)
    yield name_server


def status_of(url: str, *, private: bool) -> int:
    async def get() -> int:
        async with guarded_session(private=private) as session, session.get(url) as response:
            return response.status

    return asyncio.run(get())


def test_a_name_that_points_elsewhere_after_the_check_reaches_nothing(
    rebinding: Rebinding,
) -> None:
    with Server() as server:
        url = f"http://models.example:{server.port}/v1/models"
        require_reachable(url, private=False)  # the first answer of the name server is public
        with pytest.raises(aiohttp.ClientConnectorError):
            status_of(url, private=False)
        assert rebinding.calls > 1
        assert status_of(url, private=True) == 200


def test_the_session_refuses_addresses_written_as_numbers_too() -> None:
    with Server() as server:
        for host in ("127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]"):
            with pytest.raises(aiohttp.ClientError):
                status_of(f"http://{host}:{server.port}/v1/models", private=False)


def test_a_redirect_to_a_private_address_ends_nowhere() -> None:
    """Even a client that follows redirects: the socket itself is refused."""
    reached: list[str] = []

    async def attack() -> None:
        async def secret(request: web.Request) -> web.Response:
            reached.append(request.path)
            return web.Response(text="credentials")

        application = web.Application()
        application.router.add_get("/latest", secret)
        runner = web.AppRunner(application)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        try:
            async with guarded_session(private=False) as session:
                with pytest.raises(aiohttp.ClientConnectorError):
                    await session.get(f"http://127.0.0.1:{port}/latest", allow_redirects=True)
        finally:
            await runner.cleanup()

    asyncio.run(attack())
    assert reached == []


@pytest.mark.parametrize(
    ("url", "named"),
    [
        ("https://Models.example.org/v1", "https://models.example.org/v1"),
        ("https://user:key@models.example.org/v1?key=1", "https://models.example.org/v1"),
        *(
            (f"http://{host}:8000/v1", "a server of its makers' own network")
            for host in ("localhost", "127.0.0.1", "10.1.2.3", "[::1]", "gpu7", "gpu7.lab.internal")
        ),
    ],
)
def test_a_card_names_no_host_of_a_private_network(url: str, named: str) -> None:
    assert published_url(url) == named
