"""Pulling a dataset from the Hub into the store, by name and revision.

Files with InF-IR's seven columns, or those of their release's shape, become groups; other layouts
and mapped columns become pairs (`curation.hub.layouts`). The origin is recorded by commit, whatever
the name of the requested revision. In place of a repository, a folder of this machine or of a
storage (`s3://…`) is read.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from analysis.files.rows import read_rows
from analysis.files.storage import place_of
from curation.hub.hub import reading_api, translated_errors
from curation.hub.layouts import GROUPS, PAIRS, Wanted, layout_of, rows_of
from curation.hub.request import DatasetPull, is_folder
from curation.importing.checking import Progress
from curation.importing.columns import renamed
from curation.importing.files import DATA_ENDINGS, data_files, of_split, shape_of_files
from curation.importing.groups import GroupImport, import_groups
from curation.importing.imported import GroupsPulled, PairsPulled
from curation.importing.importing import ImportReport, import_dataset
from curation.importing.job import groups_imported, pairs_imported
from curation.release.plan import MANIFEST
from curation.sources.converting import write_files
from db.errors import BadInput
from db.events import record_event
from db.home import temporary_folder
from db.jobs.runner import JobHandle
from db.store.store import Store


@dataclass(frozen=True)
class Pulled:
    """What was pulled: groups or pairs, and from which commit."""

    repo: str
    commit: str
    licence: str
    groups: GroupImport | None
    pairs: ImportReport | None
    layout: str = ""
    left_out: dict[str, int] = field(default_factory=dict)


def pull(
    store: Store,
    *,
    repo: str,
    name: str,
    revision: str | None = None,
    licence: str = "",
    skip_bad: bool = False,
    imported_by: str = "",
    progress: Progress | None = None,
    wanted: Wanted | None = None,
) -> Pulled:
    """Download a dataset and import it as `name`.

    The licence is the card's if none is given. Raises HubError, NotFound, BadInput, BadRows, and
    Refused for files of unknown columns or of several splits.
    """
    wanted = wanted or Wanted()
    commit = ""

    def record(session: Session, counts: Mapping[str, int]) -> None:
        record_event(session, imported_by, "import", name, repo=repo, commit=commit)

    shared: dict[str, Any] = {
        "name": name,
        "skip_bad": skip_bad,
        "progress": progress,
        "record": record,
    }
    if is_folder(repo):
        with temporary_folder("inf-pull-") as aside:
            place = place_of(repo)
            data = place.copy_of_files((*DATA_ENDINGS, MANIFEST), aside / "copy")
            # the folder's name alone: no path of this machine goes into a card
            origin = f"folder:{place.url.rstrip('/').rpartition('/')[2]}"
            shared |= {"source": origin, "licence": licence}
            found = _import(store, data, aside, wanted, origin, imported_by, shared)
        return replace(found, repo=repo, licence=licence)
    api = reading_api()
    patterns = [f"*{suffix}" for suffix in DATA_ENDINGS] + ["release.json"]
    with temporary_folder("inf-pull-") as folder:
        with translated_errors(f"pulling {repo}", pulling=True):
            info = api.dataset_info(repo, revision=revision)
            licence = licence or _licence(info)
            api.snapshot_download(
                repo,
                repo_type="dataset",
                revision=info.sha,
                local_dir=folder,
                allow_patterns=patterns,
            )
        commit = info.sha
        shared |= {"source": f"hf:{repo}", "licence": licence}
        origin = f"hf:{repo}@{commit}"
        with temporary_folder("inf-pull-") as aside:
            found = _import(store, folder, aside, wanted, origin, imported_by, shared)
        return replace(found, repo=repo, commit=commit, licence=licence)


def _import(
    store: Store,
    folder: Path,
    aside: Path,
    wanted: Wanted,
    origin: str,
    imported_by: str,
    shared: dict[str, Any],
) -> Pulled:
    """Import the folder's data files; changed copies of rows are written to `aside`."""
    files = data_files(folder)
    shape = shape_of_files(files)
    layout = layout_of(files, wanted, shape)
    if layout != GROUPS or wanted.split is not None:  # of groups all, if none is named
        files = of_split(files, wanted.split)
    if layout == GROUPS:
        if wanted.columns:
            files = [_mapped(file, wanted, aside) for file in files]
        groups = import_groups(
            store, files=files, origin=origin, imported_by=imported_by, shape=shape, **shared
        )
        return Pulled("", "", "", groups, None, layout)
    if layout == PAIRS:
        reports = [
            import_dataset(
                store,
                pairs=file,
                columns=wanted.columns,
                **shared | ({} if file == files[-1] else {"record": None}),
            )
            for file in files
        ]
        return Pulled("", "", "", None, _together(reports), layout)
    made = write_files(rows_of(files, layout, wanted), aside / "made", limit=wanted.limit)
    if not made.pairs:
        reasons = ", ".join(f"{reason} {number}" for reason, number in made.left_out.items())
        raise BadInput(
            f"no row gives a pair as {layout} ({reasons or 'there is no row'})",
            "Map its columns by `column=`, or name its layout by `layout=`",
            code="rows_without_pairs",
        )
    pairs = import_dataset(store, pairs=made.pairs_path, passages=made.passages_path, **shared)
    return Pulled("", "", "", None, pairs, layout, made.left_out)


