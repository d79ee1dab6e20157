"""Analyses of texts: start one, what it may name, the stored ones, the points of a map."""

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from analysis.embed.independence import map_sentence
from analysis.files.published import SUFFIXES
from analysis.files.shared import share
from analysis.found.texts import CorpusPoints, CoverageFound, F, Stored
from analysis.request import CorporaChosen, CoverageStart
from app.access.identity import Actor
from app.access.permissions import require
from app.operations.acting import Launch, reading
from db.corpus.browsing import pairs_with, texts_with
from db.corpus.datasets import dataset_names
from db.corpus.growing import Growable, pairs_to_grow
from db.errors import BadInput
from db.home import home, space_in
from db.outcome.analyses import get_analysis, list_analyses
from db.release.releases import list_releases, runs_of_releases_at
from db.rows import Row
from db.run.groups import groups_by_run
from db.run.progress import list_runs
from db.run.runs import shapes_of

if TYPE_CHECKING:
    import pandas as pd

RIGHT = "analyze"
UNSAFE = re.compile(r"[^A-Za-z0-9._-]+")
T = TypeVar("T")


class ReleaseChoice(Row):
    """A release that an analysis may name, by its folder."""

    id: int
    name: str
    path: str


class RunChoice(Row):
    """A run that kept groups."""

    id: int
    dataset: str
    recipe: str


class CorporaOptions(Row):
    """What an analysis may name; `runs` where they were requested."""

    datasets: tuple[str, ...]
    releases: tuple[ReleaseChoice, ...]
    runs: tuple[RunChoice, ...]


def start(actor: Actor, request: CorporaChosen, launch: Launch[T]) -> T:
    """Launch an analysis of texts; one that is stored is not computed again.

    Raises BadInput for unusable lines of an admin's texts that are here, before the job begins.
    """
    from analysis.files.corpora import texts_of  # here: it loads what reads files

    require(actor, RIGHT)
    if actor.is_admin:  # else the launch refuses places of the server
        for path in filter(Path.is_file, map(Path, request.texts)):
            for _ in texts_of(path):  # none is kept: a bad line is reported after the last
                continue
    return launch(actor, kind_of(request), request)


def keep_file(actor: Actor, name: str, content: bytes) -> str:
    """The path of an uploaded corpus, kept in a folder that is named by its content's hash.

    Raises BadInput for a file type that is no corpus.
    """
    require(actor, RIGHT)
    safe = UNSAFE.sub("-", Path(name).name).lstrip(".-") or "texts"
    if Path(safe).suffix not in SUFFIXES:
        formats = ", ".join(sorted(SUFFIXES))
        raise BadInput(f"{name!r} is no corpus", f"upload {formats}", code="format_unknown")
    folder = home() / "corpora" / hashlib.sha256(content).hexdigest()[:16]
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / safe
    if not path.exists():
        half = folder / f".{safe}.part"
        with space_in("INF_HOME", lambda: f"{len(content):,} bytes of {name}"):
            half.write_bytes(content)
        half.replace(path)
    share(path)
    return str(path)


def kind_of(request: CorporaChosen) -> str:
    """The kind of the job that does an analysis."""
    return "project" if isinstance(request, CoverageStart) else "embed"


def about_map(actor: Actor, result: CoverageFound) -> str:
    """Whether a validator embeds the map of the groups that it chose, in a sentence; else ""."""
    with reading(actor, RIGHT) as session:
        return map_sentence(session, result)


def options(actor: Actor, *, with_runs: bool = False) -> CorporaOptions:
    """What an analysis may name."""
    with reading(actor, RIGHT) as session:
        runs = [run for run in list_runs(session) if run.kept] if with_runs else []
        return CorporaOptions(
            datasets=tuple(dataset_names(session)),
            releases=tuple(map(ReleaseChoice.model_validate, list_releases(session))),
            runs=tuple(map(RunChoice.model_validate, runs)),
        )


def stored(actor: Actor, row: type[F], dataset_id: int | None) -> list[Stored[F]]:
    """The stored analyses that found such rows, newest first, of a dataset and of several."""
    with reading(actor, RIGHT) as session:
        found = list_analyses(session, row.KIND, dataset_id=dataset_id)
        return [Stored.of(row, each) for each in found]


def points(actor: Actor, analysis_id: int) -> "pd.DataFrame":
    """The points of a stored map. Raises NotFound."""
    from analysis.map.coverage import points_frame  # here: it loads numpy and pandas

    with reading(actor, RIGHT) as session:
        return points_frame(get_analysis(session, analysis_id).payload or b"")


def search(
    actor: Actor, corpora: Sequence[CorpusPoints], published: Sequence[str], text: str
) -> tuple[set[tuple[int, str, str]], set[tuple[int, str]]]:
    """Which stored texts of a map's corpora and releases (folders) contain the text.

    As (group, role, field), and as (pair, field) of pairs that nothing was grown from.
    """
    runs = {each.run_id for each in corpora if each.run_id}
    datasets = {each.dataset_id for each in corpora if each.dataset_id and not each.run_id}
    with reading(actor, RIGHT) as session:
        runs |= set(runs_of_releases_at(session, published))
        return (
            texts_with(session, shapes_of(session, runs), text),
            pairs_with(session, datasets, text) if datasets else set(),
        )


def runs_of(actor: Actor, group_ids: Sequence[int]) -> dict[int, list[int]]:
    """Groups of a selection by their run, the run that has most of them first."""
    with reading(actor, RIGHT) as session:
        return groups_by_run(session, group_ids)


def growable(actor: Actor, group_ids: Sequence[int], pair_ids: Sequence[int]) -> Growable:
    """The pairs of these groups and these pairs, by whether a group of them was kept."""
    with reading(actor, RIGHT) as session:
        return pairs_to_grow(session, group_ids=group_ids, pair_ids=pair_ids)
