"""Streamlit's own scripts and styles, compressed: Streamlit sends them as they are.

Their names have a hash of their content, so that a browser keeps them for good. Each is compressed
once, when it is first asked for.
"""

import gzip
import re
from functools import cache
from pathlib import Path
from typing import Final

import streamlit as st
from starlette.concurrency import run_in_threadpool
from starlette.requests import HTTPConnection
from starlette.responses import Response
from starlette.types import ASGIApp, Receive, Scope, Send

STATIC: Final = Path(st.__file__).parent / "static"
NAME: Final = re.compile(r"/(static/(?:js|css)/[\w.-]{1,100}\.(?:js|css))")
TYPES: Final = {".js": "text/javascript", ".css": "text/css"}
HEADERS: Final = {
    "Content-Encoding": "gzip",
    "Vary": "Accept-Encoding",
    "Cache-Control": "public, immutable, max-age=31536000",
}


class CompressStatic:
    """Answer requests for such a file by who takes gzip; all others go on to Streamlit."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = _requested(scope)
        if path is None:
            await self.app(scope, receive, send)
            return
        body = await run_in_threadpool(_compressed, path)
        await Response(body, media_type=TYPES[path.suffix], headers=HEADERS)(scope, receive, send)


def _requested(scope: Scope) -> Path | None:
    """The file that is to be sent compressed; None for every other request."""
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return None
    named = NAME.fullmatch(scope["path"])
    if named is None or not _takes_gzip(HTTPConnection(scope).headers.get("accept-encoding", "")):
        return None
    path = STATIC / named[1]
    return path if path.is_file() else None


def _takes_gzip(accepted: str) -> bool:
    """Whether the header names gzip, and not to refuse it (`gzip;q=0`)."""
    for each in accepted.lower().split(","):
        name, _, weight = each.replace(" ", "").partition(";q=")
        if name == "gzip":
            return weight == "" or weight.strip("0.") != ""
    return False


@cache
def _compressed(path: Path) -> bytes:
    return gzip.compress(path.read_bytes(), compresslevel=9, mtime=0)
