"""Uploads and sessions: refused before they are read, limited per person; what pages send."""

import asyncio
from pathlib import Path

import pytest
import streamlit
from app_pages import cookies_of
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.testclient import TestClient, WebSocketTestSession
from starlette.websockets import WebSocket, WebSocketDisconnect
from streamlit.config import get_option, set_option
from streamlit.proto.ForwardMsg_pb2 import ForwardMsg
from streamlit.runtime.forward_msg_cache import populate_hash_if_needed

from app.server.document.index_page import STYLE
from app.server.uploads import (
    MAX_FORM_BYTES,
    MAX_SESSIONS,
    OVERHEAD_BYTES,
    UPLOADS,
    HeldUploads,
    LimitBodies,
    LimitSessions,
)
from app.server.web import app as server
from app.server.web import streamlit_config
from db.errors import Refused
from db.store.store import Store

MB = 1024 * 1024


async def take(request: Request) -> Response:
    return PlainTextResponse(str(len(await request.body())))


@pytest.fixture
def client() -> TestClient:
    held = HeldUploads(lambda session_id, file_id: True, max_bytes=MB)
    return TestClient(
        Starlette(
            routes=[
                Route(UPLOADS + "{session}/{file}", take, methods=["PUT"]),
                Route("/sign-in", take, methods=["POST"]),
            ],
            middleware=[Middleware(LimitBodies, held)],
        )
    )


def test_who_may_not_upload_is_refused_before_a_byte_is_read(sqlite_store: Store) -> None:
    """Asked of the middleware itself: the test client would read the body to send it."""
    cookies = cookies_of(sqlite_store, "annotator")
    asked, sent = [], []

    async def receive() -> dict[str, object]:
        asked.append(1)
        return {"type": "http.request", "body": b"x", "more_body": True}

    async def send(message: dict[str, object]) -> None:
        sent.append(message)

    async def app(*_: object) -> None:
        raise AssertionError("reached")

    scope = {
        "type": "http",
        "method": "PUT",
        "path": UPLOADS + "s/f",
        "headers": [
            (b"cookie", "; ".join(f"{name}={value}" for name, value in cookies.items()).encode()),
            (b"content-length", str(150 * MB).encode()),
        ],
    }
    asyncio.run(LimitBodies(app)(scope, receive, send))  # type: ignore[arg-type]
    assert sent[0]["status"] == 403 and asked == []
    assert (b"connection", b"close") in sent[0]["headers"]  # type: ignore[operator]


