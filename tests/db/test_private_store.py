"""The store and its folder are their owner's alone, whatever the umask."""

import os
import stat
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from db.store import schema
from db.store.store import open_store

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no modes there")


@pytest.fixture
def open_umask() -> Iterator[None]:
    """What is made without a mode is readable by everyone."""
    before = os.umask(0o022)
    yield
    os.umask(before)


def mode(path: Path) -> str:
    return oct(stat.S_IMODE(path.stat().st_mode))


@pytest.mark.parametrize("folder_is_there", (True, False))
def test_a_new_store_is_private_with_its_log_and_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_umask: None, folder_is_there: bool
) -> None:
    folder = tmp_path / "home"
    monkeypatch.setenv("INF_HOME", str(folder))
    monkeypatch.delenv("INF_DATABASE_URL", raising=False)
    if folder_is_there:  # as a log or an earlier version made it
        folder.mkdir(mode=0o755)
    store = open_store()
    schema.upgrade(store)
    with store.write():
        found = {path.name: mode(path) for path in folder.iterdir() if path.name[:3] == "inf"}
    assert found == {"inf.db": "0o600", "inf.db-wal": "0o600", "inf.db-shm": "0o600"}
    assert mode(folder) == "0o700"


def test_a_store_of_an_earlier_version_becomes_private_when_it_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_umask: None
) -> None:
    monkeypatch.setenv("INF_HOME", str(tmp_path / "home"))
    folder = tmp_path / "elsewhere"
    folder.mkdir(mode=0o755)
    path = folder / "team.db"
    path.touch(mode=0o644)
    store = open_store(f"sqlite:///{path}")
    schema.upgrade(store)
    assert mode(path) == "0o600"
    assert mode(folder) == "0o755"  # a folder that is not ours stays as it is


def test_a_store_that_is_opened_again_after_others_got_rights_is_private_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_HOME", str(tmp_path / "home"))
    store = open_store(f"sqlite:///{tmp_path / 'own' / 'own.db'}")
    schema.upgrade(store)
    assert mode(tmp_path / "own") == "0o700"
    path = tmp_path / "own" / "own.db"
    path.chmod(0o666)
    store.close()
    with store.read() as session:
        session.connection()
    assert mode(path) == "0o600"
