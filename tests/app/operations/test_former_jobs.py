"""Jobs of a store of commit d64fb842, before requests were models: they open, resume and run again.

`former_jobs.json` holds a config of every command that queued a job then, as that version wrote it
(its commands were run), and of every form of its pages (read in its code): with every key that it
had, in its nesting. FOLDER is a folder of the test.
"""

import gzip
import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from app_pages import open_page, words
from conftest import Ran

from app.access.identity import owner
from app.jobs import supervisors
from app.jobs.entry import handle
from app.jobs.kinds import KINDS
from app.operations import jobs as operations
from app.operations import trainings
from db.errors import InfError
from db.jobs import jobs
from db.jobs.runner import JobHandle, run
from db.requests import Request
from db.store import schema
from db.store.store import Store, open_store
from db.store.upgrading import upgrade_store
from db.values import JOB_KINDS

DATA = Path(__file__).parents[2] / "data"
REVISION = "0023"  # of the store of d64fb842
ADA = owner("ada")
STATUSES = ("queued", "failed", "done")
Config = dict[str, Any]
FORMER: Mapping[str, tuple[str, Config]] = json.loads((DATA / "former_jobs.json").read_text())
# They need no model and no server: here they are worked on to their end.
WORKED = {
    *("releases: parquet", "releases: jsonl by source", "a run's check", "a study", "backup"),
    *("judge of a study", "page: judge", "page: edits of a run", "near-duplicates"),
    *("page: near-duplicates", "page: agreement", "import of pairs"),
}
# As a launch of them now: a restore replaces the store, and no cluster is chosen here.
REFUSED = {"restore": "restore_needs_command", "page: training on a cluster": "workers_need_ray"}


@pytest.fixture
def former(
    own_home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[tuple[Store, dict[tuple[str, str], int]]]:
    """A store of then with a job of every config and status, upgraded; their ids."""
    own_home.mkdir(parents=True, exist_ok=True)
    path = own_home / "former.db"
    path.write_bytes(gzip.decompress((DATA / "previous_store" / "store.db.gz").read_bytes()))
    monkeypatch.setenv("INF_DATABASE_URL", f"sqlite:///{path}")
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)  # what is queued stays so
    monkeypatch.setattr(trainings, "available_bytes", lambda: 1e12)
    (tmp_path / "p.jsonl").write_text(
        '{"query_id": "q", "query": "who", "passage_id": "p", "passage": "me"}\n'
    )
    store = open_store()
    schema.upgrade(store, REVISION)
    ids = {}
    with store.engine.begin() as connection:
        for name, (kind, config) in FORMER.items():
            for status in STATUSES:
                row = _row(kind, in_folder(config, tmp_path), status)
                columns = ", ".join(row)
                values = ", ".join(f":{each}" for each in row)
                query = sa.text(f"INSERT INTO job ({columns}) VALUES ({values}) RETURNING id")
                ids[name, status] = connection.execute(query, row).scalar_one()
    upgrade_store(store)
    yield store, ids
    store.close()


def _row(kind: str, config: Config, status: str) -> dict[str, object]:
    """A row of the table as it was."""
    ended = None if status == "queued" else "2026-11-24 10:00:00.000000"
    return {
        **{"kind": kind, "config": json.dumps(config), "status": status, "done": 0, "message": ""},
        **{"launcher": "local", "resources": "{}", "shown": "{}", "attempt": int(bool(ended))},
        **{
            "stop_requested": False,
            "started_by": "ada",
            "created_at": "2026-11-24 09:00:00.000000",
        },
        **{"started_at": ended, "finished_at": ended},
        "result": json.dumps({"kept": 1}) if status == "done" else None,
        "error": "the server went away" if status == "failed" else None,
    }


def in_folder(value: Any, folder: Path) -> Any:
    """The config with its files in this folder."""
    if isinstance(value, dict):
        return {key: in_folder(each, folder) for key, each in value.items()}
    if isinstance(value, list):
        return [in_folder(each, folder) for each in value]
    return value.replace("FOLDER", str(folder)) if isinstance(value, str) else value


def test_every_kind_of_job_is_among_them() -> None:
    later = {"mine"}  # kinds that no store of then has
    assert {kind for kind, _ in FORMER.values()} | later == set(KINDS) == set(JOB_KINDS)
    assert set(FORMER) >= WORKED


