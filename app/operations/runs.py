"""Runs: create, resume, join, shrink, estimate, list, show, check, pause."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from time import monotonic
from typing import Any, Generic, Self, TypeVar

from pydantic import model_validator
from sqlalchemy.orm import Session

from analysis.found.runs import SharedParts
from app.access.identity import Actor, TokenHolder
from app.access.permissions import NEEDS, require
from app.jobs.handed_over import forget
from app.jobs.launching import living_here
from app.jobs.places import require_own_recipe, require_places
from app.operations import groups
from app.operations.acting import Launch, reading, writing
from curation.judging.text_baseline import TextBaseline, text_baseline
from curation.providers.registry import PROVIDERS
from curation.recipe.prices import Price, how_to_price
from curation.recipe.recipe import Recipe, read_recipe, with_rules
from curation.rules.deciding import (
    RunDecide,
    changed_expectations,
    changed_rules,
    decide_again,
)
from curation.run.estimate import StageEstimate, estimate_run, prices_for
from curation.run.recipes import Chosen, is_built_in, version_named
from curation.run.reuse import MAX_GROUPS, reuse_of_run
from curation.run.shared_parts import is_unchecked, stored_shared_parts
from curation.run.starting import (
    RunResume,
    RunStart,
    RunWork,
    choose_recipe,
    default_concurrency,
    for_provider,
    provider_of,
    recipe_of,
    resume_run,
    start_run,
)
from curation.servers.connection import prices_of
from db.archive.dependents import dependents
from db.archive.target import target_of
from db.assignment.hidden import hidden_pair
from db.corpus.datasets import get_dataset
from db.errors import Refused
from db.events import record_event
from db.jobs import jobs
from db.people.budgets import take_budget
from db.release.rows import use_snapshot
from db.requests import Request, option
from db.review.reviews import count_reviews
from db.rows import Listed, Row
from db.run import versions
from db.run.calls import call_totals
from db.run.group_detail import GroupShown
from db.run.progress import latest_funnel, list_runs
from db.run.runs import RunSummary, get_run, kept_texts, set_concurrency, shape_of, stop_run
from db.run.versions import (
    KEPT,
    ChangedGroup,
    ReasonChange,
    TextChange,
    VersionChoice,
    VersionComparison,
    VersionRow,
)
from db.run.workers import worker_totals
from db.servers.connections import ENVIRONMENT, get_connection
from db.tables import Pair, Run

RIGHT = "curate"
EXAMPLES = 20
PREVIEWED = 5  # pairs
T = TypeVar("T")
NAMED = "A built-in one, one of the store (NAME or NAME@VERSION), or a TOML file."
SETTINGS: Any = option((), "Override a setting.", names=("--set",), metavar="STAGE.KEY=VALUE")
FILES: Any = option(
    {}, "Its files by name, one TOML and its prompts, in place of a name.", names=()
)


class RunShrink(Request):
    """How many of a run's workers leave."""

    run_id: int = option(..., "The run.", names=(), metavar="RUN")
    by: int = option(1, "Workers that leave, the newest first.", ge=1)


class RunShrunk(Row):
    """The jobs of the workers that are `leaving`, and how many `workers` stay."""

    run_id: int
    leaving: tuple[int, ...]
    workers: int


class OfRecipe(Request):
    """A recipe by name, or its files."""

    recipe: str = option("", NAMED, names=(), metavar="RECIPE")
    files: Mapping[str, str] = FILES

    @model_validator(mode="after")
    def _one_of_them(self) -> Self:
        if bool(self.recipe) == bool(self.files):
            raise ValueError("give either the name or file of a recipe, or its files")
        return self


class RunPreview(OfRecipe):
    """A recipe on a few pairs, compared with another one on the same pairs."""

    dataset: str = option(..., "The dataset with the pairs.", metavar="NAME")
    other: str | None = option(
        None, "Another recipe on the same pairs.", names=("--with",), metavar="RECIPE"
    )
    provider: str = option(
        "", "Who writes and judges: a provider, as `runs create` takes it. Default: offline."
    )
    connection: str | None = option(None, "The model server, by its name.", metavar="NAME")
    pairs: int = option(PREVIEWED, "How many of the first pairs.", ge=1, le=PREVIEWED)
    settings: tuple[str, ...] = SETTINGS


