"""Commands started in a folder that holds modules named like ours: none of them is imported.

`tests/app/test_job_kinds.py` looks at how children are started; here they run.
"""

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pytest
from conftest import Ran
from live_server import serving

from app.jobs.ray_cluster import entrypoint_of
from db.jobs import jobs
from db.modules import run_module
from db.store.store import Store

pytestmark = pytest.mark.long

NAMES = ("app", "db", "analysis", "trainer", "curation", "inf_studio", "hatch_build")


@pytest.fixture
def hostile(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: each module writes its name into `taken` when it is imported."""
    folder = tmp_path / "hostile"
    folder.mkdir()
    taken = folder / "taken"
    for name in NAMES:
        (folder / f"{name}.py").write_text(
            f"with open({str(taken)!r}, 'a') as file:\n    file.write('{name}\\n')\n"
            f"raise RuntimeError('the {name}.py of the current folder was imported')\n"
        )
    monkeypatch.chdir(folder)
    return folder


def require_untouched(folder: Path) -> None:
    taken = folder / "taken"
    assert not taken.exists(), taken.read_text()


def test_the_installed_script_makes_a_store_and_waits_for_a_job(hostile: Path) -> None:
    script = Path(sys.executable).with_name("inf")
    (hostile / "pairs.csv").write_text("query_id,query,passage_id,passage\nq,how far,p,far\n")
    words = "import --dataset moon --pairs pairs.csv --source ours --licence cc0-1.0"
    for command in ("db upgrade", "db check", words):
        done = subprocess.run([script, *command.split()], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    require_untouched(hostile)


def test_a_detached_job_is_taken_by_a_supervisor_and_done(
    hostile: Path, sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    done = inf("backup", str(hostile / "all.zip"), "--detach", "--json")
    assert done.code == 0, done.err
    deadline = time.monotonic() + 120
    while True:
        with sqlite_store.read() as session:
            (job,) = jobs.list_jobs(session)
        if job.status in jobs.OVER:
            break
        assert time.monotonic() < deadline, job.status
        time.sleep(0.2)
    assert job.status == "done", job.error
    require_untouched(hostile)


def test_the_app_serves_its_first_page(hostile: Path, sqlite_store: Store) -> None:
    with serving(hostile) as server:
        assert httpx.get(f"{server.url}/health").status_code == 200
    require_untouched(hostile)


def test_what_a_ray_node_runs_finds_our_job_entry(
    hostile: Path, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_RAY_PYTHON", sys.executable)
    with sqlite_store.write() as session:
        job_id = jobs.enqueue_job(session, "backup", {"path": str(hostile / "all.zip")}).id
        job = jobs.claim_job(session, job_id)
        session.commit()
    assert job is not None
    done = subprocess.run(shlex.split(entrypoint_of(job)), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (hostile / "all.zip").exists()
    require_untouched(hostile)


@pytest.mark.slow
@pytest.mark.parametrize("module", ["trainer.serve.model_server", "trainer.launch.follow"])
def test_the_model_server_and_the_other_processes_of_a_training_import_ours(
    hostile: Path, sqlite_store: Store, module: str
) -> None:
    variables = os.environ | {"INF_MODEL_SERVER_IDLE_SECONDS": "0", "WORLD_SIZE": "none"}
    done = subprocess.run(
        [sys.executable, *run_module(module)],
        env=variables,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert "of the current folder" not in done.stderr
    require_untouched(hostile)
