"""Trainings: create one or a sweep, search settings, estimate, list, show.

The id of a training is that of its job: it is cancelled, resumed and run again as one
(`app.operations.jobs`).
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, TypeVar

from pydantic import ConfigDict, Field

from app.access.identity import Actor
from app.access.permissions import require
from app.jobs.launching import chosen_launcher
from app.jobs.places import require_no_files
from app.operations.acting import Launch, reading
from db.corpus.datasets import get_dataset
from db.errors import BadInput, NotFound, Refused
from db.jobs import jobs
from db.jobs.jobs import LOCAL
from db.outcome.checkpoints import list_checkpoints
from db.outcome.trainings import count_trainings, list_sweeps, list_trainings
from db.release.releases import get_release, licence_of_card, list_releases, release_overview
from db.rows import Json, Listed, Row
from db.tables import Job
from trainer.launch.forecast import Forecast, available_bytes, forecast
from trainer.launch.request import TrainSearch, TrainStart, TrainSweep
from trainer.launch.tuning import Trial, ranked, read_trials, run_search
from trainer.report.scored import (
    IntervalRow,
    MeasuredRow,
    interval_rows,
    listed_scores,
    score_notes,
    score_rows,
)
from trainer.settings.settings import parse_settings
from trainer.settings.table import SETTINGS

RIGHT = "train"
EARLIER = 50  # trainings whose pace an estimate follows, the newest
T = TypeVar("T")


class TrainingRow(Row):
    """A training in a list, and its measures on held-out groups by name (`trainer.report.scored`).

    `release`: the number or folder it was started with; `estimate`: it only measured memory and
    time; `sweep`: of a sweep or search; `checkpoint_id`: the model that came of it.
    """

    model_config = ConfigDict(frozen=True, extra="allow")
    __pydantic_extra__: dict[str, float | None] = Field(init=False)

    id: int
    name: str
    status: str
    release: str
    base_model: str
    objective: str
    seed: int | str
    estimate: bool
    sweep: str | None
    checkpoint_id: int | None
    started_by: str
    created_at: datetime
    finished_at: datetime | None


class TrainingShown(TrainingRow):
    """A training with its settings, what it measured as rows, and the result of its job."""

    settings: Json
    error: str | None
    scores: tuple[MeasuredRow, ...]
    intervals: tuple[IntervalRow, ...]
    notes: tuple[str, ...]
    result: Json | None


class TrialRow(Row):
    """A training of a search; `value`: as measured, also of one that fell too far on the guard."""

    number: int
    job_id: int
    status: str
    params: Json
    value: float | None
    below_guard: bool
    error: str


class Searched(Row):
    """The trials of a search, best first; `best_settings`: of the first, None without a value."""

    name: str
    measure: str
    space: tuple[str, ...]
    trials: tuple[TrialRow, ...]
    best_settings: Json | None


class SearchReported(Searched):
    """A search with how many trials it had, and the command that trains as the best."""

    summary: str
    best: str | None


class TrainableRelease(Row):
    """A release to train on: its groups, by split too, and the share that people approved."""

    id: int
    name: str
    groups: int
    splits: dict[str, int]
    licence: str
    approved_share: float | None
    reviews: str
    offline: bool


def create(actor: Actor, wanted: TrainStart, launch: Launch[T]) -> T:
    """Train on a release, or measure what that takes (`estimate`).

    Raises Refused where the model cannot fit into the memory of this machine, and where someone
    other than an admin names files of the server or runs a model's own code; BadInput for workers
    without a cluster.
    """
    _check(actor, wanted)
    return launch(actor, "train", wanted)


class SweepStarted(Row):
    """A sweep and the jobs of its trainings."""

    name: str
    job_ids: tuple[int, ...]


def sweep(actor: Actor, wanted: TrainSweep, launch: Launch[int]) -> SweepStarted:
    """A training of every combination; none where one of them is refused. Raises as `create`."""
    require(actor, RIGHT)
    grid = wanted.trainings()
    for each in grid:
        _check(actor, each)
    ids = [launch(actor, "train", each) for each in grid]
    return SweepStarted(name=wanted.name, job_ids=tuple(ids))


def search(
    actor: Actor,
    wanted: TrainSearch,
    launch: Launch[int],
    watch: Callable[[list[TrialRow]], None] = lambda trials: None,
) -> Searched:
    """Search settings until there are as many trials as wanted; each is a training.

    watch: called with the trials of now whenever they are read. Raises as `create`, Refused where
    the name is that of another search.
    """
    require(actor, RIGHT)

    def read() -> list[Trial]:
        with reading(actor, RIGHT) as session:
            return read_trials(session, wanted)

    found = ranked(
        run_search(
            wanted,
            read=read,
            launch=lambda each: create(actor, each, launch),
            watch=lambda trials: watch([_trial(each) for each in trials]),
        )
    )
    best = found[0] if found[0].value is not None else None
    return Searched(
        name=wanted.name,
        measure=wanted.measure,
        space=tuple(wanted.space),
        trials=tuple(_trial(each) for each in found),
        best_settings=None if best is None else {**wanted.settings, **best.params},
    )


def estimate(actor: Actor, wanted: TrainStart) -> Forecast:
    """Steps, time and memory as far as this store and machine know. Raises NotFound, BadInput.

    `wanted.release` is a number; what `create` measures with `estimate` needs a few steps.
    """
    with reading(actor, RIGHT) as session:
        groups = int(get_release(session, int(wanted.release)).counts.get("groups", 0))
        earlier = list_checkpoints(session, limit=EARLIER)
    return forecast(parse_settings(wanted.settings), groups, earlier, _available())


def list_some(
    actor: Actor,
    dataset: str | None = None,
    *,
    sweep: str | None = None,
    limit: int | None = None,
    offset: int = 0,
) -> Listed[TrainingRow]:
    """Trainings, newest first, all or those on no other dataset's releases; or those of a sweep.

    So one on a folder that is no release of the store is listed with every dataset. Raises
    NotFound.
    """
    if sweep is not None:
        return list_sweep(actor, sweep).part(limit, offset)
    with reading(actor, RIGHT) as session:
        away = set()
        if dataset is not None:
            own = {each.id for each in list_releases(session, get_dataset(session, dataset).id)}
            others = [each for each in list_releases(session) if each.id not in own]
            away = {str(name) for each in others for name in (each.id, each.path)}
        found = list_trainings(session, without_releases=away, limit=limit, offset=offset)
        total = count_trainings(session, without_releases=away)
        rows = tuple(TrainingRow.of(each, **_more(each)) for each in found)
    return Listed[TrainingRow].page(rows, offset=offset, total=total)


def list_sweep(actor: Actor, name: str) -> Listed[TrainingRow]:
    """The trainings of a sweep or search, best first, those without a score last."""
    with reading(actor, RIGHT) as session:
        found = list_trainings(session, sweep=name, limit=None)
        rows = [TrainingRow.of(each, **_more(each)) for each in found]
    return Listed[TrainingRow].all(sorted(rows, key=_order))


def sweeps(actor: Actor) -> list[str]:
    """The names of sweeps and searches, the newest first."""
    with reading(actor, RIGHT) as session:
        return list_sweeps(session)


def show(actor: Actor, training_id: int) -> TrainingShown:
    """One training. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        job = jobs.get_job(session, training_id)
        if job.kind != "train":
            raise NotFound(
                f"job {training_id} is no training",
                "`trainings list` has their numbers",
                code="training_unknown",
            )
        result = job.result or {}
        settings = TrainStart.stored(job.config).settings
        return TrainingShown.of(
            job,
            **_more(job),
            settings={**{name: each.default for name, each in SETTINGS.items()}, **settings},
            scores=tuple(score_rows(result)),
            intervals=tuple(interval_rows(result)),
            notes=tuple(score_notes(result)),
        )


