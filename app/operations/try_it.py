"""Try it: examples of the newest training; search with models, which the model server does."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx

from app.access.identity import Actor
from app.access.permissions import require
from app.jobs.places import require_places
from app.jobs.processes import SAFE_PATH
from app.operations.acting import reading, record_read
from app.operations.models import ModelRow, folder_of, rows_of
from curation.rules.language import language_of
from db.assignment.hidden import is_hidden
from db.corpus.browsing import has_passages
from db.corpus.datasets import get_dataset
from db.errors import BadInput, InfError
from db.home import home
from db.machine import of_this_machine, own_group, stop_process, try_lock
from db.modules import run_module
from db.outcome.checkpoints import list_checkpoints
from db.requests import Request, option
from db.rows import Listed, Row
from db.store.scope import unscoped
from db.store.settings import logs
from db.store.store import Store, open_store
from db.tables import Checkpoint, Job
from trainer.report.compared.measures import index_stays
from trainer.settings.table import DEFAULT_BASE_MODEL

RIGHT = "try"
START_SECONDS = 60.0
SEARCH_SECONDS = 900.0
MAX_RESULTS = 100
_started: "list[subprocess.Popen[bytes]]" = []  # kept, so that ended processes are reaped
WORKS, FAILS, LOST = "works", "fails", "lost"
GAINS, UNCHANGED = "gains", "unchanged"
NONE_TRAINED = (
    "No example yet: it appears when a training with held-out groups is done. These compare the "
    "trained model with its base."
)
NOT_STORED = (
    "No example is stored for {model}: it was trained without held-out groups, by an earlier "
    "version, or in another store. Train again to see one."
)
NO_GROUP = {
    WORKS: "No such example: in none of the {groups} held-out groups does {model} follow the "
    "instruction where {base} ranks the same passage first under both instructions.",
    FAILS: "No such example: {model} follows the instruction in all {groups} held-out groups.",
    LOST: "No such example: {model} follows the instruction wherever {base} does.",
    GAINS: "No such example: {base} follows the instruction wherever {model} does.",
    UNCHANGED: "No such example: the training changed all {groups} held-out groups.",
}
ON_PAGE = (WORKS, FAILS, LOST)
ALL_HIDDEN = (
    "The examples are hidden from you: you may judge their items in a study that is not closed."
)


@dataclass(frozen=True)
class Examples:
    """The newest checkpoint's examples, by kind one that the actor may see.

    `missing`: why there is none at all. `why_not`: by kind, why that one is missing. `stays`: the
    sentence of a model whose index is still its base's.
    """

    missing: str = ""
    base: str = ""
    model: str = ""
    found: dict[str, Any] = field(default_factory=dict)
    shown: dict[str, dict[str, Any]] = field(default_factory=dict)
    why_not: dict[str, str] = field(default_factory=dict)
    stays: str = ""

    @property
    def kinds(self) -> tuple[str, ...]:
        """Those that were stored; trainings of earlier versions have no lost ones."""
        return tuple(kind for kind in ON_PAGE if kind in self.found)


class SearchOptions(Row):
    """What a search may name: trained models, and whether the dataset has passages."""

    models: tuple[ModelRow, ...]
    is_ready: bool


class Search(Request):
    """A search with models, in a dataset's passages or in an index that their base has made."""

    models: tuple[str, ...] = option(
        (DEFAULT_BASE_MODEL,),
        "A model by name, a checkpoint by number or folder; repeatable, to compare rankings.",
        names=("--model",),
    )
    dataset: str | None = option(None, "Dataset whose passages are searched.")
    index: str | None = option(
        None,
        "An index of your own: a folder (vectors.npy or index.faiss with ids.json, or parquet with "
        "id and vector), qdrant:URL/COLLECTION or elasticsearch:URL/INDEX. Texts that it lacks are "
        "those of the dataset.",
        title="Your own index",
    )
    instruction: str = option("", "Instruction; without one, the query alone.")
    query: str = option("", "Query.", names=(), metavar="QUERY")
    results: int = option(10, "How many passages.", ge=1, le=MAX_RESULTS)


class Hit(Row):
    """A passage of a ranking."""

    passage_id: str
    text: str
    score: float


class Searched(Row):
    """A ranking, the number of passages searched, the search time without loading; `note`: how an
    index of one's own was compared with the model."""

    model: str
    hits: tuple[Hit, ...]
    passages: int
    seconds: float
    note: str = ""


def options(actor: Actor, dataset_id: int | None) -> SearchOptions:
    """What a search may name, newest models first."""
    with reading(actor, RIGHT) as session:
        return SearchOptions(
            models=rows_of(list_checkpoints(session)),
            is_ready=dataset_id is not None and has_passages(session, dataset_id),
        )