def _together(reports: list[ImportReport]) -> ImportReport:
    whole = reports[0]
    for each in reports[1:]:
        for name in ("pairs", "passages"):
            whole.imported[name] += each.imported[name]
            whole.unchanged[name] += each.unchanged[name]
        whole.negatives += each.negatives
        whole.skipped += each.skipped
    return whole


def _mapped(file: Path, wanted: Wanted, aside: Path) -> Path:
    """A copy of the file with our names of columns."""
    copy = aside / f"{file.name}.jsonl"
    with copy.open("w", encoding="utf-8") as out:
        for row in read_rows(file):
            if row.reason is not None:
                raise BadInput(
                    f"{file.name}, row {row.line}: {row.reason}",
                    "correct that row, or map its columns with `column=`",
                    code="row_invalid",
                )
            line = json.dumps(renamed(row.values, wanted.columns), ensure_ascii=False)
            out.write(line + "\n")
    return copy


def _licence(info: Any) -> str:
    card = getattr(info, "card_data", None)
    listed = getattr(card, "license", None) if card is not None else None
    return listed if isinstance(listed, str) and listed not in ("other", "unknown") else ""


def pull_as_job(handle: JobHandle) -> PairsPulled | GroupsPulled:
    """The handler of `pull` jobs; config DatasetPull.

    Continues where it stopped: rows that are stored are not stored again.
    """
    request = DatasetPull.read(handle.config)

    def progress(done: int, total: int) -> None:
        handle.check()
        handle.report(done, total, f"importing into {request.name}")

    handle.report(0, None, f"downloading {request.repo}")
    return pull_as(handle.store, request, by=handle.started_by, progress=progress)


def pull_as(
    store: Store, request: DatasetPull, *, by: str, progress: Progress
) -> PairsPulled | GroupsPulled:
    """Pull what the request names; `by` is named in the audit log. Raises as `pull`."""
    pulled = pull(
        store,
        repo=request.repo,
        name=request.name,
        revision=request.revision,
        licence=request.licence,
        skip_bad=request.skip_bad,
        imported_by=by,
        progress=progress,
        wanted=Wanted(
            request.layout,
            request.columns,
            request.split,
            request.limit,
            not request.without_negatives,
        ),
    )
    return _report(request.name, pulled)


def _report(name: str, pulled: Pulled) -> PairsPulled | GroupsPulled:
    about: dict[str, Any] = {
        "repo": pulled.repo,
        "commit": pulled.commit,
        "licence": pulled.licence,
        "layout": pulled.layout,
        "left_out": pulled.left_out,
    }
    if pulled.groups is not None:
        return GroupsPulled(**vars(groups_imported(name, pulled.groups)), **about)
    assert pulled.pairs is not None
    return PairsPulled(**vars(pairs_imported(name, pulled.pairs)), **about)
