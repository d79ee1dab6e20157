"""Proxies: who is believed about addresses, and what is said where a proxy was forgotten."""

import logging
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Ran
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient
from uvicorn.middleware.proxy_headers import ProxyHeadersMiddleware

from app.server.proxies import MAX_WARNINGS, WarnOfProxies, note_at_start, trusted_proxies
from db.errors import BadInput

PROXY = "10.0.0.5"


def address(request: Request) -> Response:
    return PlainTextResponse(request.client.host if request.client else "")


def client(trusted: str, peer: str = PROXY) -> TestClient:
    """A client at the address `peer` of an app behind uvicorn's own middleware."""
    app: Any = Starlette(
        routes=[Route("/", address)],
        middleware=[
            Middleware(ProxyHeadersMiddleware, trusted_hosts=trusted),  # type: ignore[arg-type]
            Middleware(WarnOfProxies),
        ],
    )
    return TestClient(app, client=(peer, 4711))


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]


@pytest.mark.parametrize("trusted", ["", "10.0.0.6", "192.168.0.0/16"])
def test_a_proxy_that_is_not_named_is_not_believed_and_named_in_one_warning(
    caplog: pytest.LogCaptureFixture, trusted: str
) -> None:
    browser = client(trusted)
    for number in range(3):
        found = browser.get("/", headers={"x-forwarded-for": f"203.0.113.{number}"})
        assert found.text == PROXY
    (warning,) = warnings_of(caplog)
    assert f"INF_TRUSTED_PROXIES={PROXY}" in warning


@pytest.mark.parametrize(
    "stated", ["203.0.113.9", "198.51.100.1, 203.0.113.9", "203.0.113.9:55", "[2001:db8::1]:55"]
)
def test_a_named_proxy_is_believed_without_a_warning(
    caplog: pytest.LogCaptureFixture, stated: str
) -> None:
    found = client("10.0.0.0/8").get("/", headers={"x-forwarded-for": stated})
    assert found.text in ("203.0.113.9", "2001:db8::1")
    assert warnings_of(caplog) == []


def test_without_the_header_nothing_is_said(caplog: pytest.LogCaptureFixture) -> None:
    assert client("").get("/").text == PROXY
    assert client("").get("/", headers={"x-forwarded-for": " "}).text == PROXY
    assert warnings_of(caplog) == []


def test_senders_cannot_fill_the_log(caplog: pytest.LogCaptureFixture) -> None:
    warn = WarnOfProxies(PlainTextResponse("ok"))
    for number in range(3 * MAX_WARNINGS):
        client = TestClient(warn, client=(f"10.1.0.{number}", 1))
        client.get("/", headers={"x-forwarded-for": "203.0.113.9"})
    assert len(warnings_of(caplog)) == MAX_WARNINGS


@pytest.mark.parametrize("named", ["proxy.internal", "10.0.0.5/8", "10.0.0.5, *", "127.0.0"])
def test_a_proxy_that_no_connection_can_come_from_is_refused_at_start(
    monkeypatch: pytest.MonkeyPatch, inf: Callable[..., Ran], named: str
) -> None:
    monkeypatch.setenv("INF_TRUSTED_PROXIES", named)
    with pytest.raises(BadInput, match="INF_TRUSTED_PROXIES"):
        trusted_proxies()
    ran = inf("serve")
    assert ran.code != 0 and "INF_TRUSTED_PROXIES" in ran.err


@pytest.mark.parametrize(
    ("named", "public", "has_accounts", "is_local", "part"),
    [
        ("", "", True, False, "name its address there"),
        ("", "https://studio.example", True, True, "name its address there"),
        ("*", "", True, True, "can be dodged"),
        ("", "", True, True, ""),
        ("", "", False, True, ""),
        (" 127.0.0.1, 10.0.0.0/8 ", "https://studio.example", True, False, ""),
    ],
)
def test_the_start_says_what_is_missing_and_nothing_else(
    monkeypatch: pytest.MonkeyPatch,
    named: str,
    public: str,
    has_accounts: bool,
    is_local: bool,
    part: str,
) -> None:
    monkeypatch.setenv("INF_TRUSTED_PROXIES", named)
    monkeypatch.setenv("INF_PUBLIC_URL", public)
    note = note_at_start(has_accounts=has_accounts, is_local=is_local)
    assert part in note and bool(note) == bool(part)
