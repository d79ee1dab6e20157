"""Import from the page, with progress: uploaded files, or files on the server for an admin."""

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Protocol

from app.access.identity import SessionUser
from app.access.session_user import require_permission
from curation.importing.checking import Progress
from curation.importing.importing import ImportReport, import_dataset
from curation.importing.preview import ImportPreview, preview_import
from db.errors import BadInput, Refused
from db.people.audit import record_audit
from db.store.store import open_store

CHUNK_BYTES = 1 << 20


class Uploaded(Protocol):
    """A file uploaded by the browser."""

    name: str

    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True)
class Sources:
    """The source of the rows: uploads, or paths on the server."""

    pairs: Uploaded | None = None
    passages: Uploaded | None = None
    pairs_path: str = ""
    passages_path: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)


def preview_from_page(sources: Sources, *, name: str) -> ImportPreview:
    """What an import would do; stores nothing. Raises Refused and BadInput."""
    _require_import(sources)
    with _files(sources) as (pairs, passages):
        return preview_import(
            open_store(), name=name, pairs=pairs, passages=passages, columns=sources.columns
        )


def import_from_page(
    sources: Sources,
    *,
    name: str,
    source: str,
    licence: str,
    skip_bad: bool,
    progress: Progress,
) -> ImportReport:
    """Import as the session user. Raises Refused, BadInput and BadRows."""
    user = _require_import(sources)
    if not name.strip():
        raise BadInput("the dataset has no name: enter one")
    store = open_store()
    with _files(sources) as (pairs, passages):
        report = import_dataset(
            store,
            name=name.strip(),
            pairs=pairs,
            passages=passages,
            columns=sources.columns,
            source=source.strip(),
            licence=licence.strip(),
            skip_bad=skip_bad,
            progress=progress,
        )
    with store.write() as session:
        record_audit(session, user.name, "import", name.strip(), **report.imported)
        session.commit()
    return report


def _require_import(sources: Sources) -> SessionUser:
    user = require_permission("import")
    if (sources.pairs_path or sources.passages_path) and not user.may("admin"):
        raise Refused("only an admin can import files on the server: upload the files instead")
    return user


@contextmanager
def _files(sources: Sources) -> Iterator[tuple[Path, Path | None]]:
    if sources.pairs_path:
        passages = Path(sources.passages_path).expanduser() if sources.passages_path else None
        yield Path(sources.pairs_path).expanduser(), passages
        return
    if sources.pairs is None:
        raise BadInput("no pairs file: choose one")
    with tempfile.TemporaryDirectory(prefix="inf-import-") as folder:
        pairs = _written(sources.pairs, Path(folder) / "pairs")
        apart = sources.passages
        yield pairs, None if apart is None else _written(apart, Path(folder) / "passages")


def _written(upload: Uploaded, folder: Path) -> Path:
    folder.mkdir()
    path = folder / (Path(upload.name).name or "upload")
    with path.open("wb") as file:
        _copy(upload, file)
    return path


def _copy(upload: Uploaded, file: BinaryIO) -> None:
    while chunk := upload.read(CHUNK_BYTES):
        file.write(chunk)
