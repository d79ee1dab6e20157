"""Parts of a long computation, kept in INF_HOME until it is over: killed, it goes on from them."""

import os
import shutil
import time
from collections.abc import Callable
from contextlib import suppress
from io import BytesIO
from pathlib import Path

import numpy as np

from db.home import home, space_in

DAYS = 30  # parts of a job that nobody resumed
Compute = Callable[[], np.ndarray]
Keep = Callable[[str, Compute], np.ndarray]


def computed(_name: str, compute: Compute) -> np.ndarray:
    """Compute a part and keep nothing: where a computation is short."""
    return compute()


class Parts:
    """The parts of the computation whose inputs have this hash: arrays by name.

    `check` is called before each that is computed and may raise to stop between two.
    """

    def __init__(self, sha256: str, check: Callable[[], None]) -> None:
        self._folder, self._check = _folder_of(sha256), check
        for other in self._folder.parent.glob("*"):
            with suppress(FileNotFoundError):  # its own job has deleted it
                if other.stat().st_mtime < time.time() - DAYS * 86_400:
                    shutil.rmtree(other, ignore_errors=True)

    def keep(self, name: str, compute: Compute) -> np.ndarray:
        """The part of that name, from its file or computed; on the disk before it is returned."""
        path = self._folder / f"{name}.npy"
        try:
            found: np.ndarray = np.load(path)
        except FileNotFoundError:
            self._check()
            found = compute()
            self._write(path, found)
        return found

    def _write(self, path: Path, part: np.ndarray) -> None:
        whole = BytesIO()
        np.save(whole, part)  # into a file it would not report why a disk takes no more
        self._folder.mkdir(parents=True, exist_ok=True)
        unfinished = path.with_suffix(f".{os.getpid()}")
        try:
            with (
                space_in(home(), lambda: f"a part of {part.nbytes:,} bytes"),
                unfinished.open("wb") as file,
            ):
                file.write(whole.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)


def delete_parts(sha256: str) -> None:
    """Delete the parts of a computation whose result is stored."""
    shutil.rmtree(_folder_of(sha256), ignore_errors=True)


def _folder_of(sha256: str) -> Path:
    return home() / "parts" / sha256
