"""The server: Streamlit's app with our routes, and the middleware before them.

First comes the check of `Origin` (`origins.py`), then what answers for a failure behind it
(`failures.py`), then sign-in, then the limits of bodies and sessions (`uploads.py`).
`RequireSignIn` refuses HTTP requests. A WebSocket without a valid cookie reaches `app.server.main`,
which then shows only a link to the sign-in form; so does a session whose account was disabled
meanwhile. While there are no accounts, only requests whose host is this machine pass: otherwise a
page elsewhere could reach the local admin's app through a host name that resolves to 127.0.0.1 (DNS
rebinding).
"""

import tomllib
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.middleware import Middleware
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.routing import Mount, Route
from starlette.types import ASGIApp, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from app.access.identity import ACCOUNT, USER, note_seen, user_of_cookies
from app.server.document.index_page import INDEX_ROUTES
from app.server.document.static_files import CompressStatic
from app.server.failures import API, MCP, ReportFailures, show_internal_error
from app.server.origins import OwnOrigin
from app.server.proxies import WarnOfProxies
from app.server.routes import ROUTES
from app.server.uploads import LimitBodies, LimitSessions
from app.server.warm_up import send_at_once, skip_search, warmed_up
from db.modules import load
from db.store.store import open_store

if TYPE_CHECKING:
    from app.api.server import Api

FOLDER = Path(__file__).parent
OPEN_PATHS = (
    "/sign-in",
    "/sign-in/openid",
    "/sign-out",
    "/health",
    "/_stcore/health",
    "/_stcore/host-config",
    "/favicon.png",
    "/oauth2callback",
    MCP,  # as /api/v1 below
)
METRICS = "/metrics"  # of a request with a token it looks at the token itself
ADMIN_PATHS = (METRICS, "/_stcore/metrics")  # figures of everybody
# of these, /api/v1 looks at each request's token itself, and never at a cookie
OPEN_FOLDERS = ("/static/", "/invitation/", "/recruited/", "/password/", "/language/", f"{API}/")
LOCAL_NAMES = ("localhost", "127.0.0.1", "::1")


class RequireSignIn:
    """Redirect browsers without a valid cookie to the sign-in form; refuse other requests."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = None
        if scope["type"] in ("http", "websocket"):
            answer = await self._refusal(HTTPConnection(scope))
        await (answer or self.app)(scope, receive, send)

    async def _refusal(self, request: HTTPConnection) -> ASGIApp | None:
        path, is_http = request.url.path, request.scope["type"] == "http"
        if path in OPEN_PATHS or path.startswith(OPEN_FOLDERS):
            return None
        if path == METRICS and "authorization" in request.headers:
            return None
        store = open_store()
        user = await run_in_threadpool(user_of_cookies, store, request.cookies)
        if user is not None:
            request.scope[USER], request.scope[ACCOUNT] = user, user.account_id
            await run_in_threadpool(note_seen, store, user)
            is_let_in = user.account_id is not None or request.url.hostname in LOCAL_NAMES
            if is_let_in and path in ADMIN_PATHS and not user.is_admin:
                return PlainTextResponse("for administrators only", status_code=403)
            if is_let_in:
                return None
            if not is_http:
                return WebSocketClose()
            return PlainTextResponse("open this page as localhost", status_code=403)
        if not is_http:
            return None
        if request.scope["method"] == "GET" and "text/html" in request.headers.get("accept", ""):
            wanted = path + (f"?{request.url.query}" if request.url.query else "")
            return RedirectResponse(f"/sign-in?next={quote(wanted, safe='')}", status_code=303)
        return PlainTextResponse("sign in first", status_code=401)


def streamlit_config() -> dict[str, Any]:
    """The settings of `.streamlit/config.toml` by dotted name, as `st.App.run` takes them."""
    settings = tomllib.loads((FOLDER / ".streamlit" / "config.toml").read_text(encoding="utf-8"))
    return _dotted(settings)


def _dotted(settings: dict[str, Any], before: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in settings.items():
        if isinstance(value, dict):
            flat |= _dotted(value, f"{before}{name}.")
        else:
            flat[before + name] = value
    return flat


class Loaded:
    """A door of programs that is loaded with its first request."""

    def __init__(self, load_it: Callable[[], ASGIApp]) -> None:
        self._load = load_it

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await (await run_in_threadpool(self._load))(scope, receive, send)


@cache
def _loaded_api() -> "Api":
    loaded: Api = load("app.api.server:Api")()
    return loaded


@cache
def _loaded_metrics() -> ASGIApp:
    loaded: ASGIApp = load("app.api.metrics:Metrics")()
    return loaded


@cache
def _loaded_agents(api: "Api") -> ASGIApp:
    """The tools of agents, with the limits that a token has at the routes."""
    loaded: ASGIApp = load("app.api.agents:AgentDoor")(api.limits)
    return loaded


skip_search()
send_at_once()
OWN_ROUTES = (
    Mount(API, Loaded(_loaded_api)),
    Route(MCP, Loaded(lambda: _loaded_agents(_loaded_api()))),
    Route(METRICS, Loaded(_loaded_metrics), methods=["GET"]),
    *(*ROUTES, *INDEX_ROUTES),
)
MIDDLEWARE = (
    Middleware(WarnOfProxies),
    Middleware(OwnOrigin),
    Middleware(ReportFailures),
    Middleware(RequireSignIn),
    Middleware(LimitBodies),
    Middleware(LimitSessions),
    Middleware(CompressStatic),
)
app = st.App(
    FOLDER / "main.py",
    routes=list(OWN_ROUTES),
    middleware=list(MIDDLEWARE),
    on_script_error=show_internal_error,
    lifespan=warmed_up,
)
