"""Curation runs: a recipe applied to a dataset, its groups as a queue, and its funnel.

`stage` of a group is the furthest stage it entered, one of `STAGES`; it counts as reached by every
group that ended there or later. Spending is stored in the transaction that stores the calls.
"""

import json
import random
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Select, exists, func, insert, literal, select, true, update
from sqlalchemy.orm import Session

from db.corpus.datasets import require_active
from db.errors import BadInput, NotFound, Refused
from db.events import record_event
from db.rows import Row
from db.shape import Shape, shape_in
from db.tables import Dataset, Group, Pair, Recipe, Run, RunWorker, SlotText, utc_now

MAX_IDS_PER_STATEMENT = 10_000  # SQLite allows 32,766 bound values in one statement

STAGES = ("instruction", "negatives", "passages", "validation")
ANSWERS = "answers/"  # and a stage: the metric of a job that counts its answers
OVER = ("done", "failed", "cancelled")
SHAPES = "shapes"  # in a session's info: a run keeps its recipe


@dataclass(frozen=True)
class Funnel:
    """How far the groups of a run came.

    `generated` counts the groups whose triplets were all written (they reached validation).
    """

    run_id: int
    dataset_id: int
    pairs: int
    waiting: int
    in_work: int
    reached: dict[str, int]
    kept: int
    dropped: dict[str, int] = field(default_factory=dict)

    @property
    def generated(self) -> int:
        return self.reached["validation"]

    @property
    def finished(self) -> int:
        """Groups with a verdict."""
        return self.kept + sum(self.dropped.values())


@dataclass(frozen=True)
class Outcomes:
    """How many groups of a run are kept, and dropped for what."""

    kept: int
    dropped: dict[str, int]


class RunSummary(Row):
    """A run in a list."""

    id: int
    name: str
    dataset: str
    dataset_id: int
    recipe: str
    recipe_sha256: str
    recipe_version: int | None
    provider: str
    connection: str | None
    url: str | None
    offline: bool
    status: str
    archived: bool
    verdict_version: int
    pairs: int
    kept: int
    dropped: int
    spent_usd: float
    budget_usd: float | None
    created_by: str
    created_at: datetime
    finished_at: datetime | None
    error: str | None


def create_run(
    session: Session,
    *,
    dataset_id: int,
    recipe_id: int,
    provider: str,
    offline: bool,
    seed: int = 0,
    concurrency: int = 8,
    budget_usd: float | None = None,
    limit: int | None = None,
    sample: int | None = None,
    query_ids: Sequence[str] = (),
    requests_per_minute: int | None = None,
    tokens_per_minute: int | None = None,
    batch: bool = False,
    guard: bool = True,
    fresh: bool = False,
    recipe_version: int | None = None,
    preview: bool = False,
    created_by: str = "",
) -> Run:
    """Create a run with a waiting group for each pair of the dataset (the first `limit` of them).

    With `query_ids` only for those pairs; with `sample` for that many pairs chosen at random, by
    `seed` (all of them if the dataset has no more). Raises BadInput for a dataset without pairs, an
    unknown pair, a limit or sample below 1, or both of them; Refused for an archived dataset. A
    `preview` is archived from the beginning. Does not commit.
    """
    require_active(session, session.get_one(Dataset, dataset_id))
    for name, count in (("limit", limit), ("sample", sample)):
        if count is not None and count < 1:
            raise BadInput(
                f"a {name} of {count} pairs", "give at least 1", code="pair_count_invalid"
            )
    if limit is not None and sample is not None:
        raise BadInput(
            "limit takes the first pairs, sample takes random ones",
            "give one of them",
            code="limit_excludes_sample",
        )
    run = Run(
        dataset_id=dataset_id,
        recipe_id=recipe_id,
        provider=provider,
        offline=offline,
        seed=seed,
        concurrency=concurrency,
        budget_usd=budget_usd,
        requests_per_minute=requests_per_minute,
        tokens_per_minute=tokens_per_minute,
        batch=batch,
        guard=guard,
        fresh=fresh,
        recipe_version=recipe_version,
        preview=preview,
        archived_at=utc_now() if preview else None,
        created_by=created_by,
    )
    session.add(run)
    session.flush()
    pairs = select(literal(run.id), Pair.id, literal("waiting"), literal(""), literal(0)).where(
        Pair.dataset_id == dataset_id
    )
    if query_ids:
        _require_pairs(session, dataset_id, query_ids)
        pairs = pairs.where(Pair.external_id.in_(query_ids))
    pairs = pairs.order_by(Pair.id)
    columns = ["run_id", "pair_id", "state", "stage", "attempt"]
    if sample is not None:
        ids = _sampled_pairs(session, pairs, sample, seed)
        for start in range(0, len(ids), MAX_IDS_PER_STATEMENT):
            part = ids[start : start + MAX_IDS_PER_STATEMENT]
            session.execute(insert(Group).from_select(columns, pairs.where(Pair.id.in_(part))))
    else:
        taken = pairs if limit is None else pairs.limit(limit)
        session.execute(insert(Group).from_select(columns, taken))
    if session.scalar(select(Group.id).where(Group.run_id == run.id).limit(1)) is None:
        raise BadInput(
            "the dataset has no pairs",
            "import some with `datasets import NAME pairs=FILE`",
            code="dataset_without_pairs",
        )
    keep_count(session, run.id)
    return run


