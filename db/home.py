"""INF_HOME, the folder for all files of InF Studio outside the store, and paths in it.

The store keeps such paths from INF_HOME on: the folder can be moved or restored elsewhere, and two
servers may have the same one at different places.
"""

import errno
import hashlib
import os
import uuid
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from io import BufferedRandom
from pathlib import Path
from tempfile import TemporaryDirectory, TemporaryFile, gettempdir
from typing import Any

from db.errors import BadInput

IN_HOME = "$INF_HOME/"
FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)  # a disk, a quota, a limit of the process


def home() -> Path:
    """The folder for all files of InF Studio outside the store."""
    return Path(os.environ.get("INF_HOME") or ".inf").expanduser().resolve()


def database_url(url: str = "") -> str:
    """The address of a store as SQLAlchemy takes it; `postgresql://` means psycopg 3.

    By default the one that INF_DATABASE_URL names.
    """
    url = url or os.environ.get("INF_DATABASE_URL") or f"sqlite:///{home() / 'inf.db'}"
    for short in ("postgres://", "postgresql://"):
        if url.startswith(short):
            return "postgresql+psycopg://" + url.removeprefix(short)
    if not url.startswith(("sqlite:", "postgresql+psycopg:")):
        raise BadInput(
            f"INF_DATABASE_URL starts with {url.split(':')[0]!r}",
            "use sqlite:///PATH or postgresql://USER@HOST/NAME",
            code="store_url_invalid",
        )
    return url


def scratch_file(owner: object) -> BufferedRandom:
    """A file of INF_HOME without a name, which is gone with its owner. Write within `space_in`."""
    home().mkdir(parents=True, exist_ok=True)
    file = TemporaryFile(dir=home())  # noqa: SIM115
    weakref.finalize(owner, file.raw.close)  # what a full disk left in the buffer goes with it
    return file


@contextmanager
def temporary_folder(prefix: str) -> Iterator[Path]:
    """A folder of the system's for large files, gone at the end; a full disk raises BadInput."""
    with space_in(gettempdir(), lambda: "copies"), TemporaryDirectory(prefix=prefix) as folder:
        yield Path(folder)


@contextmanager
def space_in(place: str | Path, what: Callable[[], str]) -> Iterator[None]:
    """Within, a write for which the disk of the place has no space raises BadInput.

    what: needs the space, and how much of it, by then.
    """
    try:
        yield
    except OSError as error:
        if full := full_disk(error, place, what()):
            raise full from error
        raise


def full_disk(
    error: BaseException, place: str | Path = "", what: str = "a file"
) -> BadInput | None:
    """That a disk has no space left for what a write needed; None of another error.

    The place is that of the error, where it has one.
    """
    if not isinstance(error, OSError) or error.errno not in FULL:
        return None
    where = f"in {error.filename or place}" if error.filename or place else "on the disk"
    return BadInput(
        f"no space is left {where} for {what} ({error.strerror})",
        "free some, or set INF_HOME and TMPDIR to folders on a disk that has it, then start again",
        code="disk_full",
    )


def files_root() -> str:
    """Where the machines of a store share files, a folder or a URL; "" where each has its own.

    Raises BadInput for a URL with a password: it would be sent to clusters and stand in messages.
    """
    given = os.environ.get("INF_FILES", "").rstrip("/")
    if ":" in given.partition("://")[2].rpartition("@")[0]:
        raise BadInput(
            "INF_FILES has a password in it",
            "leave it out, and give it in the storage's own variables or file, as its driver says",
            code="files_with_password",
        )
    return given if not given or "://" in given else str(Path(given).expanduser().absolute())


def home_ids() -> list[str]:
    """The ids of the places whose files this process reaches: INF_FILES, where set, first."""
    root = files_root()
    shared = [hashlib.sha256(root.encode()).hexdigest()[:32]] if root else []
    return [*shared, home_id()]


def is_of_this_machine(value: Any) -> bool:
    """Whether a text in it is the path of a file here that INF_FILES does not have."""
    return any(
        # of a text too long for a path, Path.exists raises
        text.startswith("/") and as_stored(text) == text and os.path.exists(text)  # noqa: PTH110
        for text in texts_in(value)
    )


def texts_in(value: Any) -> Iterator[str]:
    """Every text of a config or result, in its lists and dictionaries too; keys are none."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list | tuple):
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_in(each)


def home_id() -> str:
    """What this INF_HOME is known by wherever it is mounted or moved to; made at the first call.

    Raises BadInput where it cannot be read or written.
    """
    path = home() / "home-id"
    try:
        if not path.exists():
            path.parent.mkdir(parents=True, exist_ok=True)
            unfinished = path.with_name(f".home-id.{uuid.uuid4().hex}")
            try:
                unfinished.write_text(uuid.uuid4().hex, encoding="ascii")
                with suppress(FileExistsError):
                    os.link(unfinished, path)  # whole, and the first one wins
            finally:
                unfinished.unlink(missing_ok=True)
        return path.read_text(encoding="ascii")
    except OSError as error:
        raise BadInput(
            f"{path} cannot be read or written: {error.strerror}",
            "set INF_HOME to a folder of yours",
            code="home_unwritable",
        ) from error


def as_stored(value: Any) -> Any:
    """A path as the store keeps it: one inside of INF_HOME from there on (`$INF_HOME/releases/x`).

    Any other text is itself; in lists and dictionaries each value is changed alike.
    """
    return _changed(value, f"{home()}{os.sep}", IN_HOME)


def from_stored(value: Any) -> Any:
    """The opposite of `as_stored`, with the INF_HOME of now."""
    return _changed(value, IN_HOME, f"{home()}{os.sep}")


def _changed(value: Any, before: str, after: str) -> Any:
    if isinstance(value, str):
        return after + value.removeprefix(before) if value.startswith(before) else value
    if isinstance(value, dict):
        return {key: _changed(inner, before, after) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_changed(inner, before, after) for inner in value]
    return value
