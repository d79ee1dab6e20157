"""Importing by a request: in this process, or as the job `import`."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from analysis.files.storage import local_file
from curation.importing.checking import Progress
from curation.importing.files import shape_of_files
from curation.importing.groups import GroupImport, import_groups
from curation.importing.imported import GroupsImported, PairsImported
from curation.importing.importing import ImportReport, import_dataset
from curation.importing.request import DatasetImport
from db.errors import BadInput
from db.events import record_event
from db.jobs.runner import JobHandle
from db.store.store import Store


def import_files(handle: JobHandle) -> PairsImported | GroupsImported:
    """The handler of `import` jobs; config DatasetImport.

    Fails with the bad rows if there are any and skip_bad is not set.
    """
    request = DatasetImport.read(handle.config)

    def progress(done: int, total: int) -> None:
        handle.check()
        handle.report(done, total, f"importing into {request.name}")

    return import_as(handle.store, request, by=handle.started_by, progress=progress)


def import_as(
    store: Store, request: DatasetImport, *, by: str, progress: Progress
) -> PairsImported | GroupsImported:
    """Import what the request names; `by` is named in the audit log.

    Raises BadInput, and as `import_dataset` and `import_groups`.
    """
    if (request.pairs is None) == (not request.groups):
        raise BadInput("give either pairs or groups", code="pairs_exclude_groups")

    def record(session: Session, counts: Mapping[str, int]) -> None:
        record_event(session, by, "import", request.name, **counts)

    about: dict[str, Any] = {
        "name": request.name,
        "source": request.source,
        "licence": request.licence,
        "skip_bad": request.skip_bad,
        "progress": progress,
        "record": record,
    }
    if request.pairs is None:
        files = [local_file(each) for each in request.groups]
        origin = ", ".join(path.name for path in files)
        groups = import_groups(
            store,
            files=files,
            origin=origin,
            imported_by=by,
            shape=shape_of_files(files),
            **about,
        )
        return groups_imported(request.name, groups)
    report = import_dataset(
        store,
        pairs=local_file(request.pairs),
        passages=None if request.passages is None else local_file(request.passages),
        **request.read_by,
        **about,
    )
    return pairs_imported(request.name, report)


def pairs_imported(name: str, report: ImportReport) -> PairsImported:
    """The report of an import of pairs."""
    return PairsImported(
        dataset_id=report.dataset_id,
        dataset=name,
        imported=report.imported["pairs"],
        imported_passages=report.imported["passages"],
        imported_negatives=report.negatives,
        unchanged=report.unchanged["pairs"],
        unchanged_passages=report.unchanged["passages"],
        skipped=report.skipped_count,
        bad_rows=tuple(report.skipped),
        notices=tuple(report.notices),
    )


def groups_imported(name: str, report: GroupImport) -> GroupsImported:
    """The report of an import of groups."""
    return GroupsImported(
        dataset_id=report.dataset_id,
        dataset=name,
        run_id=report.run_id,
        imported=report.imported,
        unchanged=report.unchanged,
        skipped=len(report.skipped),
        bad_rows=tuple(report.skipped),
        notices=tuple(report.notices),
    )