def _sampled_pairs(
    session: Session, pairs: Select[int, int, str, str, int], count: int, seed: int
) -> list[int]:
    """The ids of `count` of these pairs at random, ascending; the seed fixes them."""
    ids = list(session.scalars(pairs.with_only_columns(Pair.id)))
    return sorted(random.Random(f"sample {seed}").sample(ids, min(count, len(ids))))


def _require_pairs(session: Session, dataset_id: int, query_ids: Sequence[str]) -> None:
    query = select(Pair.external_id).where(Pair.dataset_id == dataset_id)
    found = set(session.scalars(query.where(Pair.external_id.in_(query_ids))))
    missing = [name for name in query_ids if name not in found]
    if missing:
        raise BadInput(
            f"the dataset has no pair {missing[0]!r}",
            "give an existing query_id",
            code="pair_unknown",
        )


def get_run(session: Session, run_id: int) -> Run:
    """The run as it is now. Raises NotFound."""
    run = session.get(Run, run_id, populate_existing=True)
    if run is None:
        active = select(Run.id).where(Run.archived_at.is_(None)).order_by(Run.id.desc())
        newest = ", ".join(map(str, session.scalars(active.limit(10))))
        raise NotFound(
            f"no run {run_id}; {f'the newest ones: {newest}' if newest else 'there is none yet'}",
            "`runs list` has all" if newest else "`runs create NAME` creates one",
            code="run_unknown",
        )
    return run


def require_active_run(session: Session, run: Run) -> None:
    """Raise Refused for a run that is archived, or whose dataset is: nothing new is made from it.

    Locks both against being archived until the transaction ends.
    """
    dataset = session.scalars(select(Dataset).where(Dataset.id == run.dataset_id)).one()
    require_active(session, dataset)
    query = select(Run.archived_at).where(Run.id == run.id)
    if session.scalar(query.with_for_update(read=True, key_share=True)) is not None:
        raise Refused(
            f"run {run.id} is archived",
            f"bring it back with `runs unarchive {run.id}`, or name another",
            code="run_archived",
        )


def latest_run(session: Session, dataset_id: int) -> Run:
    """The newest finished run of a dataset that is not archived. Raises NotFound."""
    which = (Run.dataset_id == dataset_id, Run.archived_at.is_(None), Run.status == "done")
    run = session.scalars(select(Run).where(*which).order_by(Run.id.desc()).limit(1)).first()
    if run is None:
        name = session.scalar(select(Dataset.name).where(Dataset.id == dataset_id))
        raise NotFound(
            f"dataset {name!r} has no finished run yet",
            f"`runs create {name}` creates one",
            code="dataset_still_without",
        )
    return run


def choose_run(session: Session, dataset_id: int, run_id: int | None) -> Run:
    """The given run, which must be of this dataset, or its newest finished one.

    Raises NotFound, BadInput, and Refused for one that is archived.
    """
    run = latest_run(session, dataset_id) if run_id is None else get_run(session, run_id)
    if run.dataset_id != dataset_id:
        raise BadInput(
            f"run {run_id} is of another dataset",
            "`runs list` has those of the dataset",
            code="run_of_another_dataset",
        )
    require_active_run(session, run)
    return run


def run_ids(session: Session, dataset_id: int) -> list[int]:
    """The ids of a dataset's runs, newest first, archived ones too; nothing is counted."""
    query = select(Run.id).where(Run.dataset_id == dataset_id)
    return list(session.scalars(query.order_by(Run.id.desc())))


def funnel(session: Session, run_id: int, of: ColumnElement[bool] | None = None) -> Funnel:
    """How many groups of the run reached each stage, were kept, and were dropped by reason.

    `of`: a condition on `Group`, the groups that are counted.
    """
    return funnels(session, [get_run(session, run_id)], of)[run_id]


