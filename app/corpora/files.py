"""Files uploaded for an analysis, stored by content hash so that its command can be run again."""

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
    """An uploaded file."""

    name: str

    def getvalue(self) -> bytes: ...


def keep_uploads(files: Iterable[Uploaded]) -> list[str]:
    """Paths of the stored files, each in a folder named by its content hash.

    Raises BadInput for an unsupported file type.
    """
    return [str(_keep(file.name, file.getvalue())) for file in files]


def _keep(name: str, content: bytes) -> Path:
    safe = UNSAFE.sub("-", Path(name).name).lstrip(".-") or "texts"
    if Path(safe).suffix not in SUFFIXES:
        formats = ", ".join(sorted(SUFFIXES))
        raise BadInput(f"{name!r} is no corpus", f"upload {formats}", code="format_unknown")
    folder = home() / "corpora" / hashlib.sha256(content).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / safe
    if not path.exists():
        half = folder / f".{safe}.part"
        half.write_bytes(content)
        half.replace(path)
    return path
