"""The plan of an export: a job's config, checked before any work; a folder's manifest."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy.orm import Session

from analysis.files.storage import Place, place_of
from curation.release.request import ReleasePlan
from curation.release.rows import STANDARD, split_name
from db.corpus.datasets import get_dataset
from db.errors import BadInput, NotFound, Refused
from db.release.choice import Choice, chosen_licences
from db.review.reviews import count_reviews
from db.run.runs import choose_run, funnel, get_run, shape_of
from db.run.versions import FIRST, VERSIONS
from db.shape import Shape
from db.tables import Dataset, Run, Study

MANIFEST = "release.json"
PICTURE = "coverage.png"  # the map on the card
_split_name = lru_cache(maxsize=1024)(split_name)
TRAIN, TEST = "train", "test"
HELD_OUT = "_held_out"
DUPLICATES = "best review, kept before dropped, first run"


@dataclass(frozen=True)
class ChosenRun:
    """A run of a release: its dataset, and which of its groups are wanted."""

    dataset: Dataset
    run: Run
    choice: Choice


@dataclass(frozen=True)
class Plan:
    """What to export (`wanted`) and where; several runs in the order of precedence."""

    wanted: ReleasePlan
    runs: tuple[ChosenRun, ...]
    out: Place
    name: str
    configs: tuple[str, ...]
    shape: Shape

    @property
    def first(self) -> ChosenRun:
        """The first run: the only one of most releases."""
        return self.runs[0]

    @property
    def choice(self) -> Choice:
        """The first run's choice; those of the others differ in the run only."""
        return self.first.choice

    @property
    def offline(self) -> bool:
        """Whether the offline provider wrote any of the groups."""
        return any(each.run.offline for each in self.runs)

    @property
    def dataset_names(self) -> list[str]:
        """The names of the datasets, each once, in the order of the runs."""
        return list(dict.fromkeys(each.dataset.name for each in self.runs))

    @cached_property
    def by_run(self) -> dict[int, ChosenRun]:
        """The runs by their id."""
        return {each.run.id: each for each in self.runs}

    @property
    def filter(self) -> dict[str, Any]:
        """Which groups, in which splits: as stored in the release and its manifest.

        `runs` stands there only for several, verdict versions only where one is not the first, and
        `held_out_by` only for sources: the identity of other releases is unchanged.
        """
        several: dict[str, Any] = {}
        if len(self.runs) > 1:
            several = {"runs": [each.run.id for each in self.runs], "duplicates": DUPLICATES}
        versions = {str(each.run.id): each.run.verdict_version for each in self.runs}
        if others := {run: number for run, number in versions.items() if number != FIRST}:
            several |= {VERSIONS: others}
        if self.wanted.held_out and self.wanted.held_out_by != "text":
            several |= {"held_out_by": self.wanted.held_out_by}
        return several | {
            "run_id": self.choice.run_id,
            "reviews": self.choice.reviews,
            "include_dropped": self.choice.include_dropped,
            "sources": list(self.choice.sources),
            "languages": list(self.choice.languages),
            "study_id": self.choice.study_id,
            "balance": self.wanted.balance,
            "split_by": self.wanted.split_by,
            "held_out": self.wanted.held_out,
            "seed": self.wanted.seed,
            "configs": list(self.configs),
            "leave_out_contaminated": self.wanted.leave_out_contaminated,
            "groups_per_part": self.wanted.groups_per_part,
        }

    def split(self, dataset: str, source: str, held_out: bool) -> str:
        """The split of a group: train and test, or the dataset's or source's and `…_held_out`."""
        if self.wanted.split_by == "train":
            return TEST if held_out else TRAIN
        name = _split_name(source if self.wanted.split_by == "source" else dataset)
        return name + HELD_OUT if held_out else name


def is_held_out(split: str) -> bool:
    """Whether a split of a release holds groups to evaluate on."""
    return split == TEST or split.endswith(HELD_OUT)


