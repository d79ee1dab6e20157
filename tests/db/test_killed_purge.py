"""A purge that ends between any two of its steps leaves all or nothing, and its backup usable."""

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from killed_program import killed_program
from killed_purge import POINTS
from purged_world import NAME, everything, fill
from sqlalchemy import text

from db.archive.purging import purge
from db.errors import NotFound
from db.events import list_events
from db.people.rights import ALL_RIGHTS
from db.store.backup import read_manifest, restore_backup
from db.store.store import Store, open_store

PURGED_ROWS = ("dataset", "run", "group", "item", "passage", "pair", "judgment", "group_call")


def but_audit(rows: dict[str, int]) -> dict[str, int]:
    """The rows of each table but the audit log, which archiving adds to."""
    return {name: number for name, number in rows.items() if name != "event"}


def purges_recorded(store: Store) -> list[tuple[str, str]]:
    """Subject and backup of each purge in the audit log, newest first."""
    with store.read() as session:
        rows = [row for row in list_events(session)[0] if row.name == "dataset.purge"]
        return [(row.subject, row.data["backup"]) for row in rows]


def require_whole(store: Store) -> None:
    """Every reference leads somewhere."""
    if store.is_sqlite:  # PostgreSQL never lets a reference dangle
        with store.read() as session:
            assert session.execute(text("PRAGMA foreign_key_check")).all() == []
            assert session.scalar(text("PRAGMA integrity_check")) == "ok"


def again(store: Store, dataset: str, backup: Path) -> dict[str, Any]:
    return purge(store, dataset=dataset, rights=ALL_RIGHTS, actor="the admin", backup=backup)


@pytest.fixture
def killed() -> Iterator[Callable[..., int]]:
    """Purge a dataset in a process that is killed at a point; returns its exit status."""
    with killed_program("killed_purge.py") as killed_at:

        def ask(store: Store, point: str, dataset: str, backup: Path) -> int:
            wanted = {"point": point, "dataset": dataset, "backup": str(backup)}
            return killed_at(wanted | {"url": store.url})

        yield ask


@pytest.mark.long
def test_a_purge_killed_between_its_steps_is_completed_by_the_next(
    store: Store, tmp_path: Path, killed: Callable[..., int], sqlite_template: Path
) -> None:
    fill(store)
    before = everything(store)
    *early, last = POINTS
    backups = {point: tmp_path / f"{number}.zip" for number, point in enumerate(POINTS)}
    for point in early:
        assert killed(store, point, NAME, backups[point]) == -9, point
        require_whole(store)
        assert but_audit(everything(store)) == but_audit(before), point
        assert purges_recorded(store) == [], point
        assert backups[point].exists() == POINTS[point].after_backup, point
    done = again(store, NAME, tmp_path / "done.zip")
    after = everything(store)
    assert all(after[name] * 2 == before[name] for name in PURGED_ROWS)
    assert killed(store, last, "other", backups[last]) == -9
    require_whole(store)
    assert all(everything(store)[name] == 0 for name in PURGED_ROWS)
    assert purges_recorded(store) == [
        ("other", str(backups[last])),
        (NAME, str(tmp_path / "done.zip")),
    ]
    with pytest.raises(NotFound):
        again(store, "other", tmp_path / "never.zip")
    assert not (tmp_path / "never.zip").exists()

    full = [file for point, file in backups.items() if point != last and file.exists()]
    assert {read_manifest(file)["content_sha256"] for file in full} == {done["content_sha256"]}
    other = open_store(f"sqlite:///{shutil.copy(sqlite_template, tmp_path / 'restored.db')}")
    for file in (full[0], backups[last]):  # of a kill before the deletion, and of one after it
        restore_backup(other, file, replace=True)
        expected = before if file == full[0] else after
        assert but_audit(everything(other)) == but_audit(expected)
        require_whole(other)
    other.close()
