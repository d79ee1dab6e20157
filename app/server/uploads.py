"""What a person may hold of the server: uploads, bodies and sessions; checked before they are read.

Streamlit keeps uploaded files in memory until their browser session ends. A person may hold
MAX_HELD_BYTES of them at a time, over all of their sessions, uploads that are still coming in
included. Forms of ours are small. Every open tab is a session with a WebSocket, whose widgets'
values stay in memory, up to `server.maxWidgetStateSize` each; a person has MAX_SESSIONS of them.
"""

import logging
import threading
from collections import Counter
from collections.abc import Callable

from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose
from streamlit.runtime import Runtime

from app.access.identity import user_of_cookies
from app.access.permissions import require
from app.server.failures import is_of_programs
from db.errors import Refused
from db.people.attempts import place_of
from db.store.store import open_store

log = logging.getLogger("inf.app")
UPLOADS = "/_stcore/upload_file/"
MAX_HELD_BYTES = 1024 * 1024 * 1024  # as much as one file may have, `server.maxUploadSize`
MAX_FORM_BYTES = 16_384
OVERHEAD_BYTES = 64 * 1024  # of the multipart form around a file
MAX_SESSIONS = 30
BODY_METHODS = ("POST", "PUT", "PATCH")

IsHeld = Callable[[str, str], bool]


class HeldUploads:
    """What each person's uploads hold in memory, by session and file; safe from any thread."""

    def __init__(self, is_held: IsHeld, max_bytes: int = MAX_HELD_BYTES) -> None:
        self._is_held, self._max_bytes = is_held, max_bytes
        self._bytes: dict[tuple[str, str, str], int] = {}
        self._coming: dict[tuple[str, str, str], int] = {}
        self._lock = threading.Lock()

    def reserve(self, person: str, session_id: str, file_id: str, size: int) -> None:
        """Count an upload that begins. Raises Refused if the person would hold too much."""
        key = (person, session_id, file_id)
        with self._lock:
            gone = [one for one in self._bytes if one[0] == person and not self._is_held(*one[1:])]
            for one in gone:
                del self._bytes[one]
            if key in self._coming:
                raise Refused(
                    "this file is being uploaded already",
                    "wait until it has arrived",
                    code="upload_running_already",
                )
            held = sum(
                count
                for part in (self._bytes, self._coming)
                for one, count in part.items()
                if one[0] == person and one != key
            )
            if held + size > self._max_bytes + OVERHEAD_BYTES:
                raise Refused(
                    f"your uploads would hold more than {self._max_bytes // 1024**2:,} MB",
                    "remove files that you uploaded, or close their pages",
                    code="uploads_too_large",
                )
            self._coming[key] = size

    def finish(self, person: str, session_id: str, file_id: str) -> None:
        """Count an upload as held from now on, for as long as it is."""
        with self._lock:
            key = (person, session_id, file_id)
            self._bytes[key] = self._coming.pop(key)


class LimitBodies:
    """Refuse bodies before they are read: uploads without the right, forms that are too large."""

    def __init__(self, app: ASGIApp, uploads: HeldUploads | None = None) -> None:
        self.app = app
        self.uploads = uploads or HeldUploads(_is_held_by_streamlit)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_body = scope["type"] == "http" and scope["method"] in BODY_METHODS
        # routes of programs read a body once they know whose it is, and have limits of their own
        if not is_body or is_of_programs(scope["path"]):
            await self.app(scope, receive, send)
            return
        headers = HTTPConnection(scope).headers
        length = headers.get("content-length", "")
        is_stated = length.isascii() and length.isdigit()
        if not is_stated or "transfer-encoding" in headers:  # chunks go before any stated length
            await _refusal("send the length of the body", 411)(scope, receive, send)
        elif scope["path"].startswith(UPLOADS):
            await self._upload(scope, receive, send, int(length))
        elif int(length) > MAX_FORM_BYTES:
            await _refusal("the form is too large", 413)(scope, receive, send)
        else:
            await self.app(scope, receive, send)

    async def _upload(self, scope: Scope, receive: Receive, send: Send, size: int) -> None:
        session_id, _, file_id = scope["path"].removeprefix(UPLOADS).partition("/")
        cookies = HTTPConnection(scope).cookies
        try:
            user = require(
                await run_in_threadpool(user_of_cookies, open_store(), cookies), "upload"
            )
        except Refused as refused:
            await _refusal(str(refused), 403)(scope, receive, send)
            return
        try:
            self.uploads.reserve(user.name, session_id, file_id, size)
        except Refused as refused:
            await _refusal(str(refused), 413)(scope, receive, send)
            return
        try:
            await self.app(scope, receive, send)
        finally:
            self.uploads.finish(user.name, session_id, file_id)


class LimitSessions:
    """Refuse a person's WebSocket beyond MAX_SESSIONS open ones; safe from any task.

    Whoever is not signed in goes by their address.
    """

    def __init__(self, app: ASGIApp, most: int = MAX_SESSIONS) -> None:
        self.app, self._most = app, most
        self._open: Counter[str] = Counter()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "websocket":
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        user = await run_in_threadpool(user_of_cookies, open_store(), request.cookies)
        address = request.client.host if request.client else ""
        person = f"account {user.name}" if user else f"address {place_of(address)}"
        if self._open[person] >= self._most:
            log.warning("a session of %s is refused: %d are open", person, self._most)
            await WebSocketClose(code=1008, reason="too many sessions")(scope, receive, send)
            return
        self._open[person] += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self._open[person] -= 1
            if not self._open[person]:
                del self._open[person]


def _refusal(message: str, status: int) -> ASGIApp:
    """An answer that also closes the connection: the rest of the body is never read."""
    return PlainTextResponse(message, status_code=status, headers={"Connection": "close"})


def _is_held_by_streamlit(session_id: str, file_id: str) -> bool:
    files = Runtime.instance().uploaded_file_mgr.get_files(session_id, [file_id])
    return bool(files)
