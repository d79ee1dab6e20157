"""The document of every page: Streamlit's, with our style and what keeps the page from moving.

Streamlit draws the parts of a page as their code arrives, and the menu last. So the style is in the
document and not in an element that comes late; a script reserves the menu's place before anything
is drawn; the code of the widgets that pages are made of is fetched while the page connects, that
of tables and figures afterwards, and evaluated while nothing is drawn.
"""

import base64
import hashlib
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

import streamlit as st
from starlette.convertors import Convertor, register_url_convertor
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

TITLE: Final = "InF Studio"
FOLDER = Path(__file__).parent
STATIC = Path(st.__file__).parent / "static"
STYLE: Final = (FOLDER / "style.css").read_text(encoding="utf-8")
BOOT: Final = "".join(
    (FOLDER / name).read_text(encoding="utf-8") for name in ("boot.js", "goto.js")
)
BOOT_HASH: Final = f"'sha256-{base64.b64encode(hashlib.sha256(BOOT.encode()).digest()).decode()}'"
# The parts of Streamlit's front end that most of our pages show, by the names of their files.
PARTS: Final = [
    "Html",
    "PageLink",
    "Selectbox",
    "Button",
    "TextInput",
    "BidiComponent",
    "ButtonGroup",
    "Multiselect",
    "Checkbox",
    "NumberInput",
    "DownloadButton",
    "Metric",
    "Progress",
]
# Those of tables and figures, of which most pages show some: fetched when the browser is idle.
LATER: Final = [
    "PlotlyChart",
    "DataFrame",
    "ReadOnlyGrid",
]
IMPORTED = re.compile(r"""(?:from|import)\s*["`']\./([^"`']+\.js)["`']""")


def index_page(request: Request) -> Response:
    """The document."""
    return HTMLResponse(DOCUMENT, headers={"Cache-Control": "no-cache"})


def _with_ours(document: str) -> str:
    """The style is in the body: Streamlit adds its own to the head, and the later one wins."""
    now = [name for name in _code_of(PARTS) if name not in document]
    later = [name for name in _code_of(LATER) if name not in now and name not in document]
    links = "".join(
        f'    <link rel="{how}" crossorigin href="./static/js/{name}">\n'
        for how, names in (("modulepreload", now), ("prefetch", later))
        for name in names
    )
    title = f"<title>{TITLE}</title>\n    <script>{BOOT}</script>"
    document = document.replace("<title>Streamlit</title>", title, 1)
    document = document.replace("  </head>", f"{links}  </head>", 1)  # after Streamlit's own code
    return document.replace("<body>", f"<body>\n    <style>{STYLE}</style>", 1)


def _code_of(parts: Sequence[str]) -> list[str]:
    """The files of the parts and all that these import, each once."""
    folder = STATIC / "static" / "js"
    found: dict[str, None] = {}
    waiting = [path.name for part in parts for path in folder.glob(f"{part}.*.js")]
    while waiting:
        name = waiting.pop(0)
        if name not in found:
            found[name] = None
            waiting += _imported_by(folder / name)
    return list(found)


def _imported_by(path: Path) -> Iterator[str]:
    """What it imports from the start; what it loads later (`import()`) is not there."""
    yield from IMPORTED.findall(path.read_text(encoding="utf-8"))


class _PageName(Convertor[str]):
    """A page's name, also one that is no page: Streamlit reports that in its document."""

    regex = "[a-z_]*"

    def convert(self, value: str) -> str:
        return value

    def to_string(self, value: str) -> str:
        return value


DOCUMENT: Final = _with_ours((STATIC / "index.html").read_text(encoding="utf-8"))
register_url_convertor("page_name", _PageName())
INDEX_ROUTES: Final[list[BaseRoute]] = [Route("/{page:page_name}", index_page)]