def funnels(
    session: Session, runs: Sequence[Run], of: ColumnElement[bool] | None = None
) -> dict[int, Funnel]:
    """The funnels of runs by id, in one statement; in none where there is no run."""
    parts = Group.run_id, Group.state, Group.stage, Group.verdict, Group.drop_reason
    of_runs = Group.run_id.in_([run.id for run in runs]), true() if of is None else of
    counts = select(*parts, func.count()).where(*of_runs).group_by(*parts)
    rows: dict[int, list[Any]] = {run.id: [] for run in runs}
    for run_id, *row in session.execute(counts) if runs else ():
        rows[run_id].append(row)
    return {run.id: _funnel(run, rows[run.id]) for run in runs}


def _funnel(run: Run, rows: Sequence[Any]) -> Funnel:
    reached = dict.fromkeys(STAGES, 0)
    states = {"waiting": 0, "leased": 0, "done": 0}
    kept, dropped = 0, dict[str, int]()
    for state, stage, verdict, reason, count in rows:
        states[state] += count
        for earlier in STAGES[: STAGES.index(stage) + 1] if stage else ():
            reached[earlier] += count
        if verdict == "kept":
            kept += count
        elif reason is not None:
            dropped[reason] = dropped.get(reason, 0) + count
    return Funnel(
        run_id=run.id,
        dataset_id=run.dataset_id,
        pairs=sum(states.values()),
        waiting=states["waiting"],
        in_work=states["leased"],
        reached=reached,
        kept=kept,
        dropped=dict(sorted(dropped.items(), key=lambda pair: (-pair[1], pair[0]))),
    )


def counted_now(session: Session, run_id: int) -> tuple[Funnel, str]:
    """The funnel, and as it is stored: in JSON, with how many seconds the count took."""
    began = time.monotonic()
    found = funnel(session, run_id)
    return found, json.dumps({"seconds": time.monotonic() - began, "funnel": vars(found)})


def keep_count(session: Session, run_id: int) -> None:
    """Store the funnel of a run at which no worker is, so that a list of runs counts no groups.

    For whatever changes its groups then; the first worker takes the count over. Does not commit.
    """
    # a worker that starts or leaves meanwhile comes before or after this
    session.execute(select(Run.id).where(Run.id == run_id).with_for_update(key_share=True))
    of_run = RunWorker.run_id == run_id, RunWorker.ended_at.is_(None)
    is_at_work = session.scalar(select(exists().where(*of_run)))
    counted = None if is_at_work else counted_now(session, run_id)[1]
    session.execute(update(Run).where(Run.id == run_id).values(counted=counted))


def drop_reasons(session: Session, run_id: int) -> list[str]:
    """The reasons for which groups of the run were dropped, the most frequent first."""
    query = (
        select(Group.drop_reason)
        .where(Group.run_id == run_id, Group.verdict == "dropped")
        .group_by(Group.drop_reason)
        .order_by(func.count().desc(), Group.drop_reason)
    )
    return [str(reason) for reason in session.scalars(query)]


def outcomes(session: Session, run_id: int) -> Outcomes:
    """As `funnel`, of finished groups only: cheap as long as they are few."""
    rows = session.execute(
        select(Group.drop_reason, func.count())
        .where(Group.run_id == run_id, Group.state.between("done", "done"))
        .group_by(Group.drop_reason)
    )
    counts: dict[str | None, int] = dict(rows.all())
    kept = counts.pop(None, 0)
    return Outcomes(kept, {str(reason): count for reason, count in counts.items()})


def kept_texts(session: Session, run_id: int) -> dict[str, int]:
    """How many texts of lists the run's kept groups have (`kept`), and how many were dropped alone,
    by reason, the most frequent first; empty where its shape has no lists."""
    slots = [text.sign for text in shape_of(session, run_id).lists]
    if not slots:
        return {}
    reason = func.coalesce(SlotText.dropped_reason, "kept")
    query = (
        select(reason, func.count())
        .join(Group, Group.id == SlotText.group_id)
        .where(Group.run_id == run_id, Group.verdict == "kept", SlotText.slot.in_(slots))
        .group_by(reason)
        .order_by(func.count().desc(), reason)
    )
    return dict(session.execute(query).all())


def shape_of(session: Session, run_id: int) -> Shape:
    """The shape of the run's groups, by its recipe."""
    found = shapes_of(session, [run_id])
    return found[run_id] if run_id in found else shape_and_judging(session, run_id)[0]


def shapes_of(session: Session, run_ids: Collection[int]) -> dict[int, Shape]:
    """The shape of the groups of each run that the session sees, read once in a session."""
    known: dict[int, Shape] = session.info.setdefault(SHAPES, {})
    if unknown := set(run_ids) - known.keys():
        rows = session.execute(
            select(Run.id, Recipe.body)
            .join(Run, Run.recipe_id == Recipe.id)
            .where(Run.id.in_(unknown))
        )
        known |= {run_id: shape_in(body) for run_id, body in rows}
    return {run_id: known[run_id] for run_id in run_ids if run_id in known}


