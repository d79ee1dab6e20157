"""What pages of other addresses may not do, and the headers on every answer."""

import base64
import hashlib
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import streamlit
from conftest import Ran
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection, Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit.web.server.starlette.starlette_websocket import _is_origin_allowed

from app.server.document.index_page import BOOT_HASH, DOCUMENT
from app.server.origins import HEADERS, STREAMLIT_SCRIPT, OwnOrigin, is_own_request

HOST = "127.0.0.1:8501"


def request(
    kind: str = "websocket", *, scheme: str = "", method: str = "GET", **headers: str
) -> Any:
    scope: dict[str, Any] = {
        "type": kind,
        "scheme": scheme or ("ws" if kind == "websocket" else "http"),
        "path": "/_stcore/stream",
        "query_string": b"",
        "server": ("127.0.0.1", 8501),
        "headers": [
            (name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()
        ],
    }
    if kind == "http":
        scope["method"] = method
    return HTTPConnection(scope)


@pytest.mark.parametrize(
    ("origin", "host", "is_own"),
    [
        ("http://127.0.0.1:8501", HOST, True),
        ("http://localhost:8501", "localhost:8501", True),
        ("http://[::1]:8501", "[::1]:8501", True),
        ("https://studio.example", "studio.example", True),
        ("http://studio.example", "studio.example:80", True),
        ("http://127.0.0.1:3000", HOST, False),
        ("http://127.0.0.1", HOST, False),
        ("http://localhost:8501", HOST, False),
        ("http://127.0.0.1:8501.evil.example", HOST, False),
        ("http://127.0.0.1:8501@evil.example", HOST, False),
        ("http://evil.example:8501", HOST, False),
        ("https://studio.example:8443", "studio.example", False),
        ("https://studio.example", "", False),
        ("file://", HOST, False),
        ("null", HOST, False),
        ("", HOST, False),
        ("http://127.0.0.1:99999", HOST, False),
    ],
)
@pytest.mark.parametrize(("kind", "method"), [("websocket", ""), ("http", "GET"), ("http", "PUT")])
def test_only_our_own_origin_with_its_port_is_let_in(
    kind: str, method: str, origin: str, host: str, is_own: bool
) -> None:
    assert is_own_request(request(kind, method=method, origin=origin, host=host)) is is_own


def test_over_tls_a_page_without_tls_is_another_origin() -> None:
    for scheme in ("http", "https"):
        asked = request(scheme="wss", origin=f"{scheme}://studio.example", host="studio.example")
        assert is_own_request(asked) is (scheme == "https")


def test_two_origins_are_none() -> None:
    asked = request(origin=f"http://{HOST}", host=HOST)
    asked.scope["headers"].append((b"origin", b"http://evil.example"))
    assert not is_own_request(HTTPConnection(asked.scope))


def test_behind_a_proxy_that_changes_the_host_the_public_address_is_ours(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = request(origin="https://studio.example", host="10.0.0.7:8501")
    assert not is_own_request(asked)
    monkeypatch.setenv("INF_PUBLIC_URL", "https://studio.example/")
    assert is_own_request(asked)
    assert not is_own_request(request(origin="http://studio.example", host="10.0.0.7:8501"))


def test_streamlit_too_lets_the_public_address_in_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Asked of Streamlit's own check, with the headers that reach it."""

    async def told(socket: WebSocket) -> None:
        await socket.accept()
        headers = socket.headers
        await socket.send_json(_is_origin_allowed(headers.get("origin"), headers.get("host")))
        await socket.close()

    app = Starlette(routes=[WebSocketRoute("/", told)], middleware=[Middleware(OwnOrigin)])
    monkeypatch.setenv("INF_PUBLIC_URL", "https://studio.example")
    behind = {"host": "10.0.0.7:8501", "origin": "https://studio.example"}
    with TestClient(app).websocket_connect("/", headers=behind) as socket:
        assert socket.receive_json() is True
    for foreign in ("http://studio.example", "https://studio.example:8443", "https://evil.example"):
        with (
            pytest.raises(WebSocketDisconnect),
            TestClient(app).websocket_connect("/", headers={**behind, "origin": foreign}),
        ):
            pass


@pytest.mark.parametrize(
    "url", ["studio.example", "https://", "ftp://studio.example", "https://a:b"]
)
def test_serving_under_an_address_that_no_page_can_have_is_refused(
    monkeypatch: pytest.MonkeyPatch, inf: Callable[..., Ran], url: str
) -> None:
    monkeypatch.setenv("INF_PUBLIC_URL", url)
    ran = inf("serve")
    assert ran.code != 0 and "INF_PUBLIC_URL" in ran.err


@pytest.mark.parametrize(
    ("site", "is_own"),
    [("same-origin", True), ("none", True), ("same-site", False), ("cross-site", False)],
)
def test_a_post_without_origin_is_judged_by_what_the_browser_says_of_its_page(
    site: str, is_own: bool
) -> None:
    assert is_own_request(request("http", method="POST", sec_fetch_site=site)) is is_own
    assert is_own_request(request("http", method="GET", sec_fetch_site=site))


def test_a_program_without_a_page_is_let_in() -> None:
    for method in ("GET", "POST", "PUT"):
        assert is_own_request(request("http", method=method, host=HOST))


def answer(_: Request) -> Response:
    return PlainTextResponse("here")


async def talk(socket: WebSocket) -> None:
    await socket.accept()
    await socket.send_text("here")
    await socket.close()


CLIENT = TestClient(
    Starlette(
        routes=[
            Route("/", answer, methods=["GET", "POST", "PUT", "DELETE"]),
            WebSocketRoute("/", talk),
        ],
        middleware=[Middleware(OwnOrigin)],
    )
)
FOREIGN = {"origin": "http://testserver:3000"}


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE", "OPTIONS"])
def test_a_page_of_another_port_is_refused_for_every_method(method: str) -> None:
    assert CLIENT.request(method, "/", headers=FOREIGN).status_code == 403


def test_a_page_of_another_port_gets_no_websocket() -> None:
    with pytest.raises(WebSocketDisconnect), CLIENT.websocket_connect("/", headers=FOREIGN):
        pass
    with CLIENT.websocket_connect("/", headers={"origin": "http://testserver"}) as socket:
        assert socket.receive_text() == "here"


@pytest.mark.parametrize("path", ["/", "/not-there"])
def test_every_answer_has_the_headers_refusals_included(path: str) -> None:
    for headers in ({}, FOREIGN):
        got = CLIENT.get(path, headers=headers).headers
        assert {name: got[name] for name in HEADERS} == HEADERS


def test_no_page_may_frame_us_and_images_come_only_from_the_app() -> None:
    policy = dict(
        part.strip().split(" ", 1) for part in HEADERS["Content-Security-Policy"].split(";")
    )
    assert policy["frame-ancestors"] == "'none'" and HEADERS["X-Frame-Options"] == "DENY"
    assert policy["img-src"] == "'self' data: blob:"
    assert "'unsafe-" not in policy["script-src"]
    for name, sources in policy.items():
        assert "http" not in sources and "*" not in sources, name


def digests(html: str) -> list[str]:
    return [
        "'sha256-" + base64.b64encode(hashlib.sha256(one.encode()).digest()).decode() + "'"
        for one in re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    ]


def test_the_policy_knows_the_inline_scripts_of_streamlits_document_and_of_ours() -> None:
    html = (Path(streamlit.__file__).parent / "static" / "index.html").read_text(encoding="utf-8")
    assert digests(html) == [STREAMLIT_SCRIPT]
    assert digests(DOCUMENT) == [BOOT_HASH, STREAMLIT_SCRIPT]
    assert BOOT_HASH in HEADERS["Content-Security-Policy"]
