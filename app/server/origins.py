"""Which requests other pages may not make, and the headers that bind our own pages.

A browser names the page that makes a request in `Origin`, with its port: another port of this
machine is another page. What a browser sends for a page of another origin is refused, on WebSocket,
uploads and every other request. Requests without `Origin` are links, addresses that were typed, and
programs, which have no cookie to misuse.
"""

import os
from urllib.parse import urlsplit

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from app.server.document.index_page import BOOT_HASH
from app.text.languages import COOKIE, best_language, text
from db.errors import BadInput

PUBLIC_URL = "INF_PUBLIC_URL"
SAFE_METHODS = ("GET", "HEAD", "OPTIONS")
DEFAULT_PORTS = {"http": 80, "https": 443}
# Streamlit's index.html has one inline script; its sha256 is tested against the installed version.
STREAMLIT_SCRIPT = "'sha256-THxz9J9+wf7rhwR2YkXJoSZ13UCmYyC+3lNDv2+8ugA='"
# blob: cards are modules that Streamlit makes of text; 'unsafe-inline' of styles: Emotion. Nothing
# compiles text: what Plotly compiles for WebGL no figure of ours asks for.
PAGE_POLICY = "; ".join(
    (
        "default-src 'self'",
        f"script-src 'self' blob: {STREAMLIT_SCRIPT} {BOOT_HASH}",
        "style-src 'self' 'unsafe-inline'",
        "img-src 'self' data: blob:",
        "font-src 'self' data:",
        "media-src 'self' data: blob:",
        "connect-src 'self' data: blob:",
        "worker-src 'self' blob:",
        "object-src 'none'",
        "base-uri 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
    )
)
HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "X-Frame-Options": "DENY",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",  # with no-referrer, a browser sends `Origin: null`
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class OwnOrigin:
    """Refuse requests of other pages, and put the security headers on every answer."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] not in ("http", "websocket"):
            await self.app(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] in ("http.response.start", "websocket.http.response.start"):
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app, request = self.app, HTTPConnection(scope)
        if is_from_public_url(request):
            # Streamlit compares the two again, and knows nothing of INF_PUBLIC_URL
            MutableHeaders(scope=scope)["host"] = urlsplit(request.headers["origin"]).netloc
        elif not is_own_request(request):
            is_http = scope["type"] == "http"
            app = (
                PlainTextResponse(foreign(request), status_code=403)
                if is_http
                else WebSocketClose()
            )
        await app(scope, receive, with_headers)


def foreign(request: HTTPConnection) -> str:
    """The refusal, in the language of the browser."""
    accepted = request.headers.get("accept-language", "")
    return text(best_language(request.cookies.get(COOKIE, ""), accepted), "refused.foreign_page")


def is_own_request(request: HTTPConnection) -> bool:
    """Whether a request comes from our own page, from no page, or is a link that was followed."""
    origins = request.headers.getlist("origin")
    if origins:
        return len(origins) == 1 and is_own_origin(origins[0], request)
    method = request.scope.get("method", "GET")
    if request.scope["type"] == "http" and method not in SAFE_METHODS:
        return request.headers.get("sec-fetch-site", "none") in ("same-origin", "none")
    return True


def is_own_origin(origin: str, request: HTTPConnection) -> bool:
    """Whether `Origin` is the address under which this request reached us, or INF_PUBLIC_URL.

    Host and port must be equal; the scheme, too, where we know that it is https (a proxy that ends
    TLS tells us only if it is trusted).
    """
    found = _parts(origin)
    if found is None:
        return False
    if found == public_address():
        return True
    scheme = "https" if request.url.scheme in ("https", "wss") else found[0]
    return found == _parts(f"{scheme}://{request.headers.get('host', '')}")


def is_from_public_url(request: HTTPConnection) -> bool:
    """Whether a page under INF_PUBLIC_URL makes this request."""
    origins, public = request.headers.getlist("origin"), public_address()
    return public is not None and len(origins) == 1 and _parts(origins[0]) == public


def is_tls(request: HTTPConnection) -> bool:
    """Whether the browser speaks TLS: to us, to a trusted proxy, or by what INF_PUBLIC_URL says."""
    public = public_address()
    return request.url.scheme == "https" or (public is not None and public[0] == "https")


def public_address() -> tuple[str, str, int] | None:
    """Scheme, host and port of INF_PUBLIC_URL; None without it. Raises BadInput if unreadable."""
    url = os.environ.get(PUBLIC_URL, "").strip()
    if not url:
        return None
    found = _parts(url)
    if found is None:
        raise BadInput(
            f"{PUBLIC_URL}={url!r} is no address such as https://studio.example.org",
            "correct the environment variable",
            code="public_url_invalid",
        )
    return found


def _parts(url: str) -> tuple[str, str, int] | None:
    """Scheme, host and port of an address; None for what is none (`null`, other schemes)."""
    try:
        split = urlsplit(url.strip())
        port = split.port
    except ValueError:
        return None
    if split.scheme not in DEFAULT_PORTS or not split.hostname or split.username is not None:
        return None
    default = DEFAULT_PORTS[split.scheme]
    return split.scheme, split.hostname, default if port is None else port
