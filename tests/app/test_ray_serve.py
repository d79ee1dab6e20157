"""`examples/vllm_on_ray_serve.py` on a real Ray cluster, with a stand-in for vLLM, under a run."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import httpx
import pytest
from conftest import require
from curation_runs import add_dataset, stored_calls
from live_server import free_port
from ray_nodes import PROGRAM, WAIT_SECONDS, LocalRay, cluster_of, until

from db.modules import run_module
from db.run.runs import funnel, get_run
from db.store.store import Store

TESTS = Path(__file__).resolve().parent.parent
EXAMPLES = TESTS.parent / "examples"
PAIRS = 40
KEY = "sk-only-for-this-test-0123456789"
# What takes vLLM's words and serves as the tests' server does; it notes who it is and its calls.
STAND_IN = """#!{python}
import argparse, os, sys, time
sys.path.insert(0, {tests!r})
from aiohttp import web
from openai_server import Server
parser = argparse.ArgumentParser()
parser.add_argument("serve"), parser.add_argument("model"), parser.add_argument("--host")
parser.add_argument("--port", type=int), parser.add_argument("--served-model-name", dest="name")
parser.add_argument("--max-model-len", type=int, required=True)
words = parser.parse_args()
server = Server(latency_seconds=0.2, key=os.environ["VLLM_API_KEY"], models=(words.name,))
server.port = words.port
with server, open({folder!r} + "/" + str(os.getpid()), "w") as notes:
    while True:
        time.sleep(0.1)
        notes.seek(0)
        notes.write(str(sum(server.answered.values())))
        notes.flush()
"""


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[LocalRay]:
    """A head and two nodes, on whose PATH a `vllm` stands that is our stand-in."""
    if find_spec("fastapi") is None:
        require("ray", "Ray Serve is not installed: ray[serve]")
    program = tmp_path / "bin" / "vllm"
    program.parent.mkdir()
    notes = tmp_path / "notes"
    notes.mkdir()
    program.write_text(STAND_IN.format(python=sys.executable, tests=str(TESTS), folder=str(notes)))
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"
    with cluster_of(2, VLLM_API_KEY=KEY, PATH=path) as cluster:
        yield cluster


def answered(folder: Path) -> dict[int, int]:
    """How many answers each stand-in gave, by its process."""
    return {int(one.name): int(one.read_text() or 0) for one in folder.iterdir()}


@pytest.mark.slow
@pytest.mark.long
def test_a_run_ends_on_two_replicas_of_which_one_is_killed_and_replaced(
    fleet: LocalRay, sqlite_store: Store, own_home: Path, tmp_path: Path
) -> None:
    add_dataset(sqlite_store, pairs=PAIRS)
    notes, port = tmp_path / "notes", free_port()
    serve, environment = str(PROGRAM.with_name("serve")), os.environ | fleet.environment
    at = ("--address", fleet.gcs)
    subprocess.run([serve, "start", *at, "--http-port", str(port)], env=environment, check=True)
    application = ("--working-dir", ".", "vllm_on_ray_serve:build")
    arguments = ("model=/models/tiny", "name=tiny", "replicas=2", "gpus=1", "max_model_len=512")
    served = subprocess.Popen(
        [serve, "run", *at, *application, *arguments], env=environment, cwd=EXAMPLES
    )
    url = f"http://127.0.0.1:{port}/v1"
    try:
        until(lambda: len(list(notes.iterdir())) == 2 and answers(url))
        refused = httpx.get(f"{url}/models")
        listed = httpx.get(f"{url}/models", headers={"Authorization": f"Bearer {KEY}"})
        assert refused.status_code == 401
        assert [one["id"] for one in listed.json()["data"]] == ["tiny"]
        words = ("--dataset", "small", "--provider", "openai", "--set", "model=tiny")
        run = subprocess.Popen(
            [sys.executable, *run_module("app.cli.main"), "curate", *words, "--concurrency", "8"],
            env=os.environ | {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": KEY},
        )
        until(lambda: min(answered(notes).values()) >= 5)  # both work
        killed = max(answered(notes))
        os.kill(killed, signal.SIGKILL)
        assert run.wait(WAIT_SECONDS) == 0
        until(lambda: len(list(notes.iterdir())) == 3)  # in its place came another
    finally:
        served.kill()  # the cluster ends with the fixture
        served.wait()
    with sqlite_store.read() as session:
        found = funnel(session, get_run(session, 1).id)
        assert get_run(session, 1).status == "done"
    assert found.finished == found.pairs == PAIRS
    assert stored_calls(sqlite_store) >= 8 * PAIRS - 8


def answers(url: str) -> bool:
    """Whether the address reaches a replica."""
    try:
        return httpx.get(f"{url}/models").status_code == 401
    except httpx.TransportError:
        return False
