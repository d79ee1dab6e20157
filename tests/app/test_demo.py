"""`inf demo`: the app is there while the training still runs, and nothing is left when it ends."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest
from app_pages import open_page, words
from conftest import Ran, count_rows
from curation_runs import wait_for
from live_server import serving
from sqlalchemy import select

from app.cli.demo import THREADS, WHY_MINUTES
from db.modules import run_module
from db.store import schema
from db.store.store import Store, open_store
from db.tables import Base, Job

README = Path(__file__).parents[2] / "README.md"
pytestmark = [pytest.mark.long, pytest.mark.timeout(2400)]  # trains for three minutes of CPU


def test_an_interrupted_demo_goes_on_and_a_second_one_repeats_nothing(
    own_home: Path, tmp_path: Path, inf_process: Callable[..., Ran]
) -> None:
    store = open_store()
    schema.upgrade(store)
    first = killed_after_the_first_study(store, tmp_path / "killed.log")
    assert "[3/15] Create a study" in first and "[10/15]" not in first
    once = rows_of(store, "dataset", "passage", "pair", "run", "call", "group")
    assert once["group"] == 602 and once["run"] == 1

    stopped = the_app_opens_before_the_training(store, tmp_path)
    assert not [number for number in (1, 2, 3) if f"[{number}/15]" in stopped], "repeated"
    assert "[10/15] Create a release" in stopped and "[11/15]" in stopped
    assert "a language model" in stopped and WHY_MINUTES in stopped
    assert re.search(r"200 steps, about \S+ \S+.* of training and", stopped), "measured here"
    assert rows_of(store, *once) == once
    assert rows_of(store, "study", "release") == {"study": 4, "release": 1}

    rest = inf_process("demo", "--no-serve", timeout=1200)
    assert rest.code == 0, rest.err
    assert "[10/15]" not in rest.out and "[11/15]" in rest.out and "[15/15] Coverage" in rest.out
    assert rows_of(store, *once) == once
    assert rows_of(store, "study", "release", "checkpoint") == {
        "study": 4,
        "release": 1,
        "checkpoint": 1,
    }
    home = words(open_page("home")).replace("\\", "")
    assert home_of_the_readme() in home, home

    everything = rows_of(store, *(table for table in Base.metadata.tables))
    second = inf_process("demo", "--no-serve")
    assert second.code == 0 and "/15]" not in second.out
    assert rows_of(store, *everything) == everything
    store.close()


def home_of_the_readme() -> str:
    """The instruction flip that README says Home shows, as Home prints it."""
    said = re.search(r"instruction flip (0\.\d+) → (0\.\d+)", README.read_text())
    assert said is not None
    return f"{float(said[1]):.2f} → {float(said[2]):.2f}"


def rows_of(store: Store, *tables: str) -> dict[str, int]:
    """How many rows each table holds."""
    return {table: count_rows(store, table) for table in tables}


def killed_after_the_first_study(store: Store, log: Path) -> str:
    """The output of a demo that is killed between two steps, once a study is there."""
    with (
        log.open("wb") as output,
        subprocess.Popen(
            [sys.executable, *run_module("app.cli.main"), "demo", "--no-serve"],
            env=os.environ,
            stdout=output,
            stderr=output,
        ) as process,
    ):
        wait_for(lambda: count_rows(store, "study"), seconds=400)
        os.kill(process.pid, signal.SIGKILL)
    return log.read_text()


def the_app_opens_before_the_training(store: Store, folder: Path) -> str:
    """The output of a demo that is ended while its training runs; its processes end with it."""
    with serving(folder, "demo") as server:
        assert count_rows(store, "release") == 1 and count_rows(store, "checkpoint") == 0

        def training() -> int | None:
            with store.read() as session:
                jobs = session.scalars(select(Job).where(Job.kind == "train")).all()
                found = [job.pid for job in jobs if not job.config.get("estimate")]
                return found[0] if found else None

        pid = wait_for(training, seconds=400)
        assert httpx.get(server.url).status_code == 200, "the training runs and the app answers"
        beside = psutil.Process(server.process.pid).children(recursive=True)
        assert any(each.pid == pid for each in beside)
        # as many threads on every machine: other sums would end in other figures
        assert psutil.Process(pid).environ()["OMP_NUM_THREADS"] == THREADS
    _, alive = psutil.wait_procs(beside, timeout=30)
    assert not [each for each in alive if "demo" in each.cmdline()]
    return server.log.read_text()
