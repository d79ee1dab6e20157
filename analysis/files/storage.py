"""Folders by path or URL: the one module that knows where releases are stored.

A path is a folder of this machine. A URL (`s3://…`, `gs://…`, `memory://…`) is a folder of any file
system that fsspec has a driver for. What is written there is finished in a local folder first, and
uploaded with its manifest last: a remote folder with a manifest is complete. What is read there is
copied into `$INF_HOME/fetched` first.
"""

import hashlib
import os
import re
import shutil
from dataclasses import dataclass
from pathlib import Path

from analysis.files.shared import file_system, here
from db.errors import NotFound
from db.home import home, space_in

UPLOADING = ".uploading"  # stands in a remote folder while its files are being written
_URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)


@dataclass(frozen=True)
class Place:
    """A folder by absolute path or by URL; `str` gives it."""

    url: str

    def __str__(self) -> str:
        return self.url

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of this machine."""
        return _URL.match(self.url) is None

    @property
    def work_folder(self) -> Path:
        """The local folder in which its files are finished, without a process's suffix.

        Beside a local folder, so that a rename puts it in place.
        """
        if self.is_local:
            path = Path(self.url)
            return path.parent / f".{path.name}.unfinished"
        return home() / "unfinished" / hashlib.sha256(self.url.encode()).hexdigest()[:16]

    def is_file(self) -> bool:
        """Whether a file has the folder's name."""
        if self.is_local:
            path = Path(self.url)
            return path.exists() and not path.is_dir()
        files, root = file_system(self.url)
        return bool(files.isfile(root))

    def is_free(self) -> bool:
        """Whether it holds nothing, or only what an interrupted upload left."""
        if self.is_local:
            path = Path(self.url)
            return not path.is_dir() or not any(path.iterdir())
        files, root = file_system(self.url)
        return not files.exists(root) or not files.find(root) or self.read(UPLOADING) is not None

    def read(self, name: str) -> bytes | None:
        """The bytes of a file in it; None if there is none."""
        if self.is_local:
            path = Path(self.url) / name
            return path.read_bytes() if path.is_file() else None
        files, root = file_system(self.url)
        remote = f"{root}/{name}"
        return bytes(files.cat_file(remote)) if files.isfile(remote) else None

    def publish(self, folder: Path, *, manifest: str, replace: bool = False) -> None:
        """Move the finished local folder here; `replace` what is here already.

        Raises OSError; a local folder that got files meanwhile stays as it is.
        """
        if not self.is_local:
            self._upload(folder, manifest)
            shutil.rmtree(folder)
            return
        path = Path(self.url)
        if replace:
            old = self.work_folder.with_name(f"{self.work_folder.name}-old-{os.getpid()}")
            path.rename(old)
            folder.rename(path)
            shutil.rmtree(old, ignore_errors=True)
            return
        if path.is_dir():
            path.rmdir()  # only an empty folder goes
        folder.rename(path)

    def fetch(self, *, manifest: str) -> Path:
        """A local folder with its files: itself, or a copy. Raises NotFound.

        A copy is kept by the content of its manifest, since a release never changes.
        """
        if self.is_local:
            return here(self.url)
        found = self.read(manifest)
        if found is None:
            raise NotFound(
                f"no release at {self}",
                f"`releases create NAME out={self}` makes one",
                code="release_folder_missing",
            )
        key = hashlib.sha256(self.url.encode() + b"\0" + found).hexdigest()[:16]
        copy = home() / "fetched" / key
        if copy.is_dir():
            return copy
        files, root = file_system(self.url)
        part = copy.with_name(f"{key}.part-{os.getpid()}")
        shutil.rmtree(part, ignore_errors=True)
        with space_in(home(), lambda: f"a copy of {self}"):
            for path in files.find(root):
                target = part / str(path).removeprefix(root).lstrip("/")
                target.parent.mkdir(parents=True, exist_ok=True)
                files.get_file(path, str(target))
        try:
            part.rename(copy)
        except OSError:  # another process was faster
            if not copy.is_dir():
                raise
            shutil.rmtree(part, ignore_errors=True)
        return copy

    def copy_of_files(self, endings: tuple[str, ...], into: Path) -> Path:
        """A local folder with the files of these endings: itself, or a copy in `into`.

        Raises NotFound where there is no such folder.
        """
        if self.is_local:
            if not Path(self.url).is_dir():
                raise NotFound(f"no folder {self}", "check the path", code="folder_missing")
            return Path(self.url)
        files, root = file_system(self.url)
        found = [str(path) for path in files.find(root) if str(path).lower().endswith(endings)]
        if not found:
            raise NotFound(
                f"no files {', '.join(sorted(endings))} in {self}",
                "name another folder",
                code="files_missing",
            )
        for path in found:
            target = into / path.removeprefix(root).lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            files.get_file(path, str(target))
        return into

    def _upload(self, folder: Path, manifest: str) -> None:
        files, root = file_system(self.url)
        if files.exists(root):
            files.rm(root, recursive=True)
        files.makedirs(root, exist_ok=True)
        files.pipe_file(f"{root}/{UPLOADING}", b"")
        names = sorted(
            path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
        )
        for name in sorted(names, key=lambda name: name == manifest):  # stable: manifest last
            target = f"{root}/{name}"
            files.makedirs(target.rpartition("/")[0], exist_ok=True)
            files.put_file(str(folder / name), target)
        files.rm_file(f"{root}/{UPLOADING}")


def local_file(given: str) -> Path:
    """The path that is given, or a copy of the file that a URL names, in `$INF_HOME/fetched`.

    A copy is made anew every time: a file, unlike a release, may change. Raises NotFound.
    """
    if given.lower().startswith("file://") or not _URL.match(given):
        return Path(given[len("file://") :] if given.lower().startswith("file://") else given)
    files, remote = file_system(given)
    if not files.isfile(remote):
        raise NotFound(
            f"there is no file {given}",
            "Check the path: it is one of the machine that does the work",
            code="file_missing",
        )
    key = hashlib.sha256(given.encode()).hexdigest()[:16]
    copy = home() / "fetched" / f"file-{key}" / remote.rpartition("/")[2]
    copy.parent.mkdir(parents=True, exist_ok=True)
    part = copy.with_name(f"{copy.name}.part-{os.getpid()}")
    with space_in(home(), lambda: f"a copy of {given}"):
        files.get_file(remote, str(part))
    part.replace(copy)
    return copy


def place_of(given: str) -> Place:
    """The folder that a path or a URL names; `file://` is a path."""
    if given.lower().startswith("file://"):
        given = given[len("file://") :]
    if _URL.match(given):
        return Place(given.rstrip("/"))
    return Place(str(Path(given).expanduser().absolute()))
