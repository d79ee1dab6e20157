"""Releases: create, list, show, compare, push."""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, TypeVar

from sqlalchemy.orm import Session

from analysis.files.shared import here, is_there
from app.access.identity import Actor
from app.jobs.places import require_no_files
from app.operations.acting import Launch, reading, writing
from curation.hub.request import PushStart
from curation.release.plan import PICTURE, choice_of, with_runs
from curation.release.request import ReleasePlan
from curation.run.shared_parts import is_unchecked, shared_sentence, stored_shared_parts
from db.corpus.datasets import get_dataset
from db.corpus.texts import pair_languages, pair_sources
from db.errors import BadInput, Refused
from db.events import record_event
from db.home import home
from db.jobs.jobs import list_jobs
from db.release.choice import ChosenCount, count_by_kind
from db.release.diff import diff_releases
from db.release.releases import get_release, list_releases, pushes
from db.rows import Json, Listed, Row
from db.run.progress import list_runs
from db.run.runs import RunSummary, get_run
from db.study.studies import list_studies
from db.tables import Dataset, Job, Release

RIGHT = "export"
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")
T = TypeVar("T")
if TYPE_CHECKING:
    from curation.release.preview import ReleasePreview


class PushRow(Row):
    """A push that arrived: at which repository and address, under which tag, when."""

    repo: str
    url: str
    tag: str | None
    at: datetime


class ReleaseRow(Row):
    """A release in a list. `path` is its folder on the server, or its URL."""

    id: int
    name: str
    dataset_id: int
    groups: int | None
    reviews: str
    format: str
    offline: bool
    created_at: datetime
    created_by: str
    pushed_to: tuple[str, ...]
    pushes: tuple[PushRow, ...]
    content_sha256: str
    path: str
    filter: Json


class ReleaseShown(ReleaseRow):
    """A release with its dataset card."""

    card: str


class DiffRow(Row):
    """A group that two releases do not have alike."""

    query_id: str
    change: str
    why: str


class ReleaseDiff(Listed[DiffRow]):
    """The groups that two releases do not have alike; `changes`: how many by kind, in all."""

    changes: dict[str, int]


class ReleaseOptions(Row):
    """What the filters of a release of these runs may name; `studies`: names by id."""

    sources: tuple[str, ...]
    languages: tuple[str, ...]
    studies: dict[int, str]


class RunCheck(Row):
    """A run of a release: what its texts share ("" for nothing), and whether the groups that it
    keeps now were never checked for that and for leakage."""

    run_id: int
    shared: str
    is_unchecked: bool


@dataclass(frozen=True)
class ReleaseArchive:
    """A zip that is made while it is sent; `name` is that of its file."""

    name: str
    chunks: Iterator[bytes]


def create(actor: Actor, wanted: ReleasePlan, launch: Launch[T]) -> T:
    """Export the kept groups of runs as files with a dataset card.

    Raises BadInput, NotFound or Refused before anything is launched where the plan names what is
    not there; Refused where someone other than an admin writes outside of the releases' folder.
    """
    with reading(actor, RIGHT) as session:
        wanted = with_runs(session, wanted)
    require_no_files(actor, "export", wanted.config())
    return launch(actor, "export", wanted)


def archive(actor: Actor, release_id: int) -> ReleaseArchive:
    """A release as a zip of its folder.

    Raises NotFound; Refused, before the first byte, if the folder is not what was exported.
    """
    from curation.hub.archive import archive_of  # here: it loads numpy, which the start needs not

    with reading(actor, RIGHT) as session:
        release = get_release(session, release_id)
        chunks, size = archive_of(release)
        name = UNSAFE.sub("-", release.name).strip("-.") or f"release-{release_id}"
    with writing(actor, RIGHT) as session:
        about = ("release", release_id)
        record_event(session, actor.name, "release.download", about, bytes=size)
    return ReleaseArchive(f"{name}.zip", chunks)


def new_folder(actor: Actor, name: str) -> str:
    """The folder of a new release of this name among the server's.

    Raises BadInput for what cannot be a name, Refused for one that a release has or will have.
    """
    if not SAFE.fullmatch(name):
        raise BadInput(
            f"release name {name!r}",
            "use letters, digits, `.`, `_` and `-`, starting with a letter or digit; it is also the"
            " folder name",
            code="release_name_invalid",
        )
    folder = home() / "releases" / name
    with reading(actor, RIGHT) as session:
        live, out = ("queued", "running"), {"out": str(folder)}
        is_queued = list_jobs(session, kind="export", statuses=live, config=out)
    if is_queued or is_there(folder):
        raise Refused(
            f"release {name!r} already exists and releases are immutable",
            "choose another name",
            code="release_exists",
        )
    return str(folder)


def preview(actor: Actor, wanted: ReleasePlan) -> "ReleasePreview":
    """First rows, splits, card and licence conflicts of such a release. Raises InfError."""
    from curation.release.preview import preview_release  # here: it loads numpy

    with reading(actor, RIGHT) as session:
        return preview_release(session, wanted)


