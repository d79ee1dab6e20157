"""Files of INF_HOME that all machines of a store share: INF_FILES, a folder or a URL of fsspec.

What lies in INF_HOME under one of `SHARED` is copied there once it is whole, and fetched into the
INF_HOME of a machine that needs it: the store names it from INF_HOME on (`db.home`), so each finds
it at its own place. Without INF_FILES nothing here does anything.

`releases/mine` is there as `releases/mine.files/DIGEST/…` and, written last, `releases/mine.json`:
the sizes and hashes of its files, whose own hash is DIGEST. So a copy cut short is not there, and
one that replaces another never mixes with it. `INF_HOME/shared` keeps which DIGEST this machine
made or fetched. A log is one file, which grows: it is copied as a whole, again and again, the
longer the less often. `store.json` names the store that all of this is of.
"""

import hashlib
import json
import logging
import os
import platform
import shlex
import shutil
import threading
import time
import uuid
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from analysis.files.opening import file_sha256
from db.errors import BadInput, InfError, NotFound, Refused
from db.home import files_root, home, texts_in

log = logging.getLogger("inf.files")
MADE = ("releases", "checkpoints", "corpora", "trec")
TRAINING = "training"  # states to resume from: they change, and go when the training is over
SHARED = (*MADE, TRAINING)
LOGS = "logs"
LOG_SECONDS, LOG_BYTES = 5.0, 1_000_000  # a copy every 5 s, and 5 s more for each MB
TRIES, WAIT_SECONDS = 5, 1.0
Files = dict[str, tuple[int, str]]  # size and sha256 by name


def file_system(url: str) -> tuple[Any, str]:
    """The file system of a path or URL and the folder's path in it. Raises BadInput."""
    import fsspec

    try:
        files, root = fsspec.core.url_to_fs(url)
    except (ImportError, ValueError) as error:
        raise BadInput(
            f"{url} cannot be opened: {error}",
            "Check the address and the credentials",
            code="storage_unreadable",
        ) from error
    return files, str(root).rstrip("/")


def share(path: str | Path) -> None:
    """Copy the shared folder of a path to INF_FILES, in place of what has its name there.

    Raises InfError after TRIES.
    """
    name = _name(path)
    if name is None or not (folder := home() / name).is_dir():
        return
    files, root = _root()
    found = _files_of(folder)
    content, digest = _manifest(found)
    for attempt in range(1, TRIES + 1):
        try:
            with _translated(name):
                if (before := _read(name)) != found:
                    _upload(files, f"{root}/{name}", folder, found, content, digest)
                    if before is not None:  # and no other's: it may be on its way
                        _remove(files, f"{root}/{name}.files/{_manifest(before)[1]}")
            break
        except InfError as error:
            if attempt == TRIES:
                raise
            log.warning("%s; next attempt soon", error)
            time.sleep(WAIT_SECONDS * 2**attempt)
    _remember(name, digest)


def withdraw(path: str | Path) -> None:
    """Delete the copy in INF_FILES of a shared folder's path; a failure is logged."""
    if (name := _name(path)) is None:
        return
    try:
        files, root = _root()
        with _translated(name):
            _remove(files, f"{root}/{name}.json")  # first: a reader finds a whole copy or none
            _remove(files, f"{root}/{name}.files")
    except InfError as error:
        log.warning("%s", error)
    (home() / "shared" / name).unlink(missing_ok=True)


def require_own_files(ids: Sequence[str]) -> None:
    """Raise Refused where INF_FILES has files of another store than that of these ids."""
    files, root = _root()
    place = f"{root}/store.json"
    with _translated("store.json"):
        try:
            content = files.cat_file(place)
        except FileNotFoundError:
            with suppress(FileExistsError):  # of two stores that begin together the first has it
                _write(files, place, json.dumps({"store": ids[0]}).encode(), is_new=True)
            time.sleep(WAIT_SECONDS)  # where the storage cannot refuse the second, the last one
            content = files.cat_file(place)
    if json.loads(content)["store"] not in ids:
        raise Refused(
            f"INF_FILES, {files_root()}, has the files of another store",
            "give each store a place of its own, such as a folder in it; where that store is gone, "
            "delete store.json there",
            code="files_of_another_store",
        )


def drop_states(ended: Collection[str]) -> None:
    """Delete the states of these trainings here and in INF_FILES: the machine that began one has
    them still where another finished it, as has a storage that was away."""
    if not files_root():
        return
    there = {path.name for path in (home() / TRAINING).glob("*")}
    with suppress(NotFound):
        there |= {name.removesuffix(".json") for name in _listed(TRAINING)}
    for name in there & set(ended):
        shutil.rmtree(home() / TRAINING / name, ignore_errors=True)
        withdraw(home() / TRAINING / name)