def releases(actor: Actor, dataset: str | None) -> dict[int, str]:
    """The names of the releases to train on by number, newest first; none without a dataset."""
    if dataset is None:
        return {}
    with reading(actor, RIGHT) as session:
        found = list_releases(session, get_dataset(session, dataset).id)
        return {each.id: each.name for each in found}


def release(actor: Actor, release_id: int) -> TrainableRelease:
    """A release to train on. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        found = get_release(session, release_id)
        overview = release_overview(session, found)
        return TrainableRelease(
            id=found.id,
            name=found.name,
            groups=found.counts.get("groups", 0),
            splits=overview.splits,
            licence=licence_of_card(found.card),
            approved_share=overview.approved_share,
            reviews=found.filter.get("reviews", "not-rejected"),
            offline=found.offline,
        )


def require_launcher(wanted: TrainStart | TrainSweep) -> None:
    """Raise BadInput where workers of a cluster are wanted and jobs run on this machine."""
    if wanted.workers > 1 and chosen_launcher() == LOCAL:
        raise BadInput(
            "`workers=` requires `launcher=ray`",
            "on this machine use `nproc=`",
            code="workers_need_ray",
        )


def _check(actor: Actor, wanted: TrainStart) -> None:
    require_no_files(require(actor, RIGHT), "train", wanted.config())
    require_launcher(wanted)
    settings = parse_settings(wanted.settings)
    found = forecast(settings, 0, [], _available())
    if not found.fits:
        least, available = (
            (each or 0) / 1e9 for each in (found.least_bytes, found.available_bytes)
        )
        raise Refused(
            f"{settings.base_model} needs more than {least:.1f} GB of memory "
            f"({available:.0f} GB available)",
            "choose a smaller model",
            code="model_too_large",
        )


def _available() -> float | None:
    """The memory of this machine; that of a cluster is unknown here, so nothing is refused."""
    return available_bytes() if chosen_launcher() == LOCAL else None


def _more(job: Job) -> dict[str, Any]:
    """What a row of a training has besides the columns of its job."""
    wanted, result = TrainStart.stored(job.config), job.result or {}
    objective, seed = wanted.setting("objective"), wanted.setting("seed")
    return {
        "name": f"estimate of {objective}" if wanted.estimate else f"{objective} seed {seed}",
        "release": wanted.release,
        "base_model": wanted.setting("base_model"),
        "objective": objective,
        "seed": seed,
        "estimate": wanted.estimate,
        "sweep": wanted.sweep,
        "checkpoint_id": result.get("checkpoint_id"),
        **listed_scores(result),
    }


def _order(row: TrainingRow) -> tuple[float, ...]:
    """The best first; trainings from before there was strict accuracy by nDCG@10."""
    scores: Mapping[str, float | None] = row.model_extra or {}
    values = (scores["strict"], scores["ndcg@10"])
    return tuple(1.0 if value is None else -value for value in values)


def _trial(trial: Trial) -> TrialRow:
    return TrialRow(
        number=trial.number,
        job_id=trial.job_id,
        status=trial.status,
        params=trial.params,
        value=trial.measured,
        below_guard=trial.is_below_guard,
        error=trial.error,
    )
