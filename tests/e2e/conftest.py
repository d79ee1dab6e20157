"""For a file of browser tests: one store, one server that can be killed, and one browser."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from browser import chromium_browser
from playwright.sync_api import Browser
from restartable import Restartable, restartable

from db.store.store import Store, open_store


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The server's home."""
    return tmp_path_factory.mktemp("served")


@pytest.fixture(scope="module")
def store(sqlite_template: Path, folder: Path) -> Iterator[Store]:
    """One store for all tests of a file, each with its own study or run (elsewhere: one each)."""
    shutil.copy(sqlite_template, folder / "inf.db")
    found = open_store(f"sqlite:///{folder / 'inf.db'}")
    yield found
    found.close()


@pytest.fixture(scope="module")
def served(store: Store, folder: Path) -> Iterator[Restartable]:
    """A server on that store."""
    with restartable(folder, store.url) as server:
        yield server


@pytest.fixture(scope="module")
def browser(chromium: Path) -> Iterator[Browser]:
    """One browser; a person is a context of it."""
    with chromium_browser() as found:
        yield found