def examples(
    actor: Actor,
    *,
    job_id: int | None = None,
    kinds: Sequence[str] = ON_PAGE,
    language: str = "",
) -> Examples:
    """The examples of the newest checkpoint, or of a training's, of these kinds, in the language
    where one is; without groups that the actor may be given to judge.

    What is shown is recorded as read, so that no later study gives the actor items of it.
    """
    with reading(actor, RIGHT) as session:
        newest = next(iter(list_checkpoints(session, job_id=job_id, limit=1)), None)
        if newest is None:
            return Examples(missing=NONE_TRAINED)
    # The actor may see the checkpoint: its job may be another's, and any study hides its groups.
    with unscoped(), open_store().read() as session:
        job = session.get(Job, newest.job_id) if newest.job_id is not None else None
        found = job.shown.get("examples") if job else None
        if not found:
            return Examples(missing=NOT_STORED, model=newest.path, base=newest.base_model)
        shown, why_not = {}, {}
        for kind in kinds:
            those = sorted(
                found.get(kind, {}).get("examples", []),
                key=lambda each: language_of(each["texts"]["P+"]) != language,
            )
            visible = (
                each
                for each in those
                if (group := _group_here(newest, each)) is None
                or not is_hidden(session, group, actor.name)
            )
            if one := next(visible, None):
                shown[kind] = one
            else:
                why_not[kind] = ALL_HIDDEN if those else NO_GROUP[kind]
        read = [_group_here(newest, each) for each in shown.values()]
    record_read([group for group in read if group is not None], actor)
    return Examples(
        base=newest.base_model,
        model=newest.path,
        found=found,
        shown=shown,
        why_not=why_not,
        stays=index_stays(newest),
    )


def _group_here(checkpoint: Checkpoint, example: dict[str, Any]) -> int | None:
    """The example's group in this store; None where its release was made elsewhere."""
    if checkpoint.release_id is None or not str(example["group"]).isdigit():
        return None
    return int(example["group"])


def search(actor: Actor, wanted: Search) -> Listed[Searched]:
    """The ranking of each of the models, which are named, or numbers of trained ones.

    Raises Refused without the right (an index of one's own is a place of the server), BadInput
    where the base of a model has not made the index.
    """
    require(actor, "server" if wanted.index else RIGHT)
    if not wanted.dataset and not wanted.index:
        raise BadInput(
            "nothing to search", "give `dataset=` or `index=`", code="search_texts_missing"
        )
    if wanted.dataset:
        with reading(actor, RIGHT) as session:
            get_dataset(session, wanted.dataset)
            if not actor.is_admin:
                require_places(session, {"models": wanted.models})
    models = [folder_of(actor, model) for model in wanted.models]
    return Listed[Searched].all([search_with(open_store(), each, wanted) for each in models])


def search_with(store: Store, model: str, wanted: Search) -> Searched:
    """The ranking by one model. Raises BadInput with the server's message."""
    request = wanted.model_dump(mode="json", exclude={"models"}) | {"model": model}
    port, token = _reach(store)
    try:
        answer = httpx.post(
            f"http://127.0.0.1:{port}/search",
            json=request,
            headers={"Authorization": f"Bearer {token}"},
            timeout=SEARCH_SECONDS,
            trust_env=False,
        )
    except httpx.HTTPError as error:
        raise InfError(
            f"lost the connection to the model server ({error})",
            "try again",
            code="model_server_lost",
        ) from error
    body: dict[str, Any] = answer.json()
    if answer.status_code != 200:
        raise BadInput(
            body.get("error", f"the model server answered {answer.status_code}"),
            "choose another model or dataset, or change the query",
            code="model_server_refused",
        )
    return Searched.model_validate(body | {"model": model})


def _reach(store: Store) -> tuple[int, str]:
    """Port and token of the running server; starts one if none answers."""
    home().mkdir(parents=True, exist_ok=True)
    with of_this_machine("model-server.lock").open("w") as lock:
        try_lock(lock.fileno(), home(), wait=True)
        found = _running()
        if found is None:
            process = _start(store)
            deadline = time.monotonic() + START_SECONDS
            while (found := _running()) is None:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise InfError(
                        "the model server did not start",
                        "see logs/model-server.log",
                        code="model_server_not_started",
                    )
                time.sleep(0.1)
    return found


def _running() -> tuple[int, str] | None:
    try:
        state = json.loads(of_this_machine("model-server.json").read_text())
        answer = httpx.get(
            f"http://127.0.0.1:{state['port']}/health",
            headers={"Authorization": f"Bearer {state['token']}"},
            timeout=5,
            trust_env=False,
        )
    except (OSError, ValueError, KeyError, httpx.HTTPError):
        return None
    return (state["port"], state["token"]) if answer.status_code == 200 else None


def stop_server() -> bool:
    """Stop the running server (it also stops when idle). Returns whether one was running."""
    if _running() is None:
        return False
    pid = int(json.loads(of_this_machine("model-server.json").read_text())["pid"])
    stop_process(pid)
    return True


def _start(store: Store) -> "subprocess.Popen[bytes]":
    logs().mkdir(parents=True, exist_ok=True)
    _started[:] = [process for process in _started if process.poll() is None]
    with (logs() / "model-server.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, *run_module("trainer.serve.model_server")],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=os.environ | SAFE_PATH | {"INF_DATABASE_URL": store.url},
            **own_group(),
        )
    _started.append(process)
    return process