def test_a_person_holds_so_much_and_no_more_over_all_their_sessions(
    sqlite_store: Store, client: TestClient
) -> None:
    client.cookies = cookies_of(sqlite_store, "curator")

    def put(name: str, size: int) -> int:
        return client.put(f"{UPLOADS}{name}", content=b"x" * size).status_code

    assert put("s1/a", MB // 2) == 200
    assert put("s2/b", MB // 2) == 200
    assert put("s2/c", OVERHEAD_BYTES + 1) == 413
    assert put("s2/b", MB // 2) == 200  # the same file again takes its own place
    client.cookies = cookies_of(sqlite_store, "admin")
    assert put("s3/d", MB // 2) == 200


def test_what_streamlit_no_longer_holds_does_not_count_and_what_is_coming_does() -> None:
    held: set[tuple[str, str]] = set()
    uploads = HeldUploads(lambda session_id, file_id: (session_id, file_id) in held, max_bytes=MB)
    uploads.reserve("ann", "s", "a", MB)
    for file_id in ("a", "b"):
        with pytest.raises(Refused):
            uploads.reserve("ann", "s", file_id, MB)
    uploads.reserve("bob", "s", "c", MB)
    held.add(("s", "a"))
    uploads.finish("ann", "s", "a")
    with pytest.raises(Refused, match="1 MB"):
        uploads.reserve("ann", "s", "b", MB)
    held.clear()
    uploads.reserve("ann", "s", "b", MB)


def test_a_body_of_unknown_length_or_a_large_form_is_refused(client: TestClient) -> None:
    assert client.post("/sign-in", content=iter([b"x"])).status_code == 411
    assert client.post("/sign-in", content=b"x" * (MAX_FORM_BYTES + 1)).status_code == 413
    assert client.post("/sign-in", headers={"content-length": "-1"}).status_code == 411
    both = {"content-length": "5", "transfer-encoding": "chunked"}
    assert client.post("/sign-in", headers=both, content=b"x" * MB).status_code == 411
    assert client.post("/sign-in", content=b"x" * MAX_FORM_BYTES).status_code == 200


@pytest.fixture
def sockets() -> TestClient:
    """A server whose sessions only wait, two for each person."""

    async def wait(socket: WebSocket) -> None:
        await socket.accept()
        await socket.receive()

    return TestClient(
        Starlette(
            routes=[WebSocketRoute("/_stcore/stream", wait)],
            middleware=[Middleware(LimitSessions, 2)],
        )
    )


@pytest.mark.parametrize("role", ("annotator", None))
def test_a_person_has_a_limited_number_of_sessions_and_others_have_theirs(
    sqlite_store: Store, sockets: TestClient, role: str | None
) -> None:
    other = cookies_of(sqlite_store, "admin")
    mine = cookies_of(sqlite_store, role) if role else {}

    def opened(cookies: dict[str, str]) -> WebSocketTestSession:
        header = "; ".join(f"{name}={value}" for name, value in cookies.items())
        return sockets.websocket_connect("/_stcore/stream", headers={"cookie": header})

    with opened(mine):
        with opened(mine), opened(other):
            with pytest.raises(WebSocketDisconnect) as refused, opened(mine):
                pass
            assert refused.value.code == 1008
        with opened(mine):  # one has ended
            pass


def test_the_app_limits_sessions_and_what_their_widgets_hold() -> None:
    assert LimitSessions in [each.cls for each in server._user_middleware]
    config = streamlit_config()
    # a session is taken to cost 4.6 times what its browser sends (12 of 20 MB: 1.1 GB)
    assert MAX_SESSIONS * config["server.maxWidgetStateSize"] * 4.6 < 600


def test_only_a_map_is_sent_as_the_hash_of_what_its_browser_keeps() -> None:
    """tests/e2e/test_frame.py has the page that stands still where a browser has dropped it."""
    name = "global.minCachedMessageSize"
    usual = get_option(name)
    is_hash = {}
    try:
        for size in (10_000, streamlit_config()[name]):  # Streamlit's own, and ours
            set_option(name, size)
            for kilobytes in (60, 1000):  # the largest figure; a map of 100,000 texts
                message = ForwardMsg()
                message.delta.new_element.markdown.body = "x" * kilobytes * 1000
                populate_hash_if_needed(message)
                is_hash[int(size), kilobytes] = message.metadata.cacheable
    finally:
        set_option(name, usual)
    assert list(is_hash.values()) == [True, True, False, True]
    assert streamlit_config()["global.maxCachedMessageAge"] >= 20


def test_the_server_s_metrics_are_for_admins_only(sqlite_store: Store) -> None:
    admin, curator = (cookies_of(sqlite_store, role) for role in ("admin", "curator"))
    for cookies, status in (({}, 401), (curator, 403), (admin, 200)):
        header = "; ".join(f"{name}={value}" for name, value in cookies.items())
        answer = TestClient(server).get("/_stcore/metrics", headers={"cookie": header})
        assert answer.status_code == status, cookies


def test_no_table_offers_the_csv_that_the_browser_writes_by_itself() -> None:
    """It is hidden by its label, which is that of the Streamlit that is installed."""
    label = "Download as CSV"
    scripts = Path(streamlit.__file__).parent.glob("static/static/js/DataFrame*.js")
    assert any(f"label:`{label}`" in script.read_text(encoding="utf-8") for script in scripts)
    hidden = f'[data-testid="stElementToolbarButton"]:has([aria-label^="{label}"])'
    assert f"{hidden} {{ display: none; }}" in STYLE
