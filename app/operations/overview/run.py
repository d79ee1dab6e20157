"""A run of the Curate page: whether it works, how far it is, what it spent, what it dropped.

Each function reads in one session what one part of the page draws, of which some are drawn anew
every two seconds.
"""

import math
from collections.abc import Mapping
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any, NamedTuple

from analysis.found.runs import LeakageReport, SharedParts
from app.access.identity import Actor
from app.operations.acting import reading
from curation.judging.text_baseline import TextBaseline, text_baseline
from curation.recipe.tasks import VALIDATION
from curation.run.leakage import stored_leakage, why_outdated
from curation.run.shared_parts import is_unchecked, stored_shared_parts
from db.assignment.hidden import hidden_pair
from db.corpus.browsing import has_pairs
from db.corpus.growing import query_ids_of
from db.corpus.growing import were_grown as were_grown_before
from db.jobs import jobs
from db.outcome.overview import with_actual_status
from db.outcome.position_bias import PlaceCount, position_bias
from db.question import CHECK
from db.release.releases import recipe_of_run
from db.run.batches import BatchSummary, list_batches
from db.run.calls import CallTotals, call_totals, count_unknown_servers
from db.run.comparison import (
    SharedPair,
    changed_pairs,
    count_shared,
    differing_settings,
    shared_funnels,
)
from db.run.progress import latest_funnel, list_runs
from db.run.runs import (
    ANSWERS,
    STAGES,
    Funnel,
    Outcomes,
    RunSummary,
    get_run,
    outcomes,
    shape_and_judging,
)
from db.run.workers import WorkerTotals, worker_totals
from db.shape import Shape
from db.study.studies import has_picks
from db.tables import Pair

RIGHT = "curate"
LIVE = ("created", "running")
LIVE_JOB = ("queued", "running")
LANES, LANE_SECONDS = 120, 5.0  # intervals at most, and how long one is at least


class RunsOfDataset(NamedTuple):
    """The runs of a dataset, whether it has pairs to grow, and a job that works on any run."""

    runs: tuple[RunSummary, ...]
    has_pairs: bool
    job_id: int | None


class RunNow(NamedTuple):
    """A run with its status of now (`lost`: nothing works on it), and what it kept and dropped;
    `models`: which wrote its texts and which judged them, in words, "" of rules."""

    run: RunSummary
    outcomes: Outcomes
    concurrency: int
    guard: bool
    models: str


class RunProgress(NamedTuple):
    """How far a run is; the checks of its texts are read once it has ended."""

    run: RunSummary
    funnel: Funnel
    workers: WorkerTotals
    shape: Shape
    judged: int
    batch: bool
    leakage: LeakageReport | None
    outdated: str
    shared_parts: SharedParts | None
    unchecked: bool
    can_study: bool


class StageAnswers(NamedTuple):
    """Answers by stage over time: the ends of the intervals, and counts by stage, (S, T)."""

    ends: tuple[datetime, ...]
    counts: dict[str, list[int]]


class RunCalls(NamedTuple):
    """Totals of a run's calls, the stages of its recipe, and answers of an unknown server."""

    totals: list[CallTotals]
    stages: dict[str, dict[str, str]]
    unknown_servers: int


class Compared(NamedTuple):
    """Two runs over the pairs that both finished."""

    funnels: tuple[Funnel, Funnel]
    shared: dict[tuple[str, str], int]
    changed: list[SharedPair]
    settings: list[tuple[str, str, str]]


def of_dataset(actor: Actor, dataset_id: int) -> RunsOfDataset:
    """What the page shows of a dataset before a run is chosen."""
    with reading(actor, RIGHT) as session:
        live = jobs.list_jobs(session, kind="curate", statuses=LIVE_JOB, limit=1)
        return RunsOfDataset(
            tuple(list_runs(session, dataset_id)),
            has_pairs(session, dataset_id),
            live[0].id if live else None,
        )


def now(actor: Actor, run: RunSummary) -> RunNow:
    """The run as it is now."""
    with reading(actor, RIGHT) as session:
        found = get_run(session, run.id)
        current = with_actual_status(session, run)
        ended, models = outcomes(session, run.id), _models_in_words(found.models)
        return RunNow(current, ended, found.concurrency, found.guard, models)


def _models_in_words(models: Mapping[str, Mapping[str, Any]]) -> str:
    """`written by large, judged by small (answered as small-2026)`, by the models of the stages."""
    found: dict[str, dict[str, None]] = {"written": {}, "judged": {}}
    for stage, of in models.items():
        if of.get("model"):
            alias = f" (answered as {of['answered_as']})" if of.get("answered_as") else ""
            is_judging = stage == VALIDATION or stage.startswith(CHECK)
            found["judged" if is_judging else "written"][f"{of['model']}{alias}"] = None
    if len(found["written"]) == 1 and found["written"] == found["judged"]:
        return f"written and judged by {next(iter(found['written']))}"
    return ", ".join(f"{what} by {' and '.join(names)}" for what, names in found.items() if names)


