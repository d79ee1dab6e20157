"""Import from the page, with progress: uploaded files, or files on the server for an admin."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Protocol

from sqlalchemy import select
from sqlalchemy.orm import Session

from app.access.identity import SessionUser
from app.access.session_user import require_permission
from curation.importing.checking import Progress
from curation.importing.importing import (
    ImportPreview,
    ImportReport,
    import_dataset,
    preview_import,
)
from db.errors import BadInput, Refused
from db.events import record_event
from db.people.rights import add_rights
from db.store.scope import unscoped
from db.store.store import Store, open_store
from db.tables import Account, Dataset
from db.values import RIGHTS

CHUNK_BYTES = 1 << 20


class Uploaded(Protocol):
    """A file uploaded by the browser."""

    name: str

    def read(self, size: int = -1, /) -> bytes: ...


@dataclass(frozen=True)
class Sources:
    """The source of the rows: uploads, or paths on the server; several uploads are a folder."""

    pairs: Sequence[Uploaded] = ()
    passages: Uploaded | None = None
    pairs_path: str = ""
    passages_path: str = ""
    columns: Mapping[str, str] = field(default_factory=dict)
    split: str = ""
    layout: str | None = None  # a format of `curation.sources`

    def read_by(self) -> dict[str, Any]:
        """How the files are read, as `import_dataset` takes it."""
        split = self.split.strip() or None
        return {"columns": self.columns, "split": split, "layout": self.layout}


def preview_from_page(sources: Sources, *, name: str) -> ImportPreview:
    """What an import would do; stores nothing. Raises Refused and BadInput."""
    _require_import(sources)
    with _files(sources) as (pairs, passages):
        return preview_import(
            open_store(), name=name, pairs=pairs, passages=passages, **sources.read_by()
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
        raise BadInput("the dataset has no name", "enter one", code="dataset_no_name")
    store = open_store()
    is_new = _is_new_dataset(store, name.strip())
    with _files(sources) as (pairs, passages), unscoped():
        report = import_dataset(
            store,
            name=name.strip(),
            pairs=pairs,
            passages=passages,
            **sources.read_by(),
            source=source.strip(),
            licence=licence.strip(),
            skip_bad=skip_bad,
            progress=progress,
        )
    with unscoped(), store.write() as session:
        if is_new:
            _become_member(session, user, name.strip())
        record_event(session, user.name, "import", name.strip(), **report.imported)
        session.commit()
    return report


def _is_new_dataset(store: Store, name: str) -> bool:
    """Whether no dataset has this name. Raises Refused if the user may not curate the one."""
    with store.read() as session:
        is_own = session.scalar(select(Dataset.id).where(Dataset.name == name)) is not None
    with unscoped(), store.read() as session:
        exists = session.scalar(select(Dataset.id).where(Dataset.name == name)) is not None
    if exists and not is_own:
        raise Refused(
            f"a dataset {name!r} exists, and you have no right to it",
            "choose another name",
            code="dataset_exists_no_right",
        )
    return not exists


def _become_member(session: Session, user: SessionUser, name: str) -> None:
    """Give who imported a new dataset, on it, the rights that they have on anything."""
    dataset_id = session.scalar(select(Dataset.id).where(Dataset.name == name))
    if dataset_id is None or user.account_id is None or user.rights.is_everywhere("curate"):
        return
    rights = [right for right in RIGHTS if user.rights.anywhere(right)]
    account = session.get_one(Account, user.account_id)
    add_rights(session, account, rights, actor=user.name, dataset_id=dataset_id)


def _require_import(sources: Sources) -> SessionUser:
    user = require_permission("import")
    if (sources.pairs_path or sources.passages_path) and not user.is_admin:
        raise Refused(
            "only an admin can import files on the server",
            "upload the files instead",
            code="only_admin_can_import",
        )
    return user


@contextmanager
def _files(sources: Sources) -> Iterator[tuple[Path, Path | None]]:
    if sources.pairs_path:
        passages = Path(sources.passages_path).expanduser() if sources.passages_path else None
        yield Path(sources.pairs_path).expanduser(), passages
        return
    if not sources.pairs:
        raise BadInput("no pairs file", "choose one", code="no_pairs_file")
    with tempfile.TemporaryDirectory(prefix="inf-import-") as folder:
        written = [_written(each, Path(folder) / "pairs") for each in sources.pairs]
        pairs = written[0] if len(written) == 1 else Path(folder) / "pairs"
        apart = sources.passages
        yield pairs, None if apart is None else _written(apart, Path(folder) / "passages")


def _written(upload: Uploaded, folder: Path) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / (Path(upload.name).name or "upload")
    with path.open("wb") as file:
        _copy(upload, file)
    return path


def _copy(upload: Uploaded, file: BinaryIO) -> None:
    while chunk := upload.read(CHUNK_BYTES):
        file.write(chunk)