class FunnelRow(Row):
    """How many groups of a run reached each stage, and were dropped by reason."""

    waiting: int
    in_work: int
    reached: dict[str, int]
    dropped: dict[str, int]


class RunShown(RunSummary):
    """A run with its progress and what depends on it.

    `texts`: of lists, in its kept groups: how many are theirs (`kept`), and dropped alone for what.
    `unanswered_usd`: of `spent_usd`, what calls without an answer may have cost at most.
    `died_in_flight`: about how many calls were in flight when their workers died; they may have
    been billed.
    `waiting`: what its workers wait for, since when, and the next attempt; "" while for nothing.
    `unchecked`: what it keeps now was never checked for what its texts share, and for leakage.
    """

    seed: int
    concurrency: int
    batch: bool
    models: dict[str, dict[str, str | None]] | None
    funnel: FunnelRow
    texts: dict[str, int]
    reviews: dict[str, int]
    text_baseline: TextBaseline | None
    unanswered_usd: float
    died_in_flight: int
    workers: int
    waiting: str
    shared_parts: SharedParts | None
    unchecked: bool
    dependents: tuple[str, ...]


class Changes(Row):
    """How many groups, and how many texts of lists, ended how in one version and how in another."""

    changes: tuple[ReasonChange, ...]
    texts: tuple[TextChange, ...]
    kept_in_both: int
    only_in_first: int
    only_in_second: int
    in_neither: int


class RunDecided(Changes):
    """A run as decided again: the version that it uses now, None for a preview.

    `settings`: every rule that differs from the recipe's. `changes`: from the version that it used
    before, or uses.
    """

    run_id: int
    version: int | None
    settings: tuple[str, ...]
    seconds: float


class VersionsCompared(Changes):
    """Two verdict versions of a run, and groups that ended otherwise in the second."""

    run_id: int
    first: VersionRow
    second: VersionRow
    groups: Listed[ChangedGroup]


@dataclass(frozen=True)
class Previewed(Generic[T]):
    """The runs of a preview, and what their jobs came to."""

    runs: tuple[int, ...]
    launched: tuple[T, ...]


class PreviewRun(Row):
    """A recipe's run of a preview. `cost_usd`: of all its answers, also those that were stored;
    `spent_usd`: of those that it requested; `meanings`: of its texts, by name."""

    run_id: int
    recipe: str
    version: int | None
    sha256: str
    provider: str
    connection: str | None
    offline: bool
    status: str
    error: str | None
    kept: int
    dropped: int
    calls: int
    cost_usd: float
    spent_usd: float
    meanings: dict[str, str]


class PreviewGroup(Row):
    """What a recipe made of a pair; `lost`: why a text of a list is not the group's, by name."""

    group_id: int
    verdict: str | None
    drop_reason: str | None
    drop_detail: str | None
    texts: dict[str, str]
    lost: dict[str, str]


class PreviewPair(Row):
    """A pair and its groups, in the order of the runs; None where there is none yet."""

    query_id: str
    query: str
    passage: str
    groups: tuple[PreviewGroup | None, ...]


class PreviewQueued(Row):
    """The runs of a preview, and the jobs that make them."""

    runs: tuple[int, ...]
    job_ids: tuple[int, ...]


class PreviewShown(Row):
    """The runs of a preview side by side."""

    runs: tuple[PreviewRun, ...]
    pairs: tuple[PreviewPair, ...]


class RunEstimate(Row):
    """Calls, tokens, cost and time of a run before it starts; `usd` is None without a price.

    `hours` at `concurrency` calls in flight, None in batches; `reason`: how to give prices.
    """

    dataset_id: int
    batch: bool
    pairs: int
    stages: tuple[StageEstimate, ...]
    usd: float | None
    unpriced: tuple[str, ...]
    hours: float | None
    concurrency: int
    seconds_per_call: float
    measured_usd: float | None
    reason: str | None