def progress(actor: Actor, run: RunSummary, *, is_live: bool) -> RunProgress:
    """How far the run is, and what was checked of one that is not live."""
    with reading(actor, RIGHT) as session:
        found, of_now = latest_funnel(session, run.id), get_run(session, run.id)
        workers = worker_totals(session, run.id)
        shape, judged = shape_and_judging(session, run.id)
        run = run.model_copy(update={"status": of_now.status, "spent_usd": of_now.spent_usd})
        return RunProgress(
            with_actual_status(session, run),
            found,
            workers,
            shape,
            judged,
            of_now.batch,
            None if is_live else stored_leakage(session, run.id),
            "" if is_live else why_outdated(session, run.id),
            None if is_live else stored_shared_parts(session, run.id),
            not is_live and is_unchecked(session, run.id),
            not is_live and has_picks(session, run.id),
        )


def answers_over_time(actor: Actor, run_id: int) -> StageAnswers:
    """The answers that all workers of the run stored, also before it was resumed, in at most LANES
    equal intervals."""
    with reading(actor, RIGHT) as session:
        created = get_run(session, run_id).created_at
        names = [f"{ANSWERS}{stage}" for stage in STAGES]
        at_work = jobs.ids_of_run(session, run_id)
        found = jobs.metric_series(session, at_work, names=names, max_points=LANES)
    points = [
        (stage, [(0, 0.0), *series.get(name, ())])
        for series in found.values()
        for stage, name in zip(STAGES, names, strict=True)
    ]
    steps = [step for _, series in points for step, _ in series[1:]]
    if not steps:
        return StageAnswers((), {})
    first = min(steps) - LANE_SECONDS
    width = max(LANE_SECONDS, (max(steps) - first) / LANES)
    size = math.ceil((max(steps) - first) / width) or 1
    counts = {stage: [0] * size for stage in STAGES}
    for stage, series in points:
        for (_, before), (step, after) in pairwise(series):
            place = min(size - 1, int((step - first) / width))
            # a job that was resumed counts from 0 again; a group that ends while they are counted
            # may be missed once
            counts[stage][place] += round(after if after < before / 2 else max(0, after - before))
    ends = (created + timedelta(seconds=first + width * (place + 1)) for place in range(size))
    return StageAnswers(tuple(ends), counts)


def positions(actor: Actor, run_id: int) -> list[PlaceCount]:
    """How often each candidate position was right and chosen in a run."""
    with reading(actor, RIGHT) as session:
        return position_bias(session, run_id)


def baseline(actor: Actor, run_id: int) -> TextBaseline | None:
    """How often shared words alone find the right passage of a run's items."""
    with reading(actor, RIGHT) as session:
        return text_baseline(session, run_id)


def batches(actor: Actor, run_id: int) -> list[BatchSummary]:
    """The batches of a run."""
    with reading(actor, RIGHT) as session:
        return list_batches(session, run_id)


def calls(actor: Actor, run_id: int) -> RunCalls:
    """What the calls of a run took, by stage, prompt and model."""
    with reading(actor, RIGHT) as session:
        stages = recipe_of_run(session, run_id)[0].body.get("stages", {})
        totals = call_totals(session, run_id)
        return RunCalls(totals, stages, count_unknown_servers(session, run_id) if totals else 0)


def compare(actor: Actor, first: int, second: int, *, offset: int, limit: int) -> Compared:
    """Funnels and outcomes of the pairs that both runs finished, those with different outcomes,
    and every setting that differs."""
    with reading(actor, RIGHT) as session:
        without = hidden_pair(session, actor.name, Pair.id)
        return Compared(
            shared_funnels(session, first, second),
            count_shared(session, first, second),
            changed_pairs(session, first, second, without=without, offset=offset, limit=limit),
            differing_settings(session, first, second),
        )


def query_ids(actor: Actor, dataset: str, pair_ids: list[int]) -> list[str]:
    """The pairs of a dataset by their ids in its source. Raises BadInput where none is of it."""
    with reading(actor, RIGHT) as session:
        return query_ids_of(session, dataset, pair_ids)


def were_grown(actor: Actor, pair_ids: list[int]) -> bool:
    """Whether any of the pairs was grown before: the same answers would give the same groups."""
    with reading(actor, RIGHT) as session:
        return were_grown_before(session, pair_ids)