def counts(actor: Actor, wanted: ReleasePlan) -> list[ChosenCount]:
    """How many groups of each kind are selected, before duplicates are left out."""
    with reading(actor, RIGHT) as session:
        return [
            count
            for run_id in with_runs(session, wanted).runs
            for count in count_by_kind(
                session, choice_of(wanted, run_id), _dataset_of(session, run_id).source
            )
        ]


def options(actor: Actor, wanted: ReleasePlan) -> ReleaseOptions:
    """What the filters may name: sources and languages of the datasets, a single run's studies."""
    with reading(actor, RIGHT) as session:
        runs = [get_run(session, run_id) for run_id in with_runs(session, wanted).runs]
        datasets = list(dict.fromkeys(run.dataset_id for run in runs))
        studies = list_studies(session, dataset_id=datasets[0]) if len(runs) == 1 else []
        sources = [name for each in datasets for name in pair_sources(session, each)]
        languages = [name for each in datasets for name in pair_languages(session, each)]
        return ReleaseOptions(
            sources=tuple(dict.fromkeys(sources)),
            languages=tuple(dict.fromkeys(languages)),
            studies={each.id: each.name for each in studies if each.run_id == runs[0].id},
        )


def checks(actor: Actor, wanted: ReleasePlan) -> list[RunCheck]:
    """What the texts of each run share and their sources lack, or that it was never checked; runs
    without either are left out."""
    found = []
    with reading(actor, RIGHT) as session:
        for run_id in with_runs(session, wanted).runs:
            unchecked = is_unchecked(session, run_id)
            report = None if unchecked else stored_shared_parts(session, run_id)
            found.append(
                RunCheck(run_id=run_id, shared=shared_sentence(report), is_unchecked=unchecked)
            )
    return [check for check in found if check.shared or check.is_unchecked]


def runs(actor: Actor) -> list[RunSummary]:
    """The runs with kept groups, which a release can be made of."""
    with reading(actor, RIGHT) as session:
        return [run for run in list_runs(session) if run.kept]


def count(actor: Actor) -> int:
    """How many releases there are."""
    with reading(actor, RIGHT) as session:
        return len(list_releases(session))


def list_all(actor: Actor, dataset: str | None = None) -> Listed[ReleaseRow]:
    """List releases, newest first."""
    with reading(actor, RIGHT) as session:
        dataset_id = get_dataset(session, dataset).id if dataset else None
        pushed = pushes(session)
        rows = [
            _row(release, pushed.get(release.id, ()))
            for release in list_releases(session, dataset_id)
        ]
    return Listed[ReleaseRow].all(rows)


def show(actor: Actor, release_id: int) -> ReleaseShown:
    """One release with its card. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        release = get_release(session, release_id)
        row = _row(release, pushes(session).get(release_id, ()))
    return ReleaseShown.of(row, card=release.card)


def picture(actor: Actor, release_id: int) -> bytes | None:
    """The map on a release's card as a PNG; None where its folder has none, or is not here."""
    with reading(actor, RIGHT) as session:
        folder = get_release(session, release_id).path
    try:
        return (here(folder) / PICTURE).read_bytes()
    except OSError:
        return None


def diff(actor: Actor, before: int, after: int) -> ReleaseDiff:
    """Show what was added, removed and changed from release BEFORE to release AFTER, and why."""
    with reading(actor, RIGHT) as session:
        found = diff_releases(session, get_release(session, before), get_release(session, after))
    changes = Counter(row.change for row in found)
    return ReleaseDiff.all([*map(DiffRow.of, found)], changes=dict(changes))


def push(actor: Actor, wanted: PushStart, launch: Launch[T]) -> T:
    """Push a release or a checkpoint to the Hub, or (`dry_run`) compare it with what is there."""
    if wanted.release_id is not None:
        with reading(actor, RIGHT) as session:
            get_release(session, wanted.release_id)
    return launch(actor, "push", wanted)


def _dataset_of(session: Session, run_id: int) -> Dataset:
    return session.get_one(Dataset, get_run(session, run_id).dataset_id)


def _row(release: Release, arrived: Sequence[Job]) -> ReleaseRow:
    pushed = tuple(_push_row(job) for job in arrived)
    return ReleaseRow.of(
        release,
        groups=release.counts.get("groups"),
        reviews=str(release.filter.get("reviews", "")),
        pushed_to=tuple(dict.fromkeys(each.repo for each in pushed)),
        pushes=pushed,
    )


def _push_row(job: Job) -> PushRow:
    result = job.result or {}
    return PushRow(
        repo=str(result.get("repo") or ""),
        url=str(result.get("pull_request") or result.get("url") or result.get("repo") or ""),
        tag=result.get("tag"),
        at=job.finished_at or job.created_at,
    )
