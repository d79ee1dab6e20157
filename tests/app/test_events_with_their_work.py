"""The event of long work is written with its last commit: after a kill there are both or neither.

Work is killed before each of its commits in turn, until it ends by itself.
"""

import json
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from killed_program import killed_program
from killed_work import WORK
from sqlalchemy import exists, func, select

from db.shape import INF_IR
from db.store import schema
from db.store.backup import write_backup
from db.store.store import Store, open_store
from db.tables import Account, Dataset, Event, Job, Pair, Run, StudyJudge

PAIRS = 5
MAX_COMMITS = 30
EARLIER = "0039"


def _rows(folder: Path, name: str, row: Callable[[int], dict[str, Any]]) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    lines = (json.dumps(row(each)) + "\n" for each in range(PAIRS))
    (folder / name).write_text("".join(lines), encoding="utf-8")


def _pair(each: int) -> dict[str, Any]:
    return {
        "query_id": f"q{each}",
        "query": f"who is {each}",
        "passage_id": f"p{each}",
        "passage": f"the person of number {each}",
    }


def _group(each: int) -> dict[str, Any]:
    return {name: f"{name} {each}" for name in INF_IR.columns}


def _has_all_pairs(store: Store) -> bool:
    with store.read() as session:
        new = select(Dataset.id).where(Dataset.name == "new").scalar_subquery()
        return session.scalar(select(func.count()).where(Pair.dataset_id == new)) == PAIRS


def _has(*conditions: Any) -> Callable[[Store], bool]:
    def has(store: Store) -> bool:
        with store.read() as session:
            return bool(session.scalar(select(func.count()).where(*conditions)))

    return has


_restored = _has(Dataset.name == "of another store")
# The event of each, and whether the store shows that the work is done.
DONE: dict[str, tuple[str, Callable[[Store], bool]]] = {
    "import_pairs": ("import", _has_all_pairs),
    "import_groups": ("import", _has(Run.provider == "import", Run.status == "done")),
    "pull": ("import", _has_all_pairs),
    "back_up_as_job": ("backup", _has(Job.kind == "backup", Job.status == "done")),
    "restore_as_job": ("restore", _restored),
    "restore_here": ("restore", _restored),
    "copy_here": ("copy", _restored),
    "upgrade_here": ("upgrade", lambda store: schema.current(store) != EARLIER),
    "begin_as_recruit": (
        "study.recruit",
        _has(StudyJudge.worker == "5f01", exists().where(Account.name.startswith("prolific-"))),
    ),
    "go_back": ("upgrade.back", lambda store: schema.current(store) == EARLIER),
}


@pytest.fixture(scope="module")
def killed() -> Iterator[Callable[..., int]]:
    """Do work in a process that is killed before a commit; returns its exit status."""
    with killed_program("killed_work.py") as killed_at:

        def ask(work: str, url: str, folder: Path, commit: int) -> int:
            return killed_at({"work": work, "url": url, "folder": str(folder), "commit": commit})

        yield ask


def _materials(folder: Path, template: Path) -> None:
    """Files to import and pull; another store, its backup, and an empty one of before."""
    _rows(folder, "pairs.jsonl", _pair)
    _rows(folder, "hub/pairs.jsonl", _pair)
    _rows(folder, "groups.jsonl", _group)
    shutil.copy(template, folder / "other.db")
    other = open_store(f"sqlite:///{folder / 'other.db'}")
    with other.write() as session:
        session.add(Dataset(name="of another store"))
        session.commit()
    write_backup(other, folder / "all.zip")
    other.close()
    before = open_store(f"sqlite:///{folder / 'before.db'}")
    schema.upgrade(before, EARLIER)
    before.close()


@pytest.mark.long
@pytest.mark.parametrize("work", WORK)
def test_after_a_kill_there_are_work_and_event_or_neither(
    work: str, killed: Callable[..., int], tmp_path: Path, sqlite_template: Path, own_home: Path
) -> None:
    _materials(tmp_path, sqlite_template)
    start = tmp_path / "before.db" if work == "upgrade_here" else sqlite_template
    name, done = DONE[work]
    for commit in range(1, MAX_COMMITS):
        folder = tmp_path / str(commit)
        folder.mkdir()
        shutil.copy(start, folder / "store.db")
        (tmp_path / "new.zip").unlink(missing_ok=True)
        store = open_store(f"sqlite:///{folder / 'store.db'}")
        code = killed(work, store.url, tmp_path, commit)
        assert code in (0, -9)
        recorded = _has(Event.name == name)(store)
        assert recorded == done(store), f"killed before commit {commit}"
        store.close()
        if code == 0:
            assert recorded and commit > 1
            return
    raise AssertionError("it commits without end")
