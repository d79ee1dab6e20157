"""The store as a whole through its operations and commands, and `inf status`."""

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from curation_runs import add_dataset
from records_world import make_run

from app.access.identity import Actor, owner
from app.operations import store as operations
from app.operations.overview import status as status_of
from curation.backups import BackupPlan, RestorePlan
from curation.run.starting import start_run
from db.errors import Refused
from db.events import list_events
from db.jobs import jobs
from db.people.rights import Rights
from db.run.runs import begin_run
from db.store.store import Store


def test_each_operation_is_refused_without_the_right(sqlite_store: Store, tmp_path: Path) -> None:
    eve = Actor("eve", rights=Rights(everywhere=frozenset({"curate", "release", "train"})))
    plan, path = BackupPlan(path=str(tmp_path / "a.zip")), str(tmp_path / "a.zip")

    def nothing(*_: Any) -> Any:
        raise AssertionError("it was launched")

    for call in (
        lambda: operations.back_up(eve, plan, nothing),
        lambda: operations.restore(eve, RestorePlan(path=path), nothing),
        lambda: operations.restore_as_job(eve, RestorePlan(path=path), nothing),
        lambda: operations.upgrade(eve, operations.StoreUpgrade()),
        lambda: operations.check(eve),
        lambda: operations.copy_from(eve, operations.StoreCopy(source=path), nothing),
    ):
        with pytest.raises(Refused, match="lacks a right"):
            call()


def test_a_config_of_before_is_read_and_a_path_is_made_absolute() -> None:
    assert RestorePlan.read({"path": "/x/a.zip"}).replace is False
    assert Path(BackupPlan(path="a.zip").path) == Path("a.zip").absolute()


def test_the_former_commands_do_the_same_with_a_note(
    sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    make_run(sqlite_store)
    made = inf("store", "backup", tmp_path / "new.zip", "--json")
    before = inf("backup", tmp_path / "old.zip", "--json")
    assert (made.code, before.code) == (0, 0) and made.json.keys() == before.json.keys()
    assert "`inf backup` is `inf store backup` now" in before.err and "now" not in made.err
    for old, new in (
        (("db", "check"), ("store", "check")),
        (("upgrade",), ("store", "upgrade")),
        (("db", "copy", tmp_path / "none.db"), ("store", "copy", tmp_path / "none.db")),
        (("restore", tmp_path / "new.zip"), ("store", "restore", tmp_path / "new.zip")),
    ):
        was, now = inf(*old, "--json"), inf(*new, "--json")
        assert (was.code, was.json) == (now.code, now.json), old
        assert f"`inf {' '.join(map(str, new[:2]))}`" in was.err, was.err
    assert now.code == 1 and now.json["code"] == "store_not_empty"
    assert "--replace" in now.json["remedy"]
    assert (
        inf("db", "upgrade", "--json").json["revision"]
        == inf("db", "check", "--json").json["revision"]
    )
    restored = inf("store", "restore", tmp_path / "new.zip", "--replace", "--json")
    assert restored.code == 0 and restored.json["rows"] == made.json["rows"]
    with sqlite_store.read() as session:
        assert list_events(session)[0][0].name == "restore"


def test_a_finished_job_cannot_be_cancelled(
    sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    assert inf("store", "backup", tmp_path / "a.zip").code == 0
    done = inf("jobs", "cancel", 1, "--json")
    assert done.code == 1 and "job 1 is done: there is nothing to cancel" in done.json["error"]
    with sqlite_store.write() as session:
        jobs.enqueue_job(session, "backup", {"path": "/x"})
        session.commit()
    assert inf("jobs", "cancel", 2, "--json").json["status"] == "cancelled"
    assert inf("jobs", "cancel", 2).code == 1


class Health(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(json.dumps({"status": "ok"}).encode())

    def log_message(self, *_: Any) -> None:
        """Nothing: the test's output stays its own."""


def test_status_names_the_store_the_server_what_runs_and_what_waits(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_DATABASE_URL", sqlite_store.url)
    monkeypatch.setattr(status_of, "SERVER", "http://127.0.0.1:9")
    found = inf("status", "--json").json
    assert found["server"] is None and found["jobs"] == found["runs"] == found["waiting"] == []
    run_id = make_run(sqlite_store)
    with sqlite_store.write() as session:
        jobs.enqueue_job(session, "backup", {"path": "/x"})
        session.commit()
    server = HTTPServer(("127.0.0.1", 0), Health)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(status_of, "SERVER", f"http://127.0.0.1:{server.server_port}")
    found = inf("status", "--json").json
    assert found == status_of.status(owner("cli:root")).as_json() | {"jobs": found["jobs"]}
    assert found["server"] == status_of.SERVER
    assert [(job["kind"], job["status"]) for job in found["jobs"]] == [("backup", "queued")]
    (waiting,) = found["waiting"]
    assert waiting["number"] > 0 and waiting["operation"] == f"groups list {run_id}"
    shown = inf("status").out
    assert f"inf groups list {run_id}" in shown and "kept groups of run" in shown
    server.shutdown()
    server.server_close()


def test_status_names_what_resumes_a_run_without_a_worker(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its machine is gone, and its rows say that it runs."""
    monkeypatch.setattr(status_of, "SERVER", "http://127.0.0.1:9")
    add_dataset(sqlite_store)
    with sqlite_store.write() as session:
        run_id = start_run(session, dataset="small", provider="offline").id
        begin_run(session, run_id)
        job = jobs.enqueue_job(session, "curate", {"run_id": run_id})
        jobs.claim_job(session, job.id)
        session.commit()
    assert [run["status"] for run in inf("status", "--json").json["runs"]] == ["running"]
    with sqlite_store.write() as session:
        jobs.finish_job(session, job.id, 1, "lost", error=jobs.SILENT)
        session.commit()
    found = inf("status", "--json").json
    assert [run["status"] for run in found["runs"]] == ["lost"]
    assert [each["operation"] for each in found["waiting"]] == [f"runs resume {run_id}"]
    assert f"inf runs resume {run_id}" in inf("status").out


def test_status_of_an_empty_store_names_the_command_that_makes_it(
    inf: Callable[..., Ran], tmp_path: Path
) -> None:
    url = f"sqlite:///{tmp_path / 'none.db'}"
    shown = inf("status", INF_DATABASE_URL=url)
    assert shown.code == 0 and "inf store upgrade" in shown.out and "(new)" in shown.out
    assert not (tmp_path / "none.db").exists()  # looking makes nothing
