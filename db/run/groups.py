"""Lists of groups: filtering a run's groups, a page of them, groups by run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, and_, case, exists, func, or_, select, union
from sqlalchemy.orm import Session, aliased

from db.corpus.texts import pair_source
from db.rows import Row
from db.run.runs import shape_of
from db.shape import Shape
from db.tables import (
    Checkpoint,
    Dataset,
    Group,
    Pair,
    Passage,
    ReleaseGroup,
    Review,
    SlotText,
)

BATCH = 500
UNFINISHED = "unfinished"
STATUSES = (UNFINISHED, "released", "trained")
Verdicts = tuple[Any, ColumnElement[bool] | None]


class GroupRow(Row):
    """A group in a list; `name` is its query's id in the source, `instruction` "" if none is there.

    `review` is the action of its current review, `review_id`; `is_complete`: it has all its
    texts. To a blind reviewer `stage` and `state` are "", `verdict` and `drop_reason` None.
    """

    id: int
    name: str
    query: str
    instruction: str
    stage: str
    state: str
    verdict: str | None
    drop_reason: str | None
    review: str | None
    review_id: int | None = None
    is_complete: bool = False


@dataclass(frozen=True)
class GroupPage:
    """A page of groups and how many there are in all."""

    rows: list[GroupRow]
    total: int


def page_of_groups(
    session: Session,
    query: Select[int],
    *,
    is_search: bool,
    offset: int,
    limit: int | None,
    held: Verdicts = (Group, None),
) -> GroupPage:
    """A page of the groups whose ids a query gives, in the order of their pairs.

    `held`: what has their verdicts (`db.run.versions.verdicts_of`)."""
    if is_search:  # looked for once: the count and the page are of what was found
        found = list(session.scalars(query.order_by(Group.id)))
        total, ids = len(found), found[offset:][:limit]
    else:
        total = session.scalar(select(func.count()).select_from(query.subquery())) or 0
        ids = list(session.scalars(query.order_by(Group.id).offset(offset).limit(limit)))
    return GroupPage(group_rows(session, ids, held), total)


def group_rows(
    session: Session, ids: Sequence[int], held: Verdicts = (Group, None)
) -> list[GroupRow]:
    """The given groups as a list shows them, by id."""
    verdicts, joined = held
    first, last = aliased(SlotText), aliased(SlotText)
    of_ids = select(Group.run_id).where(Group.id.in_(ids)).distinct()
    shapes = {run_id: shape_of(session, run_id) for run_id in session.scalars(of_ids)}
    if not shapes:
        return []
    first_slot = case(
        {each: of.first.instruction.sign for each, of in shapes.items()}, value=Group.run_id
    )
    last_slot = case({each: of.completed_by for each, of in shapes.items()}, value=Group.run_id)
    rows_of = (
        select(
            Group.id,
            Pair.external_id,
            Pair.query,
            func.coalesce(first.text, ""),
            Group.stage,
            Group.state,
            verdicts.verdict,
            verdicts.drop_reason,
            Review.action,
            Review.id,
            last.group_id.is_not(None),
        )
        .join(Pair, Pair.id == Group.pair_id)
        .outerjoin(first, _at(first, first_slot))
        .outerjoin(last, _at(last, last_slot))
        .outerjoin(Review, and_(Review.group_id == Group.id, Review.is_current))
        .where(Group.id.in_(ids))
        .order_by(Group.id)
    )
    if joined is not None:
        rows_of = rows_of.outerjoin(verdicts, joined)
    names = GroupRow.model_fields
    rows = session.execute(rows_of)
    return [GroupRow(**dict(zip(names, row, strict=True))) for row in rows]


def matching_groups(
    run_id: int,
    *,
    verdict: str | None = None,
    reason: str | None = None,
    stage: str | None = None,
    source: str | None = None,
    review: str | None = None,
    status: str | None = None,
    search: str | None = None,
    in_passages: bool = False,
    without: ColumnElement[bool] | None = None,
    held: Verdicts = (Group, None),
) -> Select[int]:
    """The ids of groups of a run, `without` some: a condition on `Group.pair_id`, those hidden from
    a person (`db.assignment.hidden.hidden_pair`).

    `review` is an action, or "none" for unreviewed groups; `status` is one of STATUSES. `search` is
    a text, case-insensitive, in the query, the instructions and Q-, with `in_passages` in the
    passages, too. `verdict` and `reason` are those of what has the verdicts, `held`
    (`db.run.versions.verdicts_of`).
    """
    verdicts, joined = held
    query = select(Group.id).where(Group.run_id == run_id)
    if without is not None:
        query = query.where(~without)
    if joined is not None:
        query = query.join(verdicts, joined)
    if verdict:
        query = query.where(verdicts.verdict == verdict)
    if reason:
        query = query.where(verdicts.drop_reason == reason)
    if stage:
        query = query.where(Group.stage == stage)
    if source:
        of_source = select(Pair.id).join(Dataset, Dataset.id == Pair.dataset_id)
        of_source = of_source.where(pair_source() == source)
        query = query.where(Group.pair_id.in_(of_source))
    query = _reviewed(query, review)
    if status:
        query = query.where(_has_status(status))
    if search and search.strip():
        query = query.where(Group.id.in_(_found(run_id, search.strip(), in_passages)))
    return query


def released(*, trained: bool = False) -> ColumnElement[bool]:
    """Whether a release has the group; `trained`: one that a model was trained on."""
    of_group = select(ReleaseGroup.group_id).where(ReleaseGroup.group_id == Group.id)
    if trained:
        used = select(Checkpoint.release_id).where(Checkpoint.release_id.is_not(None))
        of_group = of_group.where(ReleaseGroup.release_id.in_(used))
    return of_group.correlate(Group).exists()


def _has_status(status: str) -> ColumnElement[bool]:
    if status == UNFINISHED:
        return Group.verdict.is_(None)
    return released(trained=status == "trained")


def is_complete(shape: Shape) -> ColumnElement[bool]:
    """Whether a query's group, of this shape, has all its texts: those written last are there."""
    return exists().where(_at(SlotText, shape.completed_by)).correlate(Group)


