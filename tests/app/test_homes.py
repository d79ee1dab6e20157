"""Files by store, not by path: a moved INF_HOME, a restored store, two servers with their own."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from exporting import export
from full_store import fill
from sqlalchemy import text

from app.access.identity import owner
from app.jobs import launching, processes, supervisors
from app.jobs.supervisor import supervise
from app.operations import jobs as operations
from app.operations.jobs import JobLog
from db import home as homes
from db.jobs import jobs
from db.outcome.trainings import count_trainings
from db.store import schema
from db.store.backup import restore_backup, write_backup
from db.store.store import Store, open_store
from db.tables import Checkpoint, Evaluation, Job

TESTS = Path(__file__).resolve().parent.parent
OUTSIDE = "/somewhere/else/release"


@pytest.fixture
def first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The INF_HOME of the first server."""
    monkeypatch.setenv("INF_HOME", str(tmp_path / "first"))
    return tmp_path / "first"


def with_paths(store: Store, folder: Path) -> None:
    """A training in the folder, measured, and one of a folder outside of it."""
    with store.write() as session:
        config = {"release": str(folder / "releases/one"), "settings": {"guard": OUTSIDE}}
        job = jobs.enqueue_job(session, "train", config)
        jobs.claim_job(session, job.id)
        jobs.note_process(session, job.id, 1, 1, str(folder / "logs/job-1-1.log"))
        result = {"path": str(folder / "checkpoints/one"), "seen": [str(folder / "a"), OUTSIDE]}
        jobs.finish_job(session, job.id, 1, "done", result=result)
        for path in (str(folder / "checkpoints/one"), OUTSIDE):
            session.add(Checkpoint(path=path, base_model="tiny", config={}))
            session.add(Evaluation(model=path, benchmark="b", metrics={}))
        session.add(Evaluation(model="org/model", benchmark="b", metrics={}))
        session.commit()


def paths(store: Store) -> dict[str, object]:
    with store.read() as session:
        job = session.get_one(Job, 1)
        return {
            "config": job.config,
            "result": job.result,
            "log": job.log_path,
            "checkpoints": [row.path for row in session.query(Checkpoint).order_by(Checkpoint.id)],
            "models": [row.model for row in session.query(Evaluation).order_by(Evaluation.id)],
        }


def expected(folder: Path) -> dict[str, object]:
    return {
        "config": {"release": f"{folder}/releases/one", "settings": {"guard": OUTSIDE}},
        "result": {"path": f"{folder}/checkpoints/one", "seen": [f"{folder}/a", OUTSIDE]},
        "log": f"{folder}/logs/job-1-1.log",
        "checkpoints": [f"{folder}/checkpoints/one", OUTSIDE],
        "models": [f"{folder}/checkpoints/one", OUTSIDE, "org/model"],
    }


def every_byte(store: Store) -> str:
    """What the store holds as text, whatever the models make of it."""
    with store.engine.connect() as connection:
        found = [
            connection.execute(text(f"SELECT * FROM {table}")).all()
            for table in ("job", "checkpoint", "evaluation", "release")
        ]
    return str(found)


