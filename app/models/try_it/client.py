"""Client of the model server; starts the server if none is running."""

import json
import os
import subprocess
import sys
import time
from dataclasses import dataclass
from typing import Any

import httpx

from app.jobs.processes import SAFE_PATH
from db.errors import BadInput, InfError
from db.machine import own_group, stop_process, wait_for_lock
from db.modules import run_module
from db.store.settings import home, logs
from db.store.store import Store

START_SECONDS = 60.0
SEARCH_SECONDS = 900.0
_started: "list[subprocess.Popen[bytes]]" = []  # kept, so that ended processes are reaped


@dataclass(frozen=True)
class Hit:
    """A passage of a ranking."""

    passage_id: str
    text: str
    score: float


@dataclass(frozen=True)
class Searched:
    """A ranking, the number of passages searched, and the search time without loading."""

    hits: list[Hit]
    passages: int
    seconds: float


def search_with(
    store: Store, model: str, dataset: str, *, instruction: str, query: str, results: int = 10
) -> Searched:
    """Search the passages of a dataset with a model. Raises BadInput with the server's message."""
    request = {
        "model": model,
        "dataset": dataset,
        "instruction": instruction,
        "query": query,
        "results": results,
    }
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
            code="lost_connection_model_server",
        ) from error
    body: dict[str, Any] = answer.json()
    if answer.status_code != 200:
        raise BadInput(
            body.get("error", f"the model server answered {answer.status_code}"),
            code="model_server_refused",
        )
    hits = [Hit(hit["passage_id"], hit["text"], hit["score"]) for hit in body["hits"]]
    return Searched(hits, body["passages"], body["seconds"])


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
                        code="model_server_did_not",
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
