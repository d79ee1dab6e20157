"""A store that cannot be opened, and what commands say of wrong arguments: one JSON object each."""

import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import require
from live_server import free_port

from db.errors import Refused
from db.jobs import jobs
from db.store.store import Store


@pytest.mark.long
def test_a_store_that_cannot_be_opened_is_told_in_words(tmp_path: Path, inf: Any) -> None:
    (tmp_path / "file").write_text("no database, only words " * 100)
    for environment, words in (
        ({"INF_DATABASE_URL": "postgresql://me:secret@127.0.0.1:1/x"}, "cannot be reached"),
        ({"INF_DATABASE_URL": f"sqlite:///{tmp_path}/file"}, "is not a SQLite store"),
        ({"INF_DATABASE_URL": "", "INF_HOME": str(tmp_path / "file")}, "cannot be created at"),
    ):
        for command in (("db", "upgrade"), ("jobs", "list")):
            told = inf(*command, "--json", **environment)
            assert told.code == 1 and told.json.keys() == {"error", "message", "code", "remedy"}
            assert told.json["code"], told.out + told.err
            assert words in told.json["error"] and "secret" not in told.out + told.err


@pytest.mark.long
def test_a_read_only_home_is_reported_in_a_sentence(tmp_path: Path, inf_process: Any) -> None:
    folder = tmp_path / "mounted"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=20m", "none", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        require("mount", "no file system of its own can be mounted here")
    try:
        home = {"INF_HOME": str(folder / "home")}
        assert inf_process("db", "upgrade", **home).code == 0
        subprocess.run(["mount", "-o", "remount,ro", str(folder)], check=True)
        for command in (
            ("serve", "--port", free_port()),
            ("users", "add", "ann", "--no-password", "--email", "ann@example.org"),
        ):
            ran = inf_process(*command, "--json", **home)
            assert ran.code == 1 and "Traceback" not in ran.err, ran.err
            assert "cannot be written" in ran.json["error"] and "INF_HOME" in ran.json["error"]
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def test_wrong_arguments_of_curate_end_with_2(sqlite_store: Store, inf: Any) -> None:
    base = ("curate", "--dataset", "d", "--provider", "openai")
    for more in (
        ("--limit", 0),
        ("--concurrency", 0),
        ("--budget-usd", -1),
        ("--set", "foo=bar"),
        ("--recipe", "nowhere.toml"),
    ):
        told = inf(*base, *more, "--json")
        assert told.code == 2 and told.json["error"], more
    assert inf("curate", "--dataset", "d", "--provider", "offline", "--batch").code == 2


def test_a_done_job_is_not_done_again(store: Store) -> None:
    with store.write() as session:
        done, paused = (jobs.enqueue_job(session, "curate", {"run_id": 1}).id for _ in range(2))
        for job_id, result in ((done, {}), (paused, {"paused": True})):
            claimed = jobs.claim_job(session, job_id)
            assert claimed is not None
            jobs.beat(session, job_id, claimed.attempt, done=2, total=5)
            jobs.finish_job(session, job_id, claimed.attempt, "done", result=result)
        session.commit()
    with store.write() as session:
        assert jobs.get_job(session, done).done == 5 and jobs.get_job(session, paused).done == 2
        with pytest.raises(Refused, match="is done: there is nothing to resume"):
            jobs.requeue_job(session, done)
        assert jobs.requeue_job(session, paused).status == "queued"