def shapes_of_groups(session: Session, group_ids: Sequence[int]) -> dict[int, Shape]:
    """The shape of each group, by its run."""
    run_of: dict[int, int] = {}
    for start in range(0, len(group_ids), MAX_IDS_PER_STATEMENT):
        ids = group_ids[start : start + MAX_IDS_PER_STATEMENT]
        rows = session.execute(select(Group.id, Group.run_id).where(Group.id.in_(ids)))
        run_of.update(rows.all())
    shapes = shapes_of(session, set(run_of.values()))
    return {group_id: shapes[run_id] for group_id, run_id in run_of.items()}


def shape_and_judging(session: Session, run_id: int) -> tuple[Shape, int]:
    """The shape of the run's groups, and how many answers its judges give about one of them."""
    body = session.scalars(
        select(Recipe.body).join(Run, Run.recipe_id == Recipe.id).where(Run.id == run_id)
    ).one()
    shape = shape_in(body)
    checks = body.get("checks", [])
    votes = int(body.get("validation", {}).get("votes", 1))
    picks = len(shape.roles) * votes if not checks or "validation" in body["stages"] else 0
    counts = {text.sign: text.count for text in shape.lists}
    answers = (
        sum(counts.get(sign, 1) for sign in check["over"]) * int(check["votes"]) for check in checks
    )
    return shape, picks + sum(answers)


def set_run_status(session: Session, run_id: int, status: str, *, error: str | None = None) -> None:
    """Set the run's status; an end status also sets the end time. Does not commit."""
    ended = utc_now() if status in OVER else None
    started_by = session.scalar(
        update(Run)
        .where(Run.id == run_id)
        .values(status=status, error=error, finished_at=ended)
        .returning(Run.created_by)
    )
    if ended is not None or status == "paused":
        happened = "finished" if status == "done" else status
        record_event(session, started_by or "", f"run.{happened}", run_id)


def begin_run(session: Session, run_id: int, *, joins: bool = False) -> Run:
    """Set a run to running when a worker starts, unless it is done. Does not commit.

    A further worker, which `joins`, begins none that was stopped since it was queued.

    Raises NotFound, and Refused for an archived run that is no preview.
    """
    run = get_run(session, run_id)
    if not run.preview:
        require_active_run(session, run)
    if run.status in ("created", "running") or not (joins or run.status == "done"):
        set_run_status(session, run_id, "running")
        run = get_run(session, run_id)
    return run


def stop_run(session: Session, run_id: int, *, cancel: bool = False) -> Run:
    """Request every worker of a run to stop within a second or two: paused, or cancelled.

    Both can be resumed. Raises Refused for a run that is done. Does not commit.
    """
    run = get_run(session, run_id)
    if run.status == "done":
        raise Refused(f"run {run_id} is done: there is nothing to stop", code="run_done")
    status = "cancelled" if cancel else "paused"
    message = f"{status} on request; `runs resume {run_id}` continues"
    set_run_status(session, run_id, status, error=message)
    return get_run(session, run_id)


def set_concurrency(session: Session, run_id: int, concurrency: int) -> None:
    """Set how many calls a worker may have in flight; running workers apply it at once.

    Raises BadInput below 1. Does not commit.
    """
    if concurrency < 1:
        raise BadInput(
            f"concurrency is {concurrency}", "give at least 1", code="concurrency_invalid"
        )
    session.execute(update(Run).where(Run.id == run_id).values(concurrency=concurrency))


def reopen_run(
    session: Session,
    run_id: int,
    *,
    budget_usd: float | None = None,
    concurrency: int | None = None,
    guard: bool = True,
) -> Run:
    """Make an unfinished run ready to continue, with another budget or concurrency if given.

    Without `guard` it will not be paused for its first drops.

    Raises Refused for a run that is done or archived. Does not commit.
    """
    run = get_run(session, run_id)
    require_active_run(session, run)
    if run.status == "done":
        raise Refused(
            f"run {run_id} is done: there is nothing to resume",
            f"try dropped groups again with `runs resume {run_id} retry=REASON`",
            code="run_done",
        )
    if budget_usd is not None:
        run.budget_usd = budget_usd
    if concurrency is not None:
        run.concurrency = concurrency
    run.guard = run.guard and guard
    run.error, run.finished_at = None, None
    if run.status != "running":
        run.status = "created"  # like a new run that waits for its worker; pages show it so
    return run