def share_the_rest() -> None:
    """Copy what this machine has and never copied or fetched: from before INF_FILES, or what a
    kill left out. What is another's by that name stays; a failure is logged."""
    if not files_root():
        return
    for folder in MADE:
        for path in sorted((home() / folder).glob("*")):
            name = _name(path)
            if name is None or path.name.startswith(".") or _remembered(name):
                continue
            try:
                if _read(name) is None:
                    share(path)
            except (InfError, OSError) as error:  # a file that may not be read, or went away
                log.warning("%s", error)


def here(path: str | Path) -> Path:
    """The path, its folder fetched first where INF_FILES has it and this machine not, or a newer.

    Raises InfError where INF_FILES cannot be read, or a copy differs from what was written.
    """
    name = _name(path)
    for left in reversed(range(3 if name is not None else 0)):  # it may be replaced meanwhile
        found = _read(str(name))
        if found is None or _is_newest(str(name), found):
            break
        try:
            _fetch(str(name), found)
            break
        except NotFound:
            if not left:
                raise
    return Path(path)


def _is_newest(name: str, found: Files) -> bool:
    """Whether this machine has what INF_FILES has. Raises InfError where it has another's name."""
    folder, digest = home() / name, _manifest(found)[1]
    if not folder.exists() or (known := _remembered(name)) not in ("", digest):
        return False
    if not known and _files_of(folder) != found:
        if name.startswith(TRAINING):  # the other machine went on from there
            return False
        raise InfError(
            f"{folder} of {platform.node()} was never shared, and is another than {name} in "
            "INF_FILES",
            f"there, keep it by another name (`mv {shlex.quote(str(folder))} "
            f"{shlex.quote(f'{folder}-of-{platform.node()}')}`); the shared one is fetched then",
            code="shared_file_differs",
        )
    _remember(name, digest)
    return True


def is_there(path: str | Path) -> bool:
    """Whether this machine or INF_FILES has the file or folder."""
    name = _name(path)
    return Path(path).exists() or (name is not None and _read(name) is not None)


def those_there(paths: Collection[str]) -> set[str]:
    """Those of the paths that this machine or INF_FILES has: one listing, if one is not here."""
    found = {path for path in paths if Path(path).exists()}
    names = {path: name for path in paths if path not in found and (name := _name(path))}
    for folder in {name.partition("/")[0] for name in names.values()}:
        with suppress(NotFound):
            listed = _listed(folder)
            found |= {path for path, name in names.items() if f"{Path(name).name}.json" in listed}
    return found


def named_in(value: Any) -> Iterator[str]:
    """The paths of shared files among the texts of a config or result."""
    return (text for text in texts_in(value) if _name(text) is not None)


@contextmanager
def copied_log(path: Path) -> Iterator[None]:
    """Copy the log of this process to INF_FILES while it grows, and at the end."""
    over = threading.Event()

    def copy() -> None:
        copied = 0
        while not over.wait(LOG_SECONDS * (1 + copied / LOG_BYTES)):
            if (size := _size(path)) != copied:
                share_log(path)
                copied = size

    copying = threading.Thread(target=copy, daemon=True)
    if files_root():
        copying.start()
    try:
        yield
    finally:
        over.set()
        if files_root():
            copying.join()
            share_log(path)


def share_log(path: Path) -> None:
    """Copy a log to INF_FILES; a failure is logged, as the next copy has all of it."""
    if not files_root() or not path.is_file():
        return
    try:
        files, root = _root()
        with _translated(path.name):
            _write(files, f"{root}/{LOGS}/{path.name}", path.read_bytes())
    except InfError as error:
        log.warning("%s", error)


def newer_log(path: Path) -> Path:
    """A log's path, or that of a copy of it with what another machine has written since.

    A process may be writing to the log itself: it is never replaced.
    """
    if not files_root() or path.parent != home() / LOGS:
        return path
    copy = home() / "shared" / LOGS / path.name
    try:
        files, root = _root()
        with suppress(NotFound), _translated(path.name):
            size = files.size(f"{root}/{LOGS}/{path.name}") or 0
            if size > _size(path):
                if size != _size(copy):
                    _replace(copy, files.cat_file(f"{root}/{LOGS}/{path.name}"))
                return copy
    except InfError as error:
        log.warning("%s", error)
    return path