def _require_own_files(session: Session, actor: Actor, wanted: RunStart) -> None:
    """Raise Refused where a recipe, a prompt or a model is a file of the server that the actor may
    not use: what is wrong with a file says what stands in it, or that it is there."""
    if NEEDS["server"].is_met(actor):
        return
    recipe = wanted.recipe
    stored = recipe is not None and version_named(session, recipe) is not None
    prompts = [
        value
        for place, _, value in (setting.partition("=") for setting in wanted.settings)
        if place.strip().rpartition(".")[2].strip() == "prompt"
    ]
    is_file = not (recipe is None or stored or is_built_in(recipe))
    if is_file or any("/" in p or "\\" in p for p in prompts):
        raise Refused(
            "only an admin can use recipe and prompt files of the server",
            "take a built-in recipe, or one of the store",
            code="admin_only",
        )
    provider = provider_of(session, wanted.provider, wanted.connection)
    now = _models_of(choose_recipe(session, provider, recipe, wanted.overrides()))
    # a person wrote what the store has: its models are checked as those of settings
    own = set() if stored else _models_of(choose_recipe(session, provider, recipe, ()))
    require_places(session, {"models": sorted(now - own)})


def _models_of(chosen: Chosen) -> set[str]:
    """The models of a recipe's stages."""
    return set(chosen.recipe.models)


def _take_budget(session: Session, actor: Actor, run: Run, *, is_new: bool) -> None:
    """Count a run that costs money on the budget of the token that starts it. Raises Refused."""
    if isinstance(actor, TokenHolder) and PROVIDERS.find(run.provider).paid:
        take_budget(session, actor.token_id, run, is_new=is_new)


def _begun(session: Session, actor: Actor, run: Run) -> int:
    """Count and record a new run; returns its id. Raises Refused."""
    _take_budget(session, actor, run, is_new=True)
    about = {"provider": run.provider, "budget_usd": run.budget_usd, "preview": run.preview}
    record_event(session, actor.name, "run.create", run.id, **about)
    return run.id


def create(actor: Actor, wanted: RunStart, launch: Launch[T]) -> T:
    """Create a run with its waiting groups, and launch a job that works on it.

    Raises as `curation.run.starting.start_run`; then there is neither.
    """
    with writing(actor, RIGHT) as session:
        _require_own_files(session, actor, wanted)
        run = start_run(session, **wanted.arguments(session), created_by=actor.name)
        run_id = _begun(session, actor, run)
    return launch(actor, "curate", RunWork(run_id=run_id, **wanted.work()))


def preview(actor: Actor, wanted: RunPreview, launch: Launch[T]) -> Previewed[T]:
    """Run a recipe, and another to compare it with, on the first pairs of a dataset; offline by
    default.

    Each is a run that is archived from the beginning: no list, study or release takes it, and a
    later run finds its answers. Raises as `create`.
    """
    require(actor, RIGHT)
    provider = wanted.provider or ("" if wanted.connection else "offline")
    start = RunStart(
        dataset=wanted.dataset,
        provider=provider,
        connection=wanted.connection,
        settings=wanted.settings,
        limit=wanted.pairs,
    )
    with writing(actor, RIGHT) as session:
        provider = provider_of(session, provider, wanted.connection)
        runs = []
        for named in (wanted.recipe or None, *([wanted.other] if wanted.other else ())):
            each = start.model_copy(update={"recipe": named})
            if named is None:
                own = Chosen(read_recipe(wanted.files, start.settings))
                require_own_recipe(session, actor, own.recipe)
                more = {"recipe": for_provider(provider, own)}
            else:
                _require_own_files(session, actor, each)
                more = {"recipe": each.chosen(session, provider)}
            given = each.arguments(session) | more
            run = start_run(session, **given, preview=True, created_by=actor.name)
            runs.append(_begun(session, actor, run))
    work = tuple(launch(actor, "curate", RunWork(run_id=each)) for each in runs)
    return Previewed(runs=tuple(runs), launched=work)