def _at(texts: Any, slot: Any) -> ColumnElement[bool]:
    """Whether a row of texts is the first one of a query's group in this slot."""
    return and_(texts.group_id == Group.id, texts.slot == slot, texts.ordinal == 0)


def _reviewed(query: Select[int], review: str | None) -> Select[int]:
    if not review:
        return query
    current = select(Review.id).where(Review.group_id == Group.id, Review.is_current)
    if review == "none":
        return query.where(~exists(current))
    return query.where(exists(current.where(Review.action == review)))


def _found(run_id: int, text: str, in_passages: bool) -> Any:
    """The ids of the run's groups whose pair or texts contain the text."""
    escaped = text.lower().replace("\\", "\\\\").replace("%", r"\%").replace("_", r"\_")

    def holds(*columns: Any) -> Any:
        return or_(*(func.lower(each).like(f"%{escaped}%", escape="\\") for each in columns))

    by_pair = (
        select(Group.id)
        .join(Pair, Pair.id == Group.pair_id)
        .where(Group.run_id == run_id, holds(Pair.query))
    )
    by_text = (
        select(Group.id)
        .join(SlotText, SlotText.group_id == Group.id)
        .where(Group.run_id == run_id, holds(SlotText.text))
    )
    if not in_passages:
        return union(by_pair, by_text)
    by_passage = (
        select(Group.id)
        .join(SlotText, SlotText.group_id == Group.id)
        .join(Passage, Passage.id == SlotText.passage_id)
        .where(Group.run_id == run_id, holds(Passage.text))
    )
    return union(by_pair, by_text, by_passage)


def groups_by_run(session: Session, group_ids: Sequence[int]) -> dict[int, list[int]]:
    """The given groups by run, the run with most of them first."""
    found: dict[int, list[int]] = {}
    for start in range(0, len(group_ids), BATCH):
        query = select(Group.run_id, Group.id).where(Group.id.in_(group_ids[start : start + BATCH]))
        for run_id, group_id in session.execute(query.order_by(Group.id)):
            found.setdefault(run_id, []).append(group_id)
    return dict(sorted(found.items(), key=lambda each: (-len(each[1]), each[0])))
