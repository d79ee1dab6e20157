"""The app in a browser, for pictures: on the demo's store or on an empty one, page by page.

Used by `bench/moving_picture.py` and `bench/contact_sheet.py`. What a page writes (who read which
group, the language) goes to a copy of the store.
"""

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

import psutil  # noqa: E402
from browser import PATIENCE, settled  # noqa: E402
from browser import chromium_browser as chromium_browser  # noqa: E402
from playwright.sync_api import Browser, Page  # noqa: E402
from restartable import Restartable, restartable  # noqa: E402

from db.modules import run_module  # noqa: E402
from db.people.tours import end_tour  # noqa: E402
from db.store import schema  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import open_store  # noqa: E402
from db.values import LOCAL_ADMIN  # noqa: E402

owners_process(True)

HOME_HELP = "INF_HOME of a demo that is done (`make demo`); without it, the demo is run first"
# Streamlit's own signs that it draws; plots are drawn after them.
BUSY = (
    '[data-test-script-state="running"], [data-testid="stSkeleton"], [data-testid="stSpinner"], '
    ".stSpinner"
)
AFTER_MS = 900
# Our own components: mounted, and taller than the frame of an empty one.
MOUNTED = """() => [...document.querySelectorAll('[data-testid="stBidiComponentIsolated"]')]
  .every(node => node.getBoundingClientRect().height > 40)"""
MOUNT_STEPS, STEP_MS = 6, 200  # one without anything to show stays empty


def _inf(home: Path, *arguments: str) -> None:
    environment = os.environ | {"INF_HOME": str(home)}
    environment.pop("INF_DATABASE_URL", None)
    command = [sys.executable, *run_module("app.cli.main"), *arguments]
    subprocess.run(command, env=environment, check=True, stdout=sys.stderr)


def _copy_store(source: Path, copy: Path) -> None:
    """As of one moment, also while an app writes to it."""
    with closing(sqlite3.connect(source)) as one, closing(sqlite3.connect(copy)) as other:
        one.backup(other)


def _end_tour(url: str) -> None:
    """Pictures are of the pages, not of the first time that a person sees them."""
    store = open_store(url)
    with store.write() as session:
        end_tour(session, LOCAL_ADMIN)
        session.commit()
    store.close()


@contextmanager
def _served(folder: Path, url: str) -> Iterator[Restartable]:
    """The server, and at its end no process of its store: a supervisor, which outlives the server
    that started it, would go on writing to a folder that is removed."""
    try:
        with restartable(folder, url) as server:
            yield server
    finally:
        here = [each for each in psutil.process_iter() if _works_on(each, url)]
        for process in here:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        psutil.wait_procs(here, timeout=PATIENCE / 1000)


def _works_on(process: psutil.Process, url: str) -> bool:
    with suppress(psutil.Error):
        return process.pid != os.getpid() and process.environ().get("INF_DATABASE_URL") == url
    return False


@contextmanager
def demo_app(home: Path | None) -> Iterator[Restartable]:
    """The server of the app on a copy of the demo's store."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "home"
        if home is None:
            _inf(copy, "demo", "--no-serve")
        else:  # checkpoints are found where the store says they are
            left_out = shutil.ignore_patterns("checkpoints", "*.lock", "inf.db*")
            shutil.copytree(home, copy, ignore=left_out)
            _copy_store(home / "inf.db", copy / "inf.db")
            _inf(copy, "db", "upgrade")
        url = f"sqlite:///{copy}/inf.db"
        _end_tour(url)
        with _served(copy, url) as server:
            yield server


@contextmanager
def empty_app() -> Iterator[Restartable]:
    """The server of the app on a store that was just made."""
    with tempfile.TemporaryDirectory() as folder:
        url = f"sqlite:///{folder}/inf.db"
        store = open_store(url)
        schema.upgrade(store)
        store.close()
        _end_tour(url)
        with _served(Path(folder), url) as server:
            yield server


def new_window(browser: Browser, width: int, height: int, scheme: str = "light") -> Page:
    """An empty page of that size in CSS pixels, light or dark."""
    context = browser.new_context(
        viewport={"width": width, "height": height},
        color_scheme=scheme,  # type: ignore[arg-type]
        locale="en-GB",
        reduced_motion="reduce",
    )
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    return page


def visit(page: Page, address: str) -> None:
    """Open the address and wait until it is drawn, plots too."""
    page.goto(address)
    settle(page)


def settle(page: Page) -> None:
    """Wait until the page runs nothing and shows no placeholder."""
    settled(page)
    page.wait_for_function(f"() => !document.querySelector({BUSY!r})")
    for _ in range(MOUNT_STEPS):
        if page.evaluate(MOUNTED):
            break
        page.wait_for_timeout(STEP_MS)
    page.wait_for_timeout(AFTER_MS)
