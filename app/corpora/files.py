"""Files of texts that a user gives to an analysis: kept by their content, so that the analysis
can be made again by its command."""

import hashlib
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from analysis.files.published import SUFFIXES
from db.errors import BadInput
from db.store.settings import home

UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")


class Uploaded(Protocol):
    """A file as the browser sent it."""

    name: str

    def getvalue(self) -> bytes: ...


def keep_uploads(files: Iterable[Uploaded]) -> list[str]:
    """Paths of the files in our home, each in a folder named by its content.

    Raises BadInput for a file of no known kind.
    """
    return [str(_keep(file.name, file.getvalue())) for file in files]


def _keep(name: str, content: bytes) -> Path:
    safe = UNSAFE.sub("-", Path(name).name).lstrip(".-") or "texts"
    if Path(safe).suffix not in SUFFIXES:
        raise BadInput(f"{name!r}: give {', '.join(sorted(SUFFIXES))}")
    folder = home() / "corpora" / hashlib.sha256(content).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / safe
    if not path.exists():
        half = folder / f".{safe}.part"
        half.write_bytes(content)
        half.replace(path)
    return path
