"""Progress of commands where standard error is no terminal."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran

from app.cli.kit import progress
from db.store.store import Store


def test_a_line_every_ten_seconds_and_none_for_short_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.progress_bar("importing", " rows") as show:
        for second in range(25):
            now = 100.0 + second
            show(second, 1200, "reading" if second == 20 else "")
    assert capsys.readouterr().err.splitlines() == [
        "importing: 10 of 1,200 rows (1%)",
        "importing: 20 of 1,200 rows (2%), reading",
    ]
    with progress.progress_bar("copying") as show:
        now += 11
        show(2_000_000, None)
    assert capsys.readouterr().err == "copying: 2.00MB\n"


def test_every_command_that_waits_for_a_job_writes_them(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    done = inf("store", "backup", tmp_path / "a.zip", "--json")
    assert done.code == 0 and done.json and done.err.startswith("backing up")
