"""Streamlit's own scripts and styles, compressed: Streamlit sends them as they are.

Their names have a hash of their content, so that a browser keeps them for good. Each is compressed
once, when it is first asked for: by Brotli for who takes it (browsers by TLS, and on this machine),
which makes the script of figures a tenth smaller than gzip does. That script comes without what no
figure of ours draws (`figure_script`), and a browser asks each time whether it is still the same.
"""

import gzip
import hashlib
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
BROTLI, GZIP = "br", "gzip"
BROTLI_LEVEL: Final = 9  # 11 takes twelve times as long to save a tenth more
HEADERS: Final = {
    "Vary": "Accept-Encoding",
    "Cache-Control": "public, immutable, max-age=31536000",
}
FIGURES: Final = "PlotlyChart.*.js"


class CompressStatic:
    """Answer requests for such a file by who takes a compressed one; others go on to Streamlit."""

    def __init__(self, app: ASGIApp) -> None:
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        found = _requested(scope)
        if found is None:
            await self.app(scope, receive, send)
            return
        path, coding = found
        body = await run_in_threadpool(_compressed, path, coding)
        headers = HEADERS | {"Content-Encoding": coding}
        if path.match(FIGURES):  # its name says nothing of what we left in it
            tag = f'"{hashlib.sha256(body).hexdigest()[:32]}"'
            headers |= {"Cache-Control": "no-cache", "ETag": tag}
            if HTTPConnection(scope).headers.get("if-none-match") == tag:
                await Response(status_code=304, headers=headers)(scope, receive, send)
                return
        await Response(body, media_type=TYPES[path.suffix], headers=headers)(scope, receive, send)


def _requested(scope: Scope) -> tuple[Path, str] | None:
    """The file that is to be sent compressed, and how; None for every other request."""
    if scope["type"] != "http" or scope["method"] not in ("GET", "HEAD"):
        return None
    named = NAME.fullmatch(scope["path"])
    if named is None:
        return None
    coding = _coding(HTTPConnection(scope).headers.get("accept-encoding", ""))
    if coding is None:
        return None
    path = STATIC / named[1]
    return (path, coding) if path.is_file() else None


def _coding(accepted: str) -> str | None:
    """Brotli or gzip if the header names it, and not to refuse it (`gzip;q=0`)."""
    taken = set()
    for each in accepted.lower().split(","):
        name, _, weight = each.replace(" ", "").partition(";q=")
        if weight == "" or weight.strip("0.") != "":
            taken.add(name)
    if BROTLI in taken and _has_brotli():
        return BROTLI
    return GZIP if GZIP in taken else None


def _has_brotli() -> bool:
    import pyarrow as pa  # here: with numpy a tenth of the time until the server answers

    return bool(pa.Codec.is_available("brotli"))


def compress_figures() -> None:
    """Compress the script of figures, the largest that pages load late, before a browser waits."""
    coding = _coding(f"{GZIP}, {BROTLI}") or GZIP
    for path in (STATIC / "static" / "js").glob(FIGURES):
        _compressed(path, coding)


@cache
def _compressed(path: Path, coding: str) -> bytes:
    content = path.read_bytes()
    if path.match(FIGURES):
        content = with_our_traces(content.decode("utf-8")).encode("utf-8")
    if coding == GZIP:
        return gzip.compress(content, compresslevel=9, mtime=0)
    import pyarrow as pa

    found: bytes = pa.Codec("brotli", compression_level=BROTLI_LEVEL).compress(
        content, asbytes=True
    )
    return found


# Streamlit's script of figures without what no figure of ours draws: maps, 3D, WebGL and the like.
#
# It holds all of Plotly, 4.7 MB; 2.0 are left. Plotly makes its smaller bundles by leaving names
# out of the list that its `lib/index.js` registers; here they are taken from the list in the
# script, and with them the modules that nothing reaches any more. Those stand in it as esbuild
# writes them, `NAME=HELPER({"path/of/module.js"(exports,module){…}}),`, and reach others by
# `NAME()`. One that has something else behind it stays. A script that is written in another way is
# sent whole.
TRACES: Final = ("bar", "heatmap", "sankey")  # beside `scatter`, which is Plotly's core
MODULE: Final = re.compile(r'([\w$]+)=[\w$]+\(\{"([^"\n]+)"\(')
REGISTERED: Final = re.compile(r"\.register\(\[([\w$]+\(\),?){20,}\]\)")
REACHED: Final = re.compile(r"(?<![\w$.])([\w$]+)\(\)")
END: Final = "}}),"  # of a module behind which nothing else stands


def with_our_traces(script: str) -> str:
    """The script with TRACES alone; as it is where it is not written as expected."""
    named = {path: name for name, path in MODULE.findall(script)}
    ours = [named.get(f"lib/{trace}.js") for trace in TRACES]
    if not all(ours) or not REGISTERED.search(script):
        return script
    listed = ",".join(f"{name}()" for name in ours)
    script = REGISTERED.sub(lambda _: f".register([{listed}])", script, count=1)
    found = list(MODULE.finditer(script))
    ends = [*(each.start() for each in found[1:]), len(script)]
    parts = {each[1]: script[each.start() : end] for each, end in zip(found, ends, strict=True)}
    head, last = script[: found[0].start()], found[-1][1]  # behind the last all else stands
    reached: set[str] = set()
    waiting = [head, parts[last]]
    while waiting:
        new = {name for name in REACHED.findall(waiting.pop()) if name in parts} - reached
        reached |= new
        waiting += [parts[name] for name in new]
    kept = (part for name, part in parts.items() if name in reached or not part.endswith(END))
    return head + "".join(kept)
