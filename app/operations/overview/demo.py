"""The demo: how far a store has it, and loading it in a process next to the app.

`inf demo --no-serve` does the steps; those whose result the store has are skipped. Its jobs show on
their pages, and it goes on when the page or the app is closed.
"""

import os
import subprocess
import sys
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from app.access.identity import Actor
from app.access.permissions import require
from app.jobs.processes import SAFE_PATH
from app.operations.acting import writing
from app.operations.overview.home import DEMO
from db.errors import Refused
from db.events import record_event
from db.machine import own_group
from db.modules import run_module
from db.store import schema
from db.store.scope import unscoped
from db.store.settings import logs
from db.store.store import open_store
from db.study.judgments import judgment_frame
from db.tables import Analysis, Checkpoint, Dataset, Evaluation, Release, Run, Study

RIGHT = "server"
JUDGE: Final = "recorded:B"
# By the language of its items, the last one for whoever has none of these: the newest is opened.
OWN_STUDIES: Final = {
    "es": "Diez tareas para usted",
    "de": "Zehn Aufgaben für Sie",
    "en": "Ten items for you",
}
LOG: Final = "demo.log"
TAIL_BYTES: Final = 4_000
_processes: "dict[str, subprocess.Popen[bytes]]" = {}  # by store; kept, so that they are reaped
_lock = Lock()


class DemoState(NamedTuple):
    """What a store has of the demo: ids of rows, None and empty for what is missing.

    `begun_run_id`: a run that can go on; `judged`: answers of JUDGE in the first study;
    `own_items`: languages of the items for the user; `indexed`: the passages' vectors are stored.
    """

    dataset_id: int | None = None
    run_id: int | None = None
    begun_run_id: int | None = None
    study_id: int | None = None
    judged: int = 0
    own_items: frozenset[str] = frozenset()
    release_id: int | None = None
    checkpoint: str | None = None
    evaluated: bool = False
    indexed: bool = False
    analyses: frozenset[str] = frozenset()


class Loading(NamedTuple):
    """How far the demo is: its current step, and the error that ended it, if one did.

    `error`: a line of the log, which may name paths of the server: only for who may use it.
    """

    step: str
    error: str


def prepare(actor: Actor) -> str:
    """Create or upgrade the store's tables; returns its address."""
    require(actor, RIGHT)
    store = open_store()
    schema.upgrade(store)
    return store.url


def close(actor: Actor) -> None:
    """Close this process's connections to the store: what serves the app opens its own."""
    require(actor, RIGHT)
    open_store().close()


def state(actor: Actor) -> DemoState:
    """What the store has of the demo."""
    require(actor, RIGHT)
    return _state()


def _state() -> DemoState:
    with unscoped(), open_store().read() as session:
        dataset_id = session.scalar(select(Dataset.id).where(Dataset.name == DEMO))
        if dataset_id is None:
            return DemoState()
        studies = select(Study.id).where(Study.dataset_id == dataset_id).order_by(Study.id)
        study_id = session.scalar(studies.limit(1))
        named = set(session.scalars(select(Study.name).where(Study.dataset_id == dataset_id)))
        rows = [] if study_id is None else judgment_frame(session, study_id)
        release_id, checkpoint, evaluated = _trained(session, dataset_id)
        analyses = select(Analysis.kind).where(Analysis.dataset_id == dataset_id)
        return DemoState(
            dataset_id,
            _run(session, dataset_id, "done"),
            _run(session, dataset_id, "created", "running", "paused", "failed", "cancelled"),
            study_id,
            sum(row.judge == JUDGE for row in rows),
            frozenset(code for code, name in OWN_STUDIES.items() if name in named),
            release_id,
            checkpoint,
            evaluated,
            _is_indexed(session, dataset_id),
            frozenset(session.scalars(analyses)),
        )


def _run(session: Session, dataset_id: int, *statuses: str) -> int | None:
    query = select(Run.id).where(Run.dataset_id == dataset_id, Run.status.in_(statuses))
    return session.scalar(query.order_by(Run.id.desc()).limit(1))


def _trained(session: Session, dataset_id: int) -> tuple[int | None, str | None, bool]:
    """The newest release, the model that was trained on it, and whether that was evaluated."""
    releases = select(Release.id).where(Release.dataset_id == dataset_id)
    release_id = session.scalar(releases.order_by(Release.id.desc()).limit(1))
    found = session.scalars(select(Checkpoint).where(Checkpoint.release_id == release_id)).first()
    if release_id is None or found is None:
        return release_id, None, False
    evaluated = select(exists().where(Evaluation.checkpoint_id == found.id))
    return release_id, found.path, bool(session.scalar(evaluated))


def _is_indexed(session: Session, dataset_id: int) -> bool:
    from trainer.serve.passage_vectors import has_vectors  # here: it loads NumPy

    return has_vectors(session, dataset_id)


def load(actor: Actor) -> None:
    """Start the demo for the current store. Raises Refused while it runs."""
    require(actor, RIGHT)
    url = open_store().url
    logs().mkdir(parents=True, exist_ok=True)
    with _lock:
        process = _processes.get(url)
        if process is not None and process.poll() is None:
            raise Refused(
                "the demo is being loaded already: its steps show on this page",
                "wait for the last one",
                code="demo_loading_already",
            )
        with writing(actor, RIGHT) as session, (logs() / LOG).open("wb") as log:
            record_event(session, actor.name, "demo.load", "demo")
            _processes[url] = subprocess.Popen(
                [sys.executable, *run_module("app.cli.main"), "demo", "--no-serve"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | SAFE_PATH | {"INF_DATABASE_URL": url},
                **own_group(),
            )


def dismiss(actor: Actor) -> None:
    """Forget the demo that failed: its message is gone for everybody, its log stays."""
    require(actor, RIGHT)
    url = open_store().url
    with _lock:
        process = _processes.get(url)
        if process is not None and process.poll() is not None:
            del _processes[url]


def loading(actor: Actor) -> Loading | None:
    """What the demo that this app started does now, or why it failed; None otherwise, and where
    it was completed since, as by `inf demo`. Whoever opens Home sees the step."""
    require(actor, "any")
    process = _processes.get(open_store().url)
    if process is None or process.poll() == 0:
        return None
    if process.poll() is not None and _is_complete(_state()):
        return None
    text = _tail(logs() / LOG)
    if process.poll() is None:
        return Loading(current_step(text), "")
    lines = [line for line in text.splitlines() if line.strip()]
    return Loading(current_step(text), lines[-1] if lines else f"exit status {process.poll()}")


def _is_complete(found: DemoState) -> bool:
    """Whether the store has what the last three steps make, which each need the ones before."""
    return found.evaluated and {"diversity", "coverage"} <= found.analyses


def current_step(text: str) -> str:
    """The last line of the log that names a step: "[2/11] Curate"; "starting" before the first."""
    found = [line for line in text.splitlines() if line.startswith("[") and "/" in line[:5]]
    return found[-1] if found else "starting"


def _tail(path: Path) -> str:
    """The end of the log; progress bars may make it long."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL_BYTES))
        return file.read().decode("utf-8", "replace")