def previewed(actor: Actor, run_ids: tuple[int, ...]) -> PreviewShown:
    """Runs of the same pairs side by side: texts, verdicts, cost; what is shown is recorded as
    read. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        runs = tuple(_preview_run(session, each) for each in run_ids)
    found = [groups.details(actor, each, limit=PREVIEWED) for each in run_ids]
    by_pair: dict[str, list[GroupShown | None]] = {}
    for place, details in enumerate(found):
        for each in details:
            by_pair.setdefault(each.name, [None] * len(run_ids))[place] = each
    return PreviewShown(runs=runs, pairs=tuple(map(_preview_pair, by_pair.values())))


def _preview_pair(found: Sequence[GroupShown | None]) -> PreviewPair:
    pair = next(each for each in found if each is not None)
    return PreviewPair(
        query_id=pair.name,
        query=pair.query,
        passage=pair.passage,
        groups=tuple(None if each is None else _preview_group(each) for each in found),
    )


def _preview_run(session: Session, run_id: int) -> PreviewRun:
    get_run(session, run_id)
    (found,) = list_runs(session, run_id=run_id, archived=True)
    totals = call_totals(session, run_id)
    return PreviewRun.of(
        found,
        run_id=found.id,
        version=found.recipe_version,
        sha256=found.recipe_sha256,
        calls=sum(each.calls for each in totals),
        cost_usd=sum(each.cost_usd for each in totals),
        meanings={
            name: slot.meaning
            for slot in shape_of(session, run_id).slots.values()
            for name in slot.names
        },
    )


def _preview_group(found: GroupShown) -> PreviewGroup:
    lost = {each.name: each.dropped_reason for each in found.lists if each.dropped_reason}
    texts = found.texts | {each.name: each.text for each in found.lists}
    names = [name for slot in found.shape.slots.values() for name in slot.names]
    place = {name: number for number, name in enumerate(names)}.__getitem__
    return PreviewGroup(
        group_id=found.id,
        verdict=found.verdict,
        drop_reason=found.drop_reason,
        drop_detail=found.drop_detail,
        texts={name: texts[name] for name in sorted(texts, key=place)},
        lost=lost,
    )


def resume(actor: Actor, wanted: RunResume, launch: Launch[T]) -> T:
    """Work on the rest of a run, or on the groups that were dropped for the reason to `retry`.

    Raises as `curation.run.starting.resume_run`.
    """
    with writing(actor, RIGHT) as session:
        run = resume_run(
            session,
            wanted.run_id,
            budget_usd=wanted.budget_usd,
            concurrency=wanted.concurrency,
            guard=not wanted.no_guard,
            retry=wanted.retry,
        )
        _take_budget(session, actor, run, is_new=False)
        changed = wanted.model_dump(include={"budget_usd", "concurrency", "retry"})
        record_event(session, actor.name, "run.resume", run.id, **changed)
    return launch(actor, "curate", RunWork(run_id=wanted.run_id, **wanted.work()))


def join(actor: Actor, wanted: RunWork, launch: Launch[T]) -> T:
    """Join a running run as another worker, on this machine or another one. Raises NotFound."""
    return work_on(actor, wanted.model_copy(update={"joins": True, "only": None}), launch)


def check(actor: Actor, run_id: int, launch: Launch[T]) -> T:
    """Check a run, also an earlier one, for style that gives negatives away, and shared parts.

    Raises NotFound.
    """
    return work_on(actor, RunWork(run_id=run_id, only="leakage"), launch)


def work_on(actor: Actor, wanted: RunWork, launch: Launch[T]) -> T:
    """Launch work on a run as the request says. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        get_run(session, wanted.run_id)
    return launch(actor, "curate", wanted)