def _size(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0


def _name(path: str | Path) -> str | None:
    """The shared folder that a path is of or in, such as `releases/mine`; None for any other."""
    if not files_root():
        return None
    try:
        parts = Path(path).relative_to(home()).parts
    except ValueError:
        return None
    is_one = len(parts) >= 2 and parts[0] in SHARED and not parts[1].startswith(".")
    return "/".join(parts[:2]) if is_one else None


def _root() -> tuple[Any, str]:
    files, root = file_system(files_root())
    files.invalidate_cache()  # of listings and sizes, which other machines change
    return files, root


@contextmanager
def _translated(name: str) -> Iterator[None]:
    try:
        yield
    except InfError:
        raise
    except FileNotFoundError as error:
        raise NotFound(
            f"{name} is not in INF_FILES, or was replaced meanwhile",
            "try again",
            code="shared_file_missing",
        ) from error
    except Exception as error:  # whatever the driver of the storage raises
        raise InfError(
            f"{name} cannot be copied from or to INF_FILES: {error}",
            "check INF_FILES, its credentials and the network, and resume",
            code="shared_files_unreachable",
        ) from error


def _files_of(folder: Path) -> Files:
    """The files of a folder by their path in it, without unfinished ones."""
    named = {each.relative_to(folder): each for each in sorted(folder.rglob("*")) if each.is_file()}
    return {
        name.as_posix(): _size_and_hash(each)
        for name, each in named.items()
        if not any(part.startswith(".") for part in name.parts)
    }


def _size_and_hash(path: Path) -> tuple[int, str]:
    digest = file_sha256(path)
    return path.stat().st_size, digest


def _manifest(files: Files) -> tuple[bytes, str]:
    content = json.dumps({"files": files}, sort_keys=True, indent=1).encode()
    return content, hashlib.sha256(content).hexdigest()[:16]


def _read(name: str) -> Files | None:
    """The files that INF_FILES has by that name; None if it has none, or not yet all of them."""
    files, root = _root()
    try:
        with _translated(name):
            read = json.loads(files.cat_file(f"{root}/{name}.json"))["files"]
    except NotFound:
        return None
    for key in read:
        if key.startswith("/") or ".." in Path(key).parts:
            raise InfError(
                f"{name} in INF_FILES names {key}, a place outside of it",
                "make it again",
                code="shared_file_damaged",
            )
    return {key: (size, sha256) for key, (size, sha256) in read.items()}


def _upload(
    files: Any, place: str, folder: Path, found: Files, content: bytes, digest: str
) -> None:
    whole = f"{place}.files/{digest}"
    for parent in dict.fromkeys(f"{whole}/{name}".rpartition("/")[0] for name in found):
        files.makedirs(parent, exist_ok=True)
    for name in found:
        files.put_file(str(folder / name), f"{whole}/{name}")
    _write(files, f"{place}.json", content)


def _listed(folder: str) -> set[str]:
    """The names in a folder of INF_FILES. Raises NotFound, InfError."""
    files, root = _root()
    with _translated(folder):
        return {str(each).rpartition("/")[2] for each in files.ls(f"{root}/{folder}", False)}


def _remove(files: Any, place: str) -> None:
    with suppress(FileNotFoundError):
        files.rm(place, recursive=True)


def _write(files: Any, target: str, content: bytes, *, is_new: bool = False) -> None:
    """Write a file that is whole or not there, also where writing is no one step.

    is_new: only where there is none, else it raises FileExistsError, if the storage can.
    """
    files.makedirs(target.rpartition("/")[0], exist_ok=True)
    if "file" not in (files.protocol if isinstance(files.protocol, tuple) else (files.protocol,)):
        files.pipe_file(target, content, **({"mode": "create"} if is_new else {}))
        return
    _replace(Path(target), content, is_new=is_new)


def _replace(path: Path, content: bytes, *, is_new: bool = False) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    part.write_bytes(content)
    try:
        if not is_new:
            part.replace(path)
            return
        try:
            os.link(part, path)
        except FileExistsError:
            raise
        except OSError:  # a mount without hard links
            with path.open("xb") as file:
                try:
                    file.write(content)
                except OSError:
                    path.unlink()
                    raise
    finally:
        part.unlink(missing_ok=True)


def _fetch(name: str, found: Files) -> None:
    """Copy to this machine, whole or not at all. Raises NotFound where it was replaced meanwhile,
    InfError."""
    files, root = _root()
    folder, digest = home() / name, _manifest(found)[1]
    part, old = (folder.with_name(f".{folder.name}.{uuid.uuid4().hex}") for _ in range(2))
    try:
        for each, expected in found.items():
            target = part / each
            target.parent.mkdir(parents=True, exist_ok=True)
            with _translated(name):
                files.get_file(f"{root}/{name}.files/{digest}/{each}", str(target))
            if _size_and_hash(target) != expected:
                raise InfError(
                    f"{each} of {name} in INF_FILES differs from what was written",
                    "make it again",
                    code="shared_file_damaged",
                )
        with suppress(FileNotFoundError):
            folder.rename(old)
        try:
            part.rename(folder)
        except OSError:  # another process was faster
            if not folder.exists():
                raise
        _remember(name, digest)
    finally:
        shutil.rmtree(part, ignore_errors=True)
        shutil.rmtree(old, ignore_errors=True)


def _remembered(name: str) -> str:
    path = home() / "shared" / name
    return path.read_text(encoding="ascii") if path.is_file() else ""


def _remember(name: str, digest: str) -> None:
    if _remembered(name) != digest:
        _replace(home() / "shared" / name, digest.encode())
