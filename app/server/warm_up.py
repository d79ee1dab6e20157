"""The server's start: what is left out of it, what is loaded once it runs, what runs next to it.

Its socket sends at once (TCP_NODELAY). Streamlit binds it without a protocol, so that asyncio takes
it for none of TCP's and leaves Nagle's algorithm on: an answer's body then waited 40 ms for the
acknowledgement of its head, 160 times in a first visit.

pandas alone takes a third of a second of the first page with a table. What the pages need is loaded
by a thread of its own, after a moment in which the first page may come. Streamlit's search for
components that are installed as packages is left out: it reads the metadata of every installed
package four times, a third of the CPU time until the server answers, and finds none, as ours are
registered where they are defined.
"""

import ast
import importlib
import socket
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import streamlit as st
from sqlalchemy import select
from streamlit.components.v2 import manifest_scanner
from streamlit.web.server.starlette import starlette_server

from app.kit.menu import FILES
from app.operations.doors.courier import sending
from app.server.document.static_files import compress_figures
from db.modules import full_name
from db.run.validations import groups_with_items, run_answers
from db.store.scope import unscoped
from db.store.store import open_store
from db.study.run_items import run_population
from db.tables import Study

DELAY_SECONDS = 2.0
APP = Path(__file__).resolve().parent.parent


def skip_search() -> None:
    """Let the server's start find no packaged component; before it starts."""
    manifest_scanner.scan_component_manifests = lambda max_workers=None: []


def send_at_once() -> None:
    """Let the server's socket, and so all that it accepts, wait for no acknowledgement."""
    bind = starlette_server._bind_socket

    def bound(address: str, port: int, backlog: int) -> socket.socket:
        found = bind(address, port, backlog)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found

    starlette_server._bind_socket = bound


def forget_own_folders() -> None:
    """Take the folders inside `app` from the search path, where Streamlit puts the starter's first.

    `import mcp` would find `app/cli/mcp.py` before the package of that name.
    """
    sys.path[:] = [place for place in sys.path if APP not in Path(place).resolve().parents]


@asynccontextmanager
async def warmed_up(_app: st.App) -> AsyncIterator[None]:
    """The lifespan of the server: next to it webhooks are sent, the pages' modules loaded."""
    forget_own_folders()
    stopped = threading.Event()
    threading.Thread(target=_load_after, args=(stopped,), name="warm-up", daemon=True).start()
    try:
        with sending():
            yield
    finally:
        stopped.set()


def _load_after(stopped: threading.Event) -> None:
    if stopped.wait(DELAY_SECONDS):
        return
    for module in page_modules():
        if stopped.is_set():
            return
        importlib.import_module(module)
    importlib.import_module(full_name("app.api.server"))  # the first request of a program
    compress_figures()
    count_newest_run()


def count_newest_run() -> None:
    """Count the run of the newest study, which Agreement and Validators show first."""
    with unscoped(), open_store().read() as session:
        newest = select(Study.run_id).where(Study.run_id.is_not(None)).order_by(Study.id.desc())
        run_id = session.scalar(newest.limit(1))
        if run_id is not None:
            run_population(session, run_id)
            run_answers(session, run_id)
            groups_with_items(session, run_id)


def page_modules() -> list[str]:
    """The modules that the pages import, pandas first: every table needs it."""
    found = (name for path in FILES.values() for name in _imported(path))
    return list(dict.fromkeys(("pandas", *found)))


def _imported(path: Path) -> Iterator[str]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
        elif isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