def reuse(actor: Actor, run_id: int) -> str:
    """How many answers of a run are stored already, "" for none."""
    with reading(actor, RIGHT) as session:
        return reuse_of_run(session, run_id)


def idle(actor: Actor, wanted: RunWork) -> str:
    """How many of the run's workers could have no call in flight once these are launched, "" for
    none. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        run, now = get_run(session, wanted.run_id), worker_totals(session, wanted.run_id)
        alive = (wanted.workers or 1) + (now.alive if wanted.joins else 0)
        has_own = run.batch or wanted.concurrency is not None
        return replace(now, alive=alive, places=0 if has_own else run.concurrency).without_place()


def reuse_if_created(actor: Actor, wanted: RunStart, remedy: str) -> str:
    """How many stored answers such a run would take, of its first groups; nothing is kept."""
    if wanted.sample is None:
        most = min(each for each in (wanted.limit, MAX_GROUPS) if each)
        wanted = wanted.model_copy(update={"limit": most})
    with writing(actor, RIGHT) as session:
        _require_own_files(session, actor, wanted)
        message = reuse_of_run(session, start_run(session, **wanted.arguments(session)).id, remedy)
        session.rollback()
    return message


def recipe_of_start(actor: Actor, wanted: RunStart) -> Recipe:
    """The recipe that such a run would have, with its prompts. Raises as `create`."""
    wanted, _ = _with_provider(actor, wanted)
    with reading(actor, RIGHT) as session:
        get_dataset(session, wanted.dataset)
        _require_own_files(session, actor, wanted)
        return wanted.chosen(session).recipe


def unpriced(actor: Actor, wanted: RunStart) -> tuple[str, ...]:
    """The models of such a run that cost an unknown amount. Raises as `create`."""
    wanted, own = _with_provider(actor, wanted)
    recipe = recipe_of_start(actor, wanted)
    known = prices_for(wanted.provider, recipe, own=own)
    return tuple(model for model in recipe.models if model not in known)


def estimate(actor: Actor, wanted: RunStart) -> RunEstimate:
    """What such a run will cost and take. Raises Refused, BadInput, NotFound."""
    require(actor, RIGHT)
    wanted, own = _with_provider(actor, wanted)
    limits = (wanted.limit, wanted.sample, len(wanted.query_ids))
    concurrency = wanted.concurrency or default_concurrency(wanted.provider)
    with reading(actor, RIGHT) as session:
        _require_own_files(session, actor, wanted)
        chosen = wanted.chosen(session).recipe
        dataset_id = get_dataset(session, wanted.dataset).id
        found = estimate_run(
            session,
            dataset_id,
            chosen,
            prices_for(wanted.provider, chosen, batch=wanted.batch, own=own),
            limit=min((each for each in limits if each), default=None),
            concurrency=concurrency,
            provider=wanted.provider,
        )
    return RunEstimate(
        dataset_id=dataset_id,
        batch=wanted.batch,
        pairs=found.pairs,
        stages=tuple(found.stages),
        usd=found.usd,
        unpriced=tuple(found.unpriced),
        hours=None if wanted.batch else found.hours,
        concurrency=concurrency,
        seconds_per_call=found.seconds_per_call,
        measured_usd=found.measured_usd,
        reason="\n".join(map(how_to_price, found.unpriced)) if found.usd is None else None,
    )


def list_all(
    actor: Actor,
    dataset: str | None = None,
    status: str | None = None,
    *,
    dataset_id: int | None = None,
    archived: bool = False,
    right: str = RIGHT,
) -> Listed[RunSummary]:
    """List runs, newest first. Raises NotFound."""
    with reading(actor, right) as session:
        dataset_id = dataset_id if dataset is None else get_dataset(session, dataset).id
        found = list_runs(session, dataset_id, archived=archived)
    return Listed[RunSummary].all([one for one in found if status in (None, one.status)])


def show(actor: Actor, run_id: int) -> RunShown:
    """Show one run: progress, counts, and what depends on it. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        run = get_run(session, run_id)
        (found,) = list_runs(session, run_id=run_id, archived=True)
        workers = worker_totals(session, run_id)
        return RunShown(
            **found.model_dump(),
            seed=run.seed,
            concurrency=run.concurrency,
            batch=run.batch,
            models=run.models,
            funnel=FunnelRow.model_validate(latest_funnel(session, run_id)),
            texts=kept_texts(session, run_id),
            reviews=count_reviews(session, run_id),
            text_baseline=text_baseline(session, run_id),
            unanswered_usd=workers.unanswered_usd,
            died_in_flight=workers.died_in_flight,
            workers=workers.alive,
            waiting=workers.trouble.waiting() or workers.without_place(),
            shared_parts=stored_shared_parts(session, run_id),
            unchecked=is_unchecked(session, run_id),
            dependents=tuple(dependents(session, target_of(session, run_id=run_id))),
        )


