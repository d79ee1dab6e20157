"""Backup and restore: from either engine into either engine, whole or not at all."""

import json
import zipfile
from pathlib import Path
from typing import Any

import pytest
from conftest import count_rows
from postgres_cluster import Cluster
from records_world import group_ids, make_run
from sqlalchemy import func, select

from db.errors import BadInput, Refused
from db.jobs import jobs
from db.people.accounts import add_account
from db.people.passwords import create_password_link, use_password_link
from db.people.sign_ins import open_session, start_session
from db.review.reviews import approve_group
from db.store import schema
from db.store.backup import read_manifest, restore_backup, write_backup
from db.store.store import Store, open_store
from db.tables import Embedding, Job, Pair, Passage


def fill(store: Store) -> int:
    """A store with texts, JSON, bytes, times, reviews, jobs."""
    run_id = make_run(store, texts={"instruction_positive": "ü 🙂 \u2028 'quoted'"})
    with store.write() as session:
        approve_group(session, group_ids(store, run_id)[0], reviewed_by="ada")
        for model, sha256 in (("b", "z"), ("B", "a"), ("a", "ä")):
            session.add(Embedding(model=model, text_sha256=sha256, vector=b"\x00\xff\x01"))
        pair = session.scalars(select(Pair)).first()
        assert pair is not None
        pair.meta = {"b": [1, 2.5, 1e20, None, True], "a": {"ü": "x"}}
        jobs.enqueue_job(session, "train", {"x": 1})
        running = jobs.enqueue_job(session, "curate", {"x": 2})
        session.flush()
        jobs.claim_job(session, running.id)
        session.commit()
    return run_id


@pytest.fixture
def other_store(postgres_cluster: Cluster) -> Any:
    """An empty PostgreSQL store beside the first one."""
    url = postgres_cluster.create(template="inf_template")
    store = open_store(url)
    yield store
    store.close()
    postgres_cluster.drop(url)


def check_round_trip(source: Store, target: Store, tmp_path: Path) -> None:
    fill(source)
    seen: list[tuple[int, int]] = []
    result = write_backup(source, tmp_path / "inf.backup")
    restored = restore_backup(
        target, tmp_path / "inf.backup", progress=lambda done, total: seen.append((done, total))
    )
    assert restored["content_sha256"] == result["content_sha256"]
    assert seen[-1] == (result["rows"], result["rows"])
    assert count_rows(target, "group") == count_rows(source, "group") == 7
    with target.write() as session:
        assert dict(session.execute(select(Job.kind, Job.status)).all()) == {
            "train": "cancelled",
            "curate": "lost",
        }
        passage = Passage(
            dataset_id=1, external_id="new", text="t", sha256="s", origin="pool"
        )  # ids go on after the greatest
        greatest = session.scalar(select(func.max(Passage.id)))
        session.add(passage)
        session.flush()
        assert greatest is not None and passage.id > greatest


def test_a_backup_of_either_engine_goes_into_sqlite(store: Store, tmp_path: Path) -> None:
    target = open_store(f"sqlite:///{tmp_path}/restored.db")  # not even its tables are there
    check_round_trip(store, target, tmp_path)
    target.close()


@pytest.mark.postgres
def test_a_backup_of_sqlite_goes_into_postgresql(
    sqlite_store: Store, other_store: Store, tmp_path: Path
) -> None:
    check_round_trip(sqlite_store, other_store, tmp_path)


def test_a_store_that_holds_something_is_refused_unless_one_says_so(
    store: Store, tmp_path: Path
) -> None:
    fill(store)
    write_backup(store, tmp_path / "inf.backup")
    make_run(store, name="papers")
    with pytest.raises(Refused, match="the store is not empty"):
        restore_backup(store, tmp_path / "inf.backup")
    assert count_rows(store, "dataset") == 2
    restore_backup(store, tmp_path / "inf.backup", replace=True)
    assert count_rows(store, "dataset") == 1