def plan_release(session: Session, wanted: ReleasePlan) -> Plan:
    """The plan of a request. Raises BadInput, NotFound or Refused before any work."""
    found = _runs(session, wanted)
    shape = _one_shape(session, [run for _, run in found])
    configs = tuple(dict.fromkeys(("default", *(wanted.configs or STANDARD), *wanted.views)))
    lists = [f"the view {view}" for view in ("tevatron", "promptriever") if view in configs]
    lists += [f"a group with {shape.lists[0].sign!r}"] if shape.lists else []
    if shape.lists and "sentence-transformers" in configs:
        raise BadInput(
            "the view sentence-transformers has as many negatives in each row, and these groups "
            "have differing numbers",
            "take the view tevatron, or the default configuration",
            code="view_excludes_lists",
        )
    if wanted.format == "csv" and lists:
        raise BadInput(
            f"{lists[0]} has lists in its rows, CSV has none",
            "use parquet or jsonl",
            code="view_excludes_csv",
        )
    if wanted.study_id is not None:
        if len(found) > 1:
            raise BadInput(
                f"study {wanted.study_id} is of one run and this release of {len(found)}",
                "omit the study, or export its run alone",
                code="study_needs_one_run",
            )
        _require_study(session, wanted.study_id, found[0][1])
    return Plan(
        wanted,
        runs=tuple(ChosenRun(dataset, run, choice_of(wanted, run.id)) for dataset, run in found),
        out=_checked_folder(place_of(wanted.out)),
        name=wanted.name or " and ".join(dict.fromkeys(each.name for each, _ in found)),
        configs=configs,
        shape=shape,
    )


def require_same_verdicts(session: Session, plan: Plan) -> None:
    """Raise Refused where a run uses another verdict version than when the release was planned."""
    for each in plan.runs:
        now = get_run(session, each.run.id).verdict_version
        if now != each.run.verdict_version:
            raise Refused(
                f"run {each.run.id} was decided again while the release was planned: it uses "
                f"verdict version {now}, not {each.run.verdict_version}",
                "export it again",
                code="run_changed_meanwhile",
            )


def _one_shape(session: Session, runs: Sequence[Run]) -> Shape:
    """The shape of all runs of a release: its rows have one set of columns."""
    shape = shape_of(session, runs[0].id)
    other = next((run.id for run in runs[1:] if shape_of(session, run.id) != shape), None)
    if other is not None:
        raise Refused(
            f"runs {runs[0].id} and {other} have groups of different shapes: one release holds "
            "groups of one shape",
            "export them one by one",
            code="release_of_two_shapes",
        )
    return shape


def choice_of(wanted: ReleasePlan, run_id: int) -> Choice:
    """The groups that a request selects of a run, before overlaps are excluded and sources
    balanced."""
    return Choice(
        run_id,
        wanted.reviews,
        wanted.include_dropped,
        sources=wanted.sources,
        languages=wanted.languages,
        study_id=wanted.study_id,
    )


def with_runs(session: Session, wanted: ReleasePlan) -> ReleasePlan:
    """The request with its runs named: by dataset as named, those given, else its latest finished
    one. Raises BadInput for a run of a dataset that is not named, and where nothing is named."""
    if not wanted.datasets:
        if not wanted.runs:
            raise BadInput(
                "no dataset and no run is named", "name a dataset", code="dataset_or_run_missing"
            )
        return wanted
    datasets = [get_dataset(session, name) for name in dict.fromkeys(wanted.datasets)]
    of: dict[int, list[int]] = {dataset.id: [] for dataset in datasets}
    for run_id in dict.fromkeys(wanted.runs):
        run = get_run(session, run_id)
        if run.dataset_id not in of:
            name = session.get_one(Dataset, run.dataset_id).name
            raise BadInput(
                f"run {run_id} is of dataset {name}",
                f"add `dataset={name}`, or omit it",
                code="run_of_another_dataset",
            )
        of[run.dataset_id].append(run_id)
    runs = [
        run_id
        for dataset in datasets
        for run_id in of[dataset.id] or [choose_run(session, dataset.id, None).id]
    ]
    return wanted.model_copy(update={"runs": tuple(runs)})