def test_they_are_listed_and_shown_as_they_were_stored(
    former: tuple[Store, dict[tuple[str, str], int]], inf: Callable[..., Ran], tmp_path: Path
) -> None:
    _, ids = former
    listed = inf("jobs", "list", "--limit", 1000, "--json").json["data"]
    assert {row["id"] for row in listed} >= set(ids.values())
    for (name, status), job_id in ids.items():
        kind, config = FORMER[name]
        shown = operations.show(ADA, job_id)
        assert (shown.kind, shown.status) == (kind, status), name
        assert shown.config == in_folder(config, tmp_path), name
        assert inf("jobs", "show", job_id).code == 0, name


def test_the_jobs_page_shows_one_of_each_kind(
    former: tuple[Store, dict[tuple[str, str], int]],
) -> None:
    _, ids = former
    for place, name in enumerate({kind: name for name, (kind, _) in FORMER.items()}.values()):
        job_id = ids[name, STATUSES[place % 3]]
        at = open_page("jobs", job=str(job_id))
        assert any(f"Job {job_id}" in each.value for each in at.header), name
        shown = words(at)
        assert all(json.dumps(key) in shown for key in operations.show(ADA, job_id).config), name


def test_they_resume_with_their_config_and_run_again_with_that_of_now(
    former: tuple[Store, dict[tuple[str, str], int]], tmp_path: Path
) -> None:
    _, ids = former
    for name, (kind, config) in FORMER.items():
        assert operations.resume(ADA, ids[name, "failed"]).status == "queued", name
        assert operations.show(ADA, ids[name, "failed"]).config == in_folder(config, tmp_path), name
        if name in REFUSED:
            with pytest.raises(InfError) as refused:
                operations.run_again(ADA, ids[name, "done"])
            assert refused.value.code == REFUSED[name]
            continue
        again = operations.show(ADA, operations.run_again(ADA, ids[name, "done"]).id)
        assert (again.kind, again.status) == (kind, "queued"), name
        now = operations.request_of(kind, again.config)
        assert now.config() == again.config, name
        assert_same_values(in_folder(config, tmp_path), now, name)


def assert_same_values(config: Config, now: Request, name: str) -> None:
    """Every value of then is one of the request, whatever the key that it has now."""
    for key, value in config.items():
        if key in ("what", "reader", "joins", "only"):
            continue  # which job it is, and who reads: found out anew
        if key == "negatives":
            assert now.config()["without_negatives"] is not value, name
            continue
        if isinstance(value, dict) and key not in type(now).model_fields:
            assert_same_values(value, now, name)
            continue
        found = now.config()
        if value not in (None, "", [], {}, False) and key in found:
            assert as_texts(found[key]) == as_texts(value), (name, key)
        elif value not in (None, "", [], {}, False):
            assert as_texts(value) in map(as_texts, found.values()), (name, key)


def as_texts(value: Any) -> Any:
    """Settings were typed or texts; lists and tuples are one in JSON."""
    if isinstance(value, dict):
        return {key: as_texts(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [as_texts(each) for each in value]
    return str(value)


@pytest.mark.long
def test_queued_and_resumed_ones_are_worked_on_to_their_end(
    former: tuple[Store, dict[tuple[str, str], int]], caplog: pytest.LogCaptureFixture
) -> None:
    """By the handler that a job's process calls; the second time on what is there."""
    caplog.set_level(logging.CRITICAL)
    store, ids = former
    for name in sorted(WORKED):
        operations.resume(ADA, ids[name, "failed"])
        again = operations.run_again(ADA, ids[name, "done"]).id
        for place, job_id in enumerate((ids[name, "queued"], ids[name, "failed"], again)):
            with store.write() as session:
                job = jobs.claim_job(session, job_id)
                assert job is not None
                session.commit()
            run(JobHandle(store, job.id, job.attempt), handle)
            done = operations.show(ADA, job_id)
            if place and name == "backup":  # its file is there already
                assert (done.status, done.result) == ("failed", None), name
                assert "exists" in str(done.error), done.error
            else:
                assert done.status == "done" and done.result, (name, place, done.error)
