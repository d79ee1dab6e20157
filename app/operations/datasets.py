"""Datasets: list, show, browse, import from files and from the Hub."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from pathlib import Path
from typing import Any, TypeVar

from app.access.identity import Actor, SessionUser
from app.access.permissions import require
from app.operations.acting import Launch, reading
from app.operations.archive import depending
from app.operations.rows import Listed, Row
from curation.hub.request import DatasetPull
from curation.importing.request import DatasetImport
from db.corpus.browsing import PairView, list_pairs, list_passages
from db.corpus.datasets import find_dataset, get_dataset, list_datasets
from db.corpus.texts import pair_sources
from db.errors import Refused
from db.modules import load
from db.people.rights import add_rights
from db.requests import Request
from db.run.runs import list_runs
from db.store.scope import unscoped
from db.store.store import open_store
from db.study.studies import get_study
from db.tables import Account, Passage
from db.values import RIGHTS

RIGHT, IMPORT = "curate", "import"
# What imports a request in this process: (store, request, by, progress) -> report as JSON.
WORK = {"import": "curation.importing.job:import_as", "pull": "curation.hub.pull:pull_as"}
T = TypeVar("T")
Result = dict[str, Any]


class DatasetRow(Row):
    """A dataset with its counts; `generated`: passages that runs wrote, beyond `passages`."""

    id: int
    name: str
    pairs: int
    passages: int
    generated: int
    source: str
    licence: str
    created_at: datetime
    archived_at: datetime | None


class DatasetShown(DatasetRow):
    """A dataset with the sources of its pairs, the ids of its runs, and what depends on it."""

    sources: tuple[str, ...]
    runs: tuple[int, ...]
    dependents: tuple[str, ...]


def list_all(actor: Actor, *, archived: bool = False) -> Listed[DatasetRow]:
    """Datasets by name, archived ones only on request."""
    with reading(actor, RIGHT) as session:
        found = list_datasets(session, archived=archived)
    return Listed[DatasetRow].all([DatasetRow.model_validate(each) for each in found])


def show(actor: Actor, name: str) -> DatasetShown:
    """One dataset. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        dataset_id = get_dataset(session, name).id
        row = next(one for one in list_datasets(session, archived=True) if one.id == dataset_id)
        sources = tuple(pair_sources(session, dataset_id))
        runs = tuple(run.id for run in list_runs(session, dataset_id, archived=True))
    return DatasetShown(
        **DatasetRow.model_validate(row).model_dump(),
        sources=sources,
        runs=runs,
        dependents=depending(actor, dataset=name),
    )


def pairs(
    actor: Actor, dataset_id: int, *, search: str = "", offset: int = 0
) -> tuple[list[PairView], int]:
    """A page of pairs with this text in the query, and how many there are in all."""
    with reading(actor, RIGHT) as session:
        return list_pairs(session, dataset_id, search=search, offset=offset)


def passages(
    actor: Actor, dataset_id: int, *, origin: str | None = None, search: str = "", offset: int = 0
) -> tuple[list[Passage], int]:
    """A page of passages with this text, and how many there are in all."""
    with reading(actor, RIGHT) as session:
        return list_passages(session, dataset_id, origin=origin, search=search, offset=offset)


def here(progress: Any) -> Launch[Result]:
    """Launch an import in this process; `progress` is called with (done, total)."""

    def launch(actor: Actor, kind: str, request: Request) -> Result:
        with unscoped():  # a dataset that the actor may not see was refused before
            result: Result = load(WORK[kind])(
                open_store(), request, by=actor.name, progress=progress
            )
        return result

    return launch


def import_files(
    actor: Actor, request: DatasetImport, launch: Launch[T], *, uploads: Path | None = None
) -> T:
    """Import pairs and passages, or groups, from files; other files than in `uploads` are an
    admin's. Who made the dataset has their rights on it.

    Raises Refused, and as `curation.importing.importing.import_dataset`.
    """
    _require_files(actor, request, uploads)
    return _into(actor, "import", request.name, request, launch)


def preview(actor: Actor, request: DatasetImport, *, uploads: Path | None = None) -> Any:
    """What an import of pairs would do (`ImportPreview`); stores nothing. Raises BadInput."""
    from analysis.files.storage import local_file  # here: they load what reads files
    from curation.importing.importing import preview_import

    _require_files(actor, request, uploads)
    with unscoped():
        return preview_import(
            open_store(),
            name=request.name,
            pairs=local_file(request.pairs or ""),
            passages=None if request.passages is None else local_file(request.passages),
            **request.read_by,
        )


def import_judgments(
    actor: Actor, path: Path, *, study_id: int, question: str | None, skip_bad: bool
) -> Result:
    """Import annotations of another tool as judgments of a study.

    Raises Refused, and as `curation.judging.judgment_import.import_judgments`.
    """
    from curation.judging.judgment_import import import_judgments as add  # here: it loads readers

    with reading(actor, "studies") as session:
        get_study(session, study_id)
    with unscoped():
        report = add(open_store(), path, study_id=study_id, question=question, skip_bad=skip_bad)
    return {
        "study_id": report.study_id,
        "imported": report.imported,
        "unchanged": report.unchanged,
        "judges": sorted(report.judges),
        "skipped": len(report.skipped),
        "bad_rows": list(map(asdict, report.skipped)),
        "question": report.question,
        "not_judged": report.not_judged,
        "notices": report.notices,
    }


def pull(actor: Actor, request: DatasetPull, launch: Launch[T]) -> T:
    """Import a dataset of the Hub, or of a folder. Raises Refused, and as `curation.hub.pull`."""
    require(actor, IMPORT)
    return _into(actor, "pull", request.name, request, launch)


def _into(actor: Actor, kind: str, name: str, request: Request, launch: Launch[T]) -> T:
    is_new = _is_new(actor, name)
    result = launch(actor, kind, request)
    if is_new:
        _become_member(actor, name)
    return result


def _is_new(actor: Actor, name: str) -> bool:
    """Whether no dataset has this name. Raises Refused if the actor may not curate the one."""
    with reading(actor, IMPORT) as session:
        is_own = find_dataset(session, name) is not None
    with unscoped(), open_store().read() as session:
        exists = find_dataset(session, name) is not None
    if exists and not is_own:
        raise Refused(
            f"a dataset {name!r} exists, and you have no right to it",
            "choose another name",
            code="dataset_exists_no_right",
        )
    return not exists


def _become_member(actor: Actor, name: str) -> None:
    """Give who imported a new dataset, on it, the rights that they have on anything."""
    if not isinstance(actor, SessionUser) or actor.account_id is None:
        return
    if actor.rights.is_everywhere("curate"):
        return
    rights = [right for right in RIGHTS if actor.rights.anywhere(right)]
    with unscoped(), open_store().write() as session:
        if (dataset := find_dataset(session, name)) is None:  # its job has not begun
            return
        account = session.get_one(Account, actor.account_id)
        add_rights(session, account, rights, actor=actor.name, dataset_id=dataset.id)
        session.commit()


def _require_files(actor: Actor, request: DatasetImport, uploads: Path | None) -> None:
    require(actor, IMPORT)
    if not actor.is_admin and not all(_is_in(uploads, each) for each in _files(request)):
        raise Refused(
            "only an admin can import files on the server",
            "upload the files instead",
            code="only_admin_can_import",
        )


def _files(request: DatasetImport) -> Iterable[str]:
    return filter(None, (request.pairs, request.passages, *request.groups))


def _is_in(folder: Path | None, given: str) -> bool:
    return folder is not None and Path(given).resolve().is_relative_to(folder.resolve())