def recipe(actor: Actor, run_id: int) -> Recipe:
    """The recipe of a run with its prompts, as they were stored at its start. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        return recipe_of(session, get_run(session, run_id))


def decide(actor: Actor, wanted: RunDecide) -> RunDecided:
    """Decide a finished run again by other rules, from its stored answers: nothing is requested.

    Raises NotFound, BadInput, Refused for rules that need answers which were never requested and
    for a run that is not done. The answers are read before the write, which takes the store's
    writer for the rows alone.
    """
    started = monotonic()
    with reading(actor, RIGHT) as session:
        use_snapshot(session)
        run = versions.require_finished(session, wanted.run_id)
        finished_at, before = run.finished_at, recipe_of(session, run)
        after = with_rules(before, wanted.settings)
        settings = changed_rules(before, after)
        decided = list(decide_again(session, run.id, before, after))
        changes = versions.changes_by(session, run.id, decided)
        texts = versions.text_changes_by(session, run.id, decided)
    version = None
    if not wanted.preview:
        with writing(actor, RIGHT) as session:
            row = versions.add_version(
                session,
                wanted.run_id,
                decided,
                settings=settings,
                expected=changed_expectations(before, after),
                finished_at=finished_at,
                created_by=actor.name,
            )
            version = row.number
            versions.use_version(session, wanted.run_id, version)
            record_event(
                session, actor.name, "run.decide", wanted.run_id, version=version, rules=settings
            )
    return RunDecided(
        run_id=wanted.run_id,
        version=version,
        settings=tuple(settings),
        **_sums(changes),
        texts=texts,
        seconds=monotonic() - started,
    )


def list_versions(actor: Actor, run_id: int) -> Listed[VersionRow]:
    """List the verdict versions of a run: by which rules, by whom, what they keep.

    Raises NotFound.
    """
    with reading(actor, RIGHT) as session:
        return Listed[VersionRow].all(versions.list_versions(session, run_id))


def use_version(actor: Actor, wanted: VersionChoice) -> Listed[VersionRow]:
    """Give the run's groups the verdicts of one of its versions.

    Raises NotFound, Refused for a run that is not done.
    """
    with writing(actor, RIGHT) as session:
        versions.use_version(session, wanted.run_id, wanted.number)
        record_event(session, actor.name, "run.use_version", wanted.run_id, version=wanted.number)
        return Listed[VersionRow].all(versions.list_versions(session, wanted.run_id))


def remove_version(actor: Actor, wanted: VersionChoice) -> Listed[VersionRow]:
    """Delete a verdict version that the run does not use and no release is made of.

    Raises NotFound, Refused for the first, the one that the run uses, and one that a release is
    made of.
    """
    with writing(actor, RIGHT) as session:
        versions.remove_version(session, wanted.run_id, wanted.number)
        record_event(
            session, actor.name, "run.remove_version", wanted.run_id, version=wanted.number
        )
        return Listed[VersionRow].all(versions.list_versions(session, wanted.run_id))


def compare_versions(
    actor: Actor, wanted: VersionComparison, *, limit: int | None = EXAMPLES, offset: int = 0
) -> VersionsCompared:
    """Compare two verdict versions of a run, by default the first and what the run uses.

    Raises NotFound.
    """
    with reading(actor, RIGHT) as session:
        run = get_run(session, wanted.run_id)
        second = wanted.second or run.verdict_version
        pair = wanted.first, second
        changes = versions.compare_versions(session, run.id, *pair)
        without = None if actor.owns_store else hidden_pair(session, actor.name, Pair.id)
        rows, total = versions.changed_groups(
            session,
            run.id,
            *pair,
            ended=(wanted.was, wanted.now),
            without=without,
            offset=offset,
            limit=limit,
        )
        listed = {row.number: row for row in versions.list_versions(session, run.id)}
        return VersionsCompared(
            run_id=run.id,
            first=listed[wanted.first],
            second=listed[second],
            **_sums(changes),
            texts=versions.compare_texts(session, run.id, *pair),
            groups=Listed[ChangedGroup].page(rows, offset=offset, total=total),
        )


def stop(actor: Actor, run_id: int, *, cancel: bool = False) -> None:
    """Request that every worker of the run stops; calls in flight are completed and kept.

    Workers that wait for a place are cancelled: they would go on with it.
    """
    with writing(actor, RIGHT) as session:
        stop_run(session, run_id, cancel=cancel)
        for job in jobs.live_of_run(session, run_id):
            if job.status == "queued":
                forget(jobs.request_stop(session, job.id))
        record_event(session, actor.name, "run.stop", run_id, cancel=cancel)


def shrink(actor: Actor, wanted: RunShrink) -> RunShrunk:
    """Let the newest workers of a run leave: calls in flight are completed and kept, their groups
    are the others'. Raises NotFound, Refused where none would stay."""
    with writing(actor, RIGHT) as session:
        run_id = get_run(session, wanted.run_id).id
        # the dead do not count as those who stay
        spared = living_here(session, jobs.silent_jobs(session))
        jobs.mark_lost_jobs(session, spared=spared)
        working = [
            job.id
            for job in jobs.live_of_run(session, run_id)
            if not (job.stop_requested or job.config.get("only"))
        ]
        if wanted.by >= len(working):
            raise Refused(
                f"{wanted.by} of {len(working)} workers of run {run_id} cannot leave: none would "
                "stay",
                "let fewer leave, or stop the run",
                code="run_without_workers",
            )
        leaving = sorted(working)[-wanted.by :]
        for job_id in leaving:
            job = jobs.request_stop(session, job_id)
            if job.status != "running":
                forget(job)
        record_event(session, actor.name, "run.shrink", run_id, jobs=leaving)
    return RunShrunk(run_id=run_id, leaving=tuple(leaving), workers=len(working) - wanted.by)


