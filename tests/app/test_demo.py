"""`inf demo`: the app is there while the training still runs, and nothing is left when it ends."""

from collections.abc import Callable
from pathlib import Path

import httpx
import psutil
import pytest
from conftest import Ran, count_rows
from curation_runs import wait_for
from live_server import serving
from sqlalchemy import select

from db.store.store import open_store
from db.tables import Job

pytestmark = pytest.mark.long


def test_the_app_opens_before_the_training_and_an_interrupted_demo_goes_on(
    own_home: Path, tmp_path: Path, inf_process: Callable[..., Ran]
) -> None:
    with serving(tmp_path, "demo") as server:
        store = open_store()
        assert count_rows(store, "release") == 1 and count_rows(store, "checkpoint") == 0
        assert count_rows(store, "group") == 602

        def training() -> int | None:
            with store.read() as session:
                job = session.scalars(select(Job).where(Job.kind == "train")).one_or_none()
                return None if job is None else job.pid

        pid = wait_for(training)
        assert httpx.get(server.url).status_code == 200, "the training runs and the app answers"
        beside = psutil.Process(server.process.pid).children(recursive=True)
        assert any(each.pid == pid for each in beside)
    _, alive = psutil.wait_procs(beside, timeout=30)
    assert not [each for each in alive if "demo" in each.cmdline()]
    text = server.log.read_text()
    assert "a language model" in text and "[8/12] Create a release" in text
    store.close()
