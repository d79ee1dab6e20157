"""What fails in this server: one line of the log for each failed answer, a traceback per error.

A line has the time (UTC), status, method and path of the answer, the id of the account, and a code
of eight characters, which the person sees, too. The code is that of the error and of the place
where it was raised: its traceback stands once in the log, with the first line of this code.
"""

import hashlib
import logging
import re
import traceback
from html import escape
from urllib.parse import quote, urlsplit

import streamlit as st
from sqlalchemy.exc import DBAPIError
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from app.access.identity import ACCOUNT
from app.access.language import language_now
from app.access.scope import read_user
from app.api.problems import problem
from app.server.form_page import form_page
from app.server.language import language_of
from app.text.languages import error_text, is_translated, text
from db.errors import InfError
from db.store.store import open_store

log = logging.getLogger("inf.app")
API, MCP = "/api/v1", "/mcp"  # routes of programs and tools of agents (`app.api`)
LONG_SEGMENT = re.compile(r"[^/]{20,}")  # of a path: a token of a link, the id of a session
MAX_TRACEBACKS = 200
_logged: set[str] = set()  # the codes whose traceback stands in the log


def is_of_programs(path: str) -> bool:
    """Whether a path is for programs, which a token admits and no cookie."""
    return path == MCP or path.startswith(f"{API}/")


class ReportFailures:
    """Answer a failed request, and log it: 503 where the store is away or moved on, else 500."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return
        has_begun = False

        async def noted(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        try:
            await self.app(scope, receive, noted)
        except Exception as raised:
            error = await run_in_threadpool(explained, raised)
            status = 503 if isinstance(error, InfError) else 500
            place = f"{scope.get('method', 'WEBSOCKET')} {safe_path(scope['path'])}"
            code = report(error, f"{status} {place} account={scope.get(ACCOUNT) or '-'}")
            if has_begun:
                return  # uvicorn closes the connection: what was sent is seen to be incomplete
            answer = _answer(Request(scope), error, code, status) if "method" in scope else None
            await (answer or WebSocketClose(1011))(scope, receive, send)


def show_internal_error(raised: Exception) -> bool:
    """Show a message for an error of a page or its actions, and log it; Streamlit calls this."""
    error = explained(raised)
    status = 503 if isinstance(error, InfError) else 500
    page = safe_path(urlsplit(st.context.url or "").path)
    code = report(error, f"{status} PAGE {page} account={_account_of_page()}")
    st.error(message_of(error, code, language_now()), icon=":material/error:")
    return True


def explained(error: Exception) -> Exception:
    """The error; instead of one of the database, that the store moved on or is away, if it is."""
    if isinstance(error, DBAPIError):
        try:
            open_store().require_own_revision()
        except InfError as reason:
            return reason
        except DBAPIError:
            return error
    return error


def report(error: Exception, place: str) -> str:
    """Log a failure in one line, with its traceback if it is new. Returns its code."""
    if isinstance(error, InfError):
        where = [type(error).__name__, error.code]
    else:
        frames = traceback.extract_tb(error.__traceback__)
        where = [type(error).__name__, *(f"{one.filename}:{one.lineno}" for one in frames)]
    code = hashlib.sha256("\n".join(where).encode()).hexdigest()[:8]
    line = next(iter(str(error).splitlines()), "")
    is_new = code not in _logged and len(_logged) < MAX_TRACEBACKS
    _logged.add(code)
    log.error(
        "%s error=%s %s: %s",
        *(place, code, type(error).__name__, line),
        exc_info=error if is_new and not isinstance(error, InfError) else None,
    )
    return code


def message_of(error: Exception, code: str, language: str) -> str:
    """What the person sees: the reason where the catalogue has it, else a code for the operator."""
    if isinstance(error, InfError) and is_translated(error):
        return error_text(language, error)
    return text(language, "internal_error", code=code)


def safe_path(path: str) -> str:
    """A path for the log: no secret of a link, no line break."""
    return LONG_SEGMENT.sub("…", quote(path))


def _answer(request: Request, error: Exception, code: str, status: int) -> Response:
    message = message_of(error, code, language_of(request))
    if is_of_programs(request.url.path):
        known = getattr(error, "code", "") or "internal_error"
        return problem(status, message, code=known, log=code)
    if "text/html" not in request.headers.get("accept", ""):
        return PlainTextResponse(message, status)
    alert = f'<p class="problem" role="alert">{escape(message)}</p>'
    return form_page(request, "form.failure", "/", alert, status)


def _account_of_page() -> str:
    """The id of the account on whose page something failed; "-" if that cannot be read either."""
    try:
        user = read_user()
    except (InfError, DBAPIError):
        return "-"
    return str((user and user.account_id) or "-")
