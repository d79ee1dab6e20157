"""Progress of commands where standard error is no terminal."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import ROOT, Ran

from app.cli.kit import progress
from db.store.store import Store


def test_a_line_before_ten_seconds_are_over_and_none_for_short_work(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    now = 100.0
    monkeypatch.setattr(progress.time, "monotonic", lambda: now)
    with progress.progress_bar("importing", " rows") as show:
        for second in range(25):
            now = 100.0 + second
            show(second, 1200)
    assert capsys.readouterr().err.splitlines() == [
        "importing: 8 of 1,200 rows (1%)",
        "importing: 16 of 1,200 rows (1%)",
        "importing: 24 of 1,200 rows (2%)",
    ]
    with progress.progress_bar("copying") as show:
        now += 11
        show(2_000_000, None, "reading")
    assert capsys.readouterr().err == "copying: 2.00MB, reading\n"


def test_work_that_hangs_is_shown_by_lines_that_do_not_wait_for_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A database host vanished: its driver waits for half a minute, and nothing calls `show`."""
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.5)
    began = time.monotonic()
    with progress.progress_bar("curating", " groups") as show:
        show(12, 40, "96 calls made")
        time.sleep(4)
    waited = time.monotonic() - began
    lines = capsys.readouterr().err.splitlines()
    assert 2 <= len(lines) <= waited and "12 of 40 groups (30%), 96 calls made" in lines[-1]
    assert re.search(r", nothing new for [1-9]\d* s$", lines[-1])


@pytest.mark.skipif(sys.platform == "win32", reason="no pseudo-terminals")
@pytest.mark.parametrize(("columns", "is_bar"), [(0, False), (80, True)])
def test_a_terminal_without_a_width_gets_lines(columns: int, is_bar: bool) -> None:
    """`docker run -t` and some schedulers give one: a bar on it is no output at all."""
    import fcntl
    import pty
    import struct
    import termios

    parent, child = pty.openpty()
    fcntl.ioctl(child, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    code = (
        "from app.cli.kit import progress\n"
        "progress.LINE_SECONDS = 0\n"
        "with progress.progress_bar('import', ' rows') as show: show(3, 9)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT, stderr=child, check=True, timeout=60)
    os.close(child)
    shown = os.read(parent, 4096).decode()
    os.close(parent)
    assert ("3 of 9 rows" not in shown) == is_bar and "import" in shown


def test_every_command_that_waits_for_a_job_writes_them(
    sqlite_store: Store, inf: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.0)
    done = inf("store", "backup", tmp_path / "a.zip", "--json")
    assert done.code == 0 and done.json and done.err.startswith("backing up")
