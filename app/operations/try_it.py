"""Try it: search with models; the model server does it, started where none is running."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx

from app.access.identity import Actor
from app.access.permissions import require
from app.jobs.places import require_places
from app.jobs.processes import SAFE_PATH
from app.operations.acting import reading
from db.corpus.datasets import get_dataset
from db.errors import BadInput, InfError
from db.machine import own_group, stop_process, wait_for_lock
from db.modules import run_module
from db.requests import Request, option
from db.rows import Row
from db.store.settings import home, logs
from db.store.store import Store, open_store
from trainer.settings.table import DEFAULT_BASE_MODEL

START_SECONDS = 60.0
SEARCH_SECONDS = 900.0
MAX_RESULTS = 100
_started: "list[subprocess.Popen[bytes]]" = []  # kept, so that ended processes are reaped


class Search(Request):
    """A search with models, in a dataset's passages or in an index that their base has made."""

    models: tuple[str, ...] = option(
        (DEFAULT_BASE_MODEL,),
        "A model by name, or a checkpoint by folder; repeatable, to compare rankings.",
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
    query: str = option("", "Query.")
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


def search(actor: Actor, wanted: Search) -> Iterator[Searched]:
    """The ranking of each of the models, as it is found.

    Raises Refused without the right (an index of one's own is a place of the server), BadInput
    where the base of a model has not made the index.
    """
    require(actor, "server" if wanted.index else "try")
    if not wanted.dataset and not wanted.index:
        raise BadInput(
            "nothing to search", "give `dataset=` or `index=`", code="search_texts_missing"
        )
    if wanted.dataset:
        with reading(actor, "try") as session:
            get_dataset(session, wanted.dataset)
            require_places(session, {"models": wanted.models})
    return (search_with(open_store(), model, wanted) for model in wanted.models)


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
            code="model_server_refused",
        )
    return Searched.model_validate(body | {"model": model})


def _reach(store: Store) -> tuple[int, str]:
    """Port and token of the running server; starts one if none answers."""
    home().mkdir(parents=True, exist_ok=True)
    with (home() / "model-server.lock").open("w") as lock:
        wait_for_lock(lock.fileno())
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
        state = json.loads((home() / "model-server.json").read_text())
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
    pid = int(json.loads((home() / "model-server.json").read_text())["pid"])
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