def change_concurrency(actor: Actor, run_id: int, calls: int) -> None:
    """Change the number of concurrent calls of a run, also while it works."""
    with writing(actor, RIGHT) as session:
        set_concurrency(session, get_run(session, run_id).id, calls)
        record_event(session, actor.name, "run.concurrency", run_id, calls=calls)


def _sums(changes: tuple[ReasonChange, ...]) -> dict[str, Any]:
    """The fields of `Changes`."""
    kept: Counter[tuple[bool, bool]] = Counter()
    for each in changes:
        kept[each.first == KEPT, each.second == KEPT] += each.groups
    return {
        "changes": changes,
        "kept_in_both": kept[True, True],
        "only_in_first": kept[True, False],
        "only_in_second": kept[False, True],
        "in_neither": kept[False, False],
    }


def _with_provider(actor: Actor, wanted: RunStart) -> tuple[RunStart, dict[str, Price]]:
    """The request with its provider, and the prices of its connection."""
    if wanted.connection is None:
        return wanted, {}
    with reading(actor, RIGHT) as session:
        provider = provider_of(session, wanted.provider, wanted.connection)
        is_stored = wanted.connection != ENVIRONMENT
        own = prices_of(get_connection(session, wanted.connection)) if is_stored else {}
    return wanted.model_copy(update={"provider": provider}), own
