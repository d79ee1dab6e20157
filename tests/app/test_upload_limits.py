"""Uploads: refused before their body is read, limited per person."""

import asyncio

import pytest
from app_pages import cookies_of
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route
from starlette.testclient import TestClient

from app.server.uploads import MAX_FORM_BYTES, OVERHEAD_BYTES, UPLOADS, HeldUploads, LimitBodies
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