def test_a_damaged_backup_is_refused_and_changes_nothing(
    sqlite_store: Store, tmp_path: Path
) -> None:
    fill(sqlite_store)
    path = tmp_path / "inf.backup"
    write_backup(sqlite_store, path)
    changed = tmp_path / "changed.backup"
    with zipfile.ZipFile(path) as old, zipfile.ZipFile(changed, "w") as new:
        for name in old.namelist():
            data = old.read(name)
            new.writestr(name, data.replace(b"book 1", b"book 9") if name == "pair.jsonl" else data)
    target = open_store(f"sqlite:///{tmp_path}/target.db")
    schema.upgrade(target)
    with pytest.raises(BadInput, match="is damaged: table pair"):
        restore_backup(target, changed)
    short = tmp_path / "short.backup"
    short.write_bytes(path.read_bytes()[:-100])
    (tmp_path / "text.backup").write_text("hello")
    for file in (short, tmp_path / "text.backup", tmp_path / "missing.backup"):
        with pytest.raises(BadInput, match="is not a backup of InF Studio"):
            restore_backup(target, file)
    assert count_rows(target, "pair") == 0
    target.close()


def test_a_backup_of_another_revision_is_refused(sqlite_store: Store, tmp_path: Path) -> None:
    path = tmp_path / "inf.backup"
    write_backup(sqlite_store, path)
    manifest = read_manifest(path) | {"revision": "9999"}
    old = tmp_path / "old.backup"
    with zipfile.ZipFile(old, "w") as file:
        file.writestr("manifest.json", json.dumps(manifest))
    with pytest.raises(BadInput, match="is of schema revision 9999"):
        restore_backup(sqlite_store, old)


def test_a_backup_never_overwrites_and_is_for_its_owner_only(
    sqlite_store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "inf.backup"
    write_backup(sqlite_store, path)
    assert path.stat().st_mode & 0o077 == 0
    with pytest.raises(Refused, match="never overwrites"):
        write_backup(sqlite_store, path)
    with pytest.raises(BadInput, match="cannot be written"):
        write_backup(sqlite_store, path / "inside")
    assert list(tmp_path.glob(".*unfinished")) == []


def test_a_backup_shows_one_moment_while_people_work_on(store: Store, tmp_path: Path) -> None:
    fill(store)

    def work_on(done: int, total: int) -> None:
        with store.write() as session:
            pair = session.scalars(select(Pair)).first()
            assert pair is not None
            pair.query = f"changed at {done}"
            session.commit()

    with store.write() as session:
        for number in range(1000):
            session.add(Embedding(model="m", text_sha256=str(number), vector=b"v"))
        session.commit()
    result = write_backup(store, tmp_path / "inf.backup", progress=work_on)
    with zipfile.ZipFile(tmp_path / "inf.backup") as file:
        assert b"changed at" not in file.read("pair.jsonl")
    assert write_backup(store, tmp_path / "later")["content_sha256"] != result["content_sha256"]


@pytest.mark.long
def test_the_commands_back_up_and_restore(sqlite_store: Store, tmp_path: Path, inf: Any) -> None:
    fill(sqlite_store)
    result = inf("backup", tmp_path / "inf.backup", "--json")
    assert result.code == 0, result.err
    refused = inf("restore", tmp_path / "inf.backup", "--json")
    assert refused.code == 1 and "the store is not empty" in refused.json["error"]
    url = f"sqlite:///{tmp_path}/restored.db"
    restored = inf("restore", tmp_path / "inf.backup", "--json", INF_DATABASE_URL=url)
    assert restored.code == 0, restored.err
    assert restored.json["content_sha256"] == result.json["content_sha256"]


def test_a_session_that_was_ended_after_the_backup_does_not_come_back(
    sqlite_store: Store, tmp_path: Path
) -> None:
    with sqlite_store.write() as session:
        ann = add_account(session, "ann", "correct horse battery", role="admin", actor="test")
        token = start_session(session, ann)
        link = create_password_link(session, ann, actor="root")
        session.commit()
    path = tmp_path / "backup.zip"
    write_backup(sqlite_store, path)
    restore_backup(sqlite_store, path, replace=True)
    with sqlite_store.write() as session:
        assert open_session(session, token) is None
        with pytest.raises(Refused):
            use_password_link(session, link, "a new long password")