def _runs(session: Session, wanted: ReleasePlan) -> list[tuple[Dataset, Run]]:
    """The runs of a request with their datasets. Raises BadInput for one that is named twice."""
    numbers = wanted.runs or with_runs(session, wanted).runs
    twice = sorted({number for number in numbers if numbers.count(number) > 1})
    if twice:
        raise BadInput(
            f"run {twice[0]} is named twice", "name every run once", code="run_named_twice"
        )
    runs = [get_run(session, number) for number in numbers]
    return [(session.get_one(Dataset, run.dataset_id), run) for run in runs]


def licences_of(session: Session, plan: Plan) -> list[str]:
    """The licences of the chosen groups of all runs, before duplicates are left out."""
    found = (chosen_licences(session, each.choice, each.dataset.licence) for each in plan.runs)
    return sorted(set().union(*found))


def refuse_empty(session: Session, plan: Plan) -> None:
    """Raise Refused with the reason why the release would be empty and the remedy."""
    if len(plan.runs) > 1:
        named = ", ".join(f"{each.run.id} ({each.dataset.name})" for each in plan.runs)
        raise Refused(
            f"the release would be empty: no group of the runs {named} passes the filters",
            "Omit one of them, or export the runs one by one to see why",
            code="release_empty_by_filters",
        )
    counts = funnel(session, plan.first.run.id)
    dropped = ", ".join(f"{reason} {number}" for reason, number in counts.dropped.items())
    why = "the release would be empty:"
    if not counts.kept and not plan.choice.include_dropped:
        raise Refused(
            f"{why} run {plan.first.run.id} kept none of its {counts.pairs} groups "
            f"(dropped: {dropped or 'none yet'})",
            "Check them on the Groups page, then curate "
            "with another recipe or export another run with `run=`",
            code="run_without_kept_groups",
        )
    conditions = [
        (name, " or ".join(values))
        for name, values in (("source", plan.choice.sources), ("language", plan.choice.languages))
        if values
    ]
    if conditions:
        raise Refused(
            f"{why} no group that could be exported has "
            + " and ".join(f"the {name} {values}" for name, values in conditions),
            f"omit {' or '.join(f'`{name}=`' for name, _ in conditions)}, or name one that the "
            "pairs have",
            code="release_empty_by_condition",
        )
    if plan.choice.study_id is not None:
        raise Refused(
            f"{why} study {plan.choice.study_id} has no item of a group that could be exported",
            "omit `study=`, or name another one",
            code="study_without_exportable_items",
        )
    if plan.choice.reviews == "approved":
        raise Refused(
            f"{why} of {counts.kept} kept groups none is approved",
            "Approve groups with `reviews set GROUP`, or use `reviews=not-rejected`",
            code="release_without_approved_groups",
        )
    rejected = count_reviews(session, plan.first.run.id).get("reject", 0)
    raise Refused(
        f"{why} {rejected} of {counts.kept} kept groups are rejected and no other has all its "
        f"triplets (dropped: {dropped or 'none'})",
        "include dropped groups with `include_dropped=yes`, or release another run",
        code="release_without_triplets",
    )


def read_manifest(folder: Path | Place) -> dict[str, Any] | None:
    """The manifest of a release's folder, None if it holds no release."""
    place = folder if isinstance(folder, Place) else place_of(str(folder))
    try:
        found = json.loads(place.read(MANIFEST) or b"null")
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _checked_folder(out: Place) -> Place:
    if out.is_file():
        raise Refused(f"{out} is a file", "give a folder for the release", code="path_is_file")
    if not out.is_free() and read_manifest(out) is None:
        raise Refused(
            f"{out} is not empty and not a release",
            "give a new folder",
            code="folder_not_empty",
        )
    return out


def _require_study(session: Session, study_id: int, run: Run) -> None:
    study = session.get(Study, study_id)
    if study is None:
        raise NotFound(
            f"no study {study_id}",
            "`studies list` shows all",
            code="study_unknown",
            number=study_id,
        )
    if study.run_id != run.id:
        raise BadInput(
            f"study {study_id} is of run {study.run_id} and this release of run {run.id}",
            f"add `run={study.run_id}`, or name a study of run {run.id}",
            code="study_of_another_run",
        )