def test_paths_in_the_home_move_with_it_and_others_stay(
    store: Store, first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_paths(store, first)
    assert paths(store) == expected(first)
    assert str(first) not in every_byte(store) and OUTSIDE in every_byte(store)
    monkeypatch.setenv("INF_HOME", str(tmp_path / "second"))
    assert paths(store) == expected(tmp_path / "second")
    with store.read() as session:
        seen = session.query(Checkpoint).filter_by(path=f"{tmp_path}/second/checkpoints/one").all()
        assert [row.id for row in seen] == [1]
        release = f"{tmp_path}/second/releases/one"
        assert count_trainings(session) == 1
        assert count_trainings(session, without_releases=[release]) == 0


def test_a_store_of_the_version_before_gets_paths_from_the_home_on_and_back(
    store: Store, first: Path
) -> None:
    with_paths(store, first)
    schema.downgrade(store, "0043")
    before = every_byte(store)
    assert f"{first}/checkpoints/one" in before and "$INF_HOME" not in before
    schema.upgrade(store)
    assert str(first) not in every_byte(store) and OUTSIDE in every_byte(store)
    assert paths(store) == expected(first)
    schema.downgrade(store, "0043")
    assert every_byte(store) == before


def test_a_restored_store_names_the_files_of_its_own_home(
    store: Store, first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with_paths(store, first)
    one, two = tmp_path / "one.backup", tmp_path / "two.backup"
    of_first = write_backup(store, one)["content_sha256"]
    monkeypatch.setenv("INF_HOME", str(tmp_path / "second"))
    assert write_backup(store, two)["content_sha256"] == of_first
    other = open_store(f"sqlite:///{tmp_path / 'restored.db'}")
    schema.upgrade(other)
    restore_backup(other, one)
    assert paths(other) == expected(tmp_path / "second")
    other.close()


@pytest.mark.long
def test_a_release_in_a_moved_home_is_found_verified_and_listed(
    sqlite_store: Store,
    first: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    inf: Callable[..., Ran],
    inf_process: Callable[..., Ran],
    there: dict[str, str],
) -> None:
    fill(sqlite_store)
    export(sqlite_store, first / "releases/mine", dataset="world")
    moved = tmp_path / "moved"
    first.rename(moved)
    monkeypatch.setenv("INF_HOME", str(moved))
    newest = inf("releases", "list", "--json").json["data"][0]
    assert newest["path"] == str(moved / "releases/mine")
    words = ("releases", "push", newest["id"], "--repo", "ada/mine", "--dry-run", "--json")
    pushed = inf_process(*words, **there)
    assert pushed.code == 0, pushed.err


def test_the_id_of_a_home_is_one_for_all_processes_and_moves_with_it(
    first: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = homes.home_id()
    assert len(found) == 32 and homes.home_id() == found
    assert sorted(path.name for path in first.iterdir()) == ["home-id"]
    first.rename(tmp_path / "moved")
    monkeypatch.setenv("INF_HOME", str(tmp_path / "moved"))
    assert homes.home_id() == found
    monkeypatch.setenv("INF_HOME", str(tmp_path / "other"))
    assert homes.home_id() != found


@pytest.mark.long
def test_a_job_is_run_by_the_server_that_has_its_files_and_its_log_is_not_mixed_up(
    store: Store,
    first: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    inf: Callable[..., Ran],
) -> None:
    monkeypatch.setattr(processes, "ENTRY", "toy_jobs")
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)  # here: by hand, below
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    config = {"steps": 1, "ending": "talks"}
    job_id = launching.launch(store, "curate", config, actor=owner("Ada"))
    pushed = launching.launch(store, "push", {"ending": "tells"}, actor=owner("Ada"))
    second = tmp_path / "second"
    monkeypatch.setenv("INF_HOME", str(second))
    assert supervise(store, idle_seconds=0.5) == 0, "the other server leaves it"
    shown = operations.show(owner("Ada"), job_id)
    assert "in the INF_HOME there" in shown.message
    assert "has that INF_HOME" in (shown.remedy or "")
    operations.cancel(owner("Ada"), pushed)
    operations.resume(owner("Ada"), pushed)
    assert supervise(store, idle_seconds=0.5) == 0, "its release is there, whoever resumes it"
    monkeypatch.setenv("INF_HOME", str(first))
    assert supervise(store, idle_seconds=0.5) == 2
    assert "counted to 1" in inf("jobs", "logs", str(job_id)).out
    monkeypatch.setenv("INF_HOME", str(second))
    (second / "logs").mkdir(parents=True, exist_ok=True)
    (second / f"logs/job-{job_id}-1.log").write_text("of another store\n")
    told = inf("jobs", "logs", str(job_id)).out
    assert "of another store" not in told and "INF_HOME of another server" in told
    assert "INF_HOME of another server" in operations.log(owner("Ada"), JobLog(job_id=job_id))
