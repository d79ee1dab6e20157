"""What a job of any kind stores as its result is what `--json` of its command prints."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran, run_job_here
from exporting import export
from records_world import make_run
from trainer_release import write_release

from app.jobs import supervisors
from app.jobs.kinds import KINDS
from db.jobs import jobs
from db.rows import as_text
from db.store.backup import write_backup
from db.store.store import Store
from db.tables import Job

Words = tuple[object, ...]
SMALL = ("rows_per_batch=4", "held_out=0.25", "max_steps=1", "natural_probe=off", "precision=fp32")


def _pairs(folder: Path) -> Path:
    row = {"query_id": "q1", "query": "who", "passage_id": "p1", "passage": "me"}
    (folder / "pairs.jsonl").write_text(json.dumps(row) + "\n", encoding="utf-8")
    return folder / "pairs.jsonl"


def _texts(folder: Path) -> Path:
    lines = [json.dumps({"text": f"a text of number {each} about dogs"}) for each in range(20)]
    (folder / "texts.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return folder / "texts.jsonl"


def _backup(store: Store, folder: Path) -> Path:
    write_backup(store, folder / "all.zip")
    return folder / "all.zip"


# The command of each kind, by the store and a folder.
COMMANDS: dict[str, Callable[[Store, Path], Words]] = {
    "curate": lambda _, at: ("runs", "create", "books", "--provider", "offline", "--limit", 1),
    "judge": lambda _, at: ("studies", "judge", "--run", 1, "--judge", "simulated:7"),
    "embed": lambda _, at: ("analyze", "near-duplicates", "--texts", _texts(at)),
    "project": lambda _, at: ("analyze", "coverage", "--texts", _texts(at)),
    "train": lambda _, at: (
        *("trainings", "create", "--release", write_release(at / "release", 24)),
        *("--out", at / "model", *SMALL),
    ),
    "evaluate": lambda _, at: (
        *("evaluations", "create", "--model", "bm25"),
        *("--release", write_release(at / "release", 24)),
    ),
    "export": lambda _, at: ("releases", "create", "books", "--out", at / "made"),
    "push": lambda store, at: (
        *("releases", "push", export(store, at / "made")["release_id"]),
        *("--repo", "ada/books", "--dry-run"),
    ),
    "backup": lambda _, at: ("store", "backup", at / "new.zip"),
    "import": lambda _, at: ("datasets", "import", "new", "--pairs", _pairs(at)),
    "pull": lambda _, at: (
        *("datasets", "pull", _pairs(at).parent, "--dataset", "new", "--licence", "mit"),
    ),
    "mine": lambda *_: ("datasets", "mine", "books"),
    "restore": lambda store, at: ("store", "restore", _backup(store, at), "--replace"),
    "study": lambda _, at: ("studies", "create", "books", "--items", 4, "--overlap", 1),
}
# Of these the command does the work itself where it waits, as no job: the same once more is one.
HERE = {"import", "pull", "mine", "restore", "study"}


def test_every_kind_is_among_them() -> None:
    assert sorted(COMMANDS) == sorted(KINDS)


@pytest.mark.long
@pytest.mark.parametrize("kind", COMMANDS)
def test_a_job_stores_what_its_command_prints(
    sqlite_store: Store,
    tmp_path: Path,
    inf: Callable[..., Ran],
    monkeypatch: pytest.MonkeyPatch,
    there: dict[str, str],
    kind: str,
) -> None:
    monkeypatch.setattr(supervisors, "ensure_taken", lambda store, launcher: None)
    make_run(sqlite_store, kept=12, dropped=0)
    words = COMMANDS[kind](sqlite_store, tmp_path)
    given = _stored(sqlite_store, inf, words) if kind in HERE else None
    ran = inf(*words, "--json", **(there if kind == "push" else {}))
    assert ran.code == 0, ran.out + ran.err
    printed: dict[str, Any] = ran.json
    if kind == "study" and given is not None:  # a study also knows the job that made it
        assert given["sampling"].pop("job_id") == 1
    if given is None:
        with sqlite_store.read() as session:
            job = session.get_one(Job, printed.pop("job_id"))
            assert job.kind == kind
            given = job.result
    assert as_text(printed) == as_text(given)


def _stored(store: Store, inf: Callable[..., Ran], words: Words) -> dict[str, Any] | None:
    """What the job of a detached command stores, in a store that is put back afterwards."""
    path = Path(str(store.engine.url.database))
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    before = path.read_bytes()
    ran = inf(*words, "--detach", "--json", INF_RAY_ADDRESS="")
    assert ran.code == 0, ran.out + ran.err
    with store.write() as session:
        job = jobs.claim_job(session, ran.json["job_id"])
        session.commit()
    assert job is not None
    run_job_here(store, job)
    with store.read() as session:
        ended = jobs.get_job(session, job.id)
        assert ended.status == "done", ended.error
        found = ended.result
    store.close()
    for each in path.parent.glob(f"{path.name}-*"):
        each.unlink()
    path.write_bytes(before)
    return found
