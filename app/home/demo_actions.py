"""Loading the demo from Home: `inf demo --no-serve` in a detached process, and how far it is.

Its steps are those of the command, skipped where the store has their result; its jobs show on their
pages, and it goes on when the page or the app is closed.
"""

import os
import subprocess
import sys
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from sqlalchemy import select

from app.access.session_user import action, notify, require_permission
from app.home.actions import DEMO
from app.jobs.processes import SAFE_PATH
from db.errors import Refused
from db.events import record_event
from db.machine import own_group
from db.modules import run_module
from db.store.scope import unscoped
from db.store.settings import logs
from db.store.store import open_store
from db.tables import Analysis, Checkpoint, Dataset, Evaluation, Release

LOG: Final = "demo.log"
TAIL_BYTES: Final = 4_000
_processes: "dict[str, subprocess.Popen[bytes]]" = {}  # by store; kept, so that they are reaped
_lock = Lock()


class Loading(NamedTuple):
    """How far the demo is: its current step, and the error that ended it, if one did.

    `error`: a line of the log, which may name paths of the server: only for who may use it.
    """

    step: str
    error: str


@action
def load_demo() -> None:
    """Start the demo for the current store. Raises Refused while it runs."""
    user, store = require_permission("server"), open_store()
    logs().mkdir(parents=True, exist_ok=True)
    with _lock:
        process = _processes.get(store.url)
        if process is not None and process.poll() is None:
            raise Refused(
                "the demo is being loaded already: its steps show on this page",
                code="demo_loading_already",
            )
        with (logs() / LOG).open("wb") as log:
            _processes[store.url] = subprocess.Popen(
                [sys.executable, *run_module("app.cli.main"), "demo", "--no-serve"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | SAFE_PATH | {"INF_DATABASE_URL": store.url},
                **own_group(),
            )
    with store.write() as session:
        record_event(session, user.name, "demo.load", "demo")
        session.commit()
    notify("The demo is being loaded. Its groups are there within a minute.")


@action
def dismiss_demo() -> None:
    """Forget the demo that failed: its message is gone for everybody, its log stays."""
    require_permission("server")
    url = open_store().url
    with _lock:
        process = _processes.get(url)
        if process is not None and process.poll() is not None:
            del _processes[url]


def demo_loading() -> Loading | None:
    """What the demo that this app started does now, or why it failed; None otherwise, and where
    it was completed since, as by `inf demo`."""
    process = _processes.get(open_store().url)
    if process is None or process.poll() == 0:
        return None
    if process.poll() is not None and _is_complete():
        return None
    text = _tail(logs() / LOG)
    if process.poll() is None:
        return Loading(current_step(text), "")
    lines = [line for line in text.splitlines() if line.strip()]
    return Loading(current_step(text), lines[-1] if lines else f"exit status {process.poll()}")


def _is_complete() -> bool:
    """Whether the store has what the last three steps make, which each need the ones before."""
    of_demo = Dataset.name == DEMO
    analyses = select(Analysis.kind).join(Dataset, Dataset.id == Analysis.dataset_id)
    evaluated = (
        select(Evaluation.id)
        .join(Checkpoint, Checkpoint.id == Evaluation.checkpoint_id)
        .join(Release, Release.id == Checkpoint.release_id)
        .join(Dataset, Dataset.id == Release.dataset_id)
    )
    with unscoped(), open_store().read() as session:  # the same for all who see the message
        kinds = set(session.scalars(analyses.where(of_demo)))
        is_evaluated = session.scalars(evaluated.where(of_demo).limit(1)).first() is not None
    return is_evaluated and {"diversity", "coverage"} <= kinds


def current_step(text: str) -> str:
    """The last line of the log that names a step: "[2/11] Curate"; "starting" before the first."""
    found = [line for line in text.splitlines() if line.startswith("[") and "/" in line[:5]]
    return found[-1] if found else "starting"


def _tail(path: Path) -> str:
    """The end of the log; progress bars may make it long."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return file.read().decode("utf-8", "replace")
