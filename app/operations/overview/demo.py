"""The demo: how far a store has it, and loading it in a process next to the app.

`inf demo --no-serve` does the steps; those whose result the store has are skipped. Its jobs show on
their pages, and it goes on when the page or the app is closed.
"""

import json
import os
import subprocess
import sys
from collections import defaultdict
from pathlib import Path
from threading import Lock
from typing import Final, NamedTuple

from sqlalchemy import exists, select
from sqlalchemy.orm import Session

from analysis.embed.model_source import DEFAULT_MODEL
from app.access.identity import Actor
from app.access.permissions import require
from app.jobs.processes import SAFE_PATH
from app.operations.acting import writing
from app.operations.overview.home import DEMO
from curation.recorded.recording import SHIPPED
from db.errors import Refused
from db.events import record_event
from db.jobs.jobs import enqueue_job, record_metrics
from db.machine import own_group
from db.modules import run_module
from db.store import schema
from db.store.scope import unscoped
from db.store.settings import logs
from db.store.store import open_store
from db.study.judgments import judgment_frame
from db.tables import Analysis, Checkpoint, Dataset, Evaluation, Job, Release, Run, Study, utc_now
from trainer.launch.request import TrainStart
from trainer.settings.settings import split_pairs

RIGHT = "server"
JUDGE: Final = "recorded:B"
# By the language of its items, the last one for whoever has none of these: the newest is opened.
OWN_STUDIES: Final = {
    "es": "Diez tareas para usted",
    "de": "Zehn Aufgaben für Sie",
    "en": "Ten items for you",
}
LOG: Final = "demo.log"
TRAINING: Final = "training.json"
RECORDED: Final = "recording"  # who started the training that was not run here
RECORDED_LABEL: Final = (
    "A recorded training: it ran on another machine on {}, not here. To train on this machine: "
    "pip install 'inf-studio[demo]', then inf demo."
)
TAIL_BYTES: Final = 4_000
_processes: "dict[str, subprocess.Popen[bytes]]" = {}  # by store; kept, so that they are reaped
_lock = Lock()


class DemoState(NamedTuple):
    """What a store has of the demo: ids of rows, None and empty for what is missing.

    `begun_run_id`: a run that can go on; `judged`: answers of JUDGE in the first study;
    `own_items`: languages of the items for the user; `indexed`: the passages' vectors are stored;
    `recorded_training`: the job that shows the shipped one; `base_evaluated`: the base model alone.
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
    recorded_training: int | None = None
    base_evaluated: bool = False


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
            session.scalar(select(Job.id).where(Job.started_by == RECORDED).limit(1)),
            bool(session.scalar(select(exists().where(Evaluation.model == DEFAULT_MODEL)))),
        )


def store_recorded_training(actor: Actor) -> None:
    """Store the shipped training of the demo as a training that is done, labelled as recorded.

    Its curves and scores are those of `inf demo` with the extra [demo], from another machine.
    """
    require(actor, RIGHT)
    recording = json.loads((SHIPPED / TRAINING).read_text(encoding="utf-8"))
    release = str(_state().release_id)
    with writing(actor, RIGHT) as session:
        wanted = TrainStart(release=release, settings=split_pairs(recording["settings"].split()))
        job = enqueue_job(session, "train", wanted.config(), started_by=RECORDED)
        job.status, job.started_at, job.finished_at = "done", utc_now(), utc_now()
        label = RECORDED_LABEL.format(recording["recorded_at"])
        job.result = {**recording["result"], "recorded": label}
        job.shown = {"probes": recording["probes"]}
        by_step: defaultdict[int, dict[str, float]] = defaultdict(dict)
        for name, points in recording["series"].items():
            for step, value in points:
                by_step[step][name] = value
        for step, values in by_step.items():
            record_metrics(session, job.id, step, values)


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
