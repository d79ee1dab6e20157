"""The contents of a release: its rows and judgments, streamed with one query per batch.

All batches are read within the session's transaction, so that a release is a snapshot of the store
(on PostgreSQL the caller sets REPEATABLE READ first, see `use_snapshot`).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, and_, select
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from db.corpus.texts import pair_source, slot_text
from db.run.new_items import in_order_of_roles, is_pick
from db.shape import Shape, text_name
from db.study.strictness import confidence_of
from db.tables import Dataset, Group, Item, Judge, Judgment, Pair, Passage, Review, SlotText

BATCH = 2000


class ReleaseRow(NamedTuple):
    """A group as exported; texts in the order of its shape."""

    group_id: int
    run_id: int
    query_id: str
    passage_id: str
    verdict: str
    drop_reason: str | None
    review: str | None
    meta: dict[str, Any]
    texts: tuple[str, ...]
    listed: dict[str, list[tuple[str, str]]]  # of the shape's lists, by sign: (name, text)


_FACTS = ReleaseRow._fields.index("texts")


@dataclass(frozen=True)
class GroupJudgment:
    """A current judgment of a group's item; people are pseudonymous."""

    group_id: int
    item_id: int
    scenario: str
    revision: int
    judge: str
    kind: str
    offline: bool
    simulated: bool
    choice: str
    position: int | None
    expected: str | None = None
    confidence: float | None = None
    """Of the run's validator: its share of votes, or its margin, for the passage that was meant."""


def use_snapshot(session: Session) -> None:
    """From its next statement on, this session sees a snapshot of the store."""
    if session.get_bind().dialect.name == "postgresql":
        session.connection(execution_options={"isolation_level": "REPEATABLE READ"})


def release_rows(
    session: Session, group_ids: Sequence[int], shape: Shape
) -> Iterator[list[ReleaseRow]]:
    """The given groups, which are of one shape, in their order, a batch at a time.

    A batch is selected by its ids alone: with another condition SQLite takes the index of verdicts
    and sorts all the rest of the run for every batch.
    """
    slots = {sign: aliased(SlotText) for sign in shape.texts}
    passages = {text.sign: aliased(Passage) for text in shape.all_texts if text.is_passage}
    query = (
        select(
            Group.id,
            Group.run_id,
            Pair.external_id,
            passages[shape.first.passage.sign].external_id,
            Group.verdict,
            Group.drop_reason,
            Review.action,
            Pair.meta,
            *((passages[sign] if sign in passages else slots[sign]).text for sign in slots),
        )
        .join(Pair, Pair.id == Group.pair_id)
        .outerjoin(Review, and_(Review.group_id == Group.id, Review.is_current))
    )
    for sign, slot in slots.items():  # joined, not read one by one: half the time of a row each
        at = and_(slot.group_id == Group.id, slot.slot == sign, slot.ordinal == 0)
        query = query.join(slot, at)
        if sign in passages:
            query = query.join(passages[sign], passages[sign].id == slot.passage_id)
    for start in range(0, len(group_ids), BATCH):
        ids = list(group_ids[start : start + BATCH])
        rows = session.execute(query.where(Group.id.in_(ids)).order_by(Group.id))
        listed = _listed(session, ids, shape)
        yield [
            ReleaseRow._make((*row[:_FACTS], tuple(row[_FACTS:]), listed.get(row[0], {})))
            for row in rows
        ]


def _listed(
    session: Session, group_ids: Sequence[int], shape: Shape
) -> dict[int, dict[str, list[tuple[str, str]]]]:
    """The texts of the shape's lists by group and sign, without those that were dropped."""
    found: dict[int, dict[str, list[tuple[str, str]]]] = {}
    if not shape.lists:
        return found
    rows = session.execute(
        select(SlotText.group_id, SlotText.slot, SlotText.ordinal, Passage.text)
        .join(Passage, Passage.id == SlotText.passage_id)
        .where(
            SlotText.group_id.in_(group_ids),
            SlotText.slot.in_([text.sign for text in shape.lists]),
            SlotText.dropped_reason.is_(None),
        )
        .order_by(SlotText.group_id, SlotText.slot, SlotText.ordinal)
    )
    for group_id, slot, ordinal, text in rows:
        of_group = found.setdefault(group_id, {})
        of_group.setdefault(slot, []).append((text_name(slot, ordinal), text))
    return found


def split_texts(session: Session, group_ids: Sequence[int]) -> Iterator[list[tuple[int, str, str]]]:
    """(group, slot, text) of all that the groups have, a batch at a time, by group."""
    query = select(SlotText.group_id, SlotText.slot, slot_text())
    query = query.outerjoin(Passage, Passage.id == SlotText.passage_id)
    for start in range(0, len(group_ids), BATCH):
        ids = list(group_ids[start : start + BATCH])
        in_use = query.where(SlotText.group_id.in_(ids), SlotText.dropped_reason.is_(None))
        rows = session.execute(in_use.order_by(SlotText.group_id))
        yield [(row[0], row[1], row[2]) for row in rows]


def sources_of_groups(session: Session, group_ids: Sequence[int]) -> list[str]:
    """The source of each group's pair (the dataset's if it has none), in the given order."""
    return _of_datasets(session, group_ids, pair_source())


def datasets_of_groups(session: Session, group_ids: Sequence[int]) -> list[str]:
    """The name of each group's dataset, in the given order."""
    return _of_datasets(session, group_ids, Dataset.name)


def _of_datasets(
    session: Session,
    group_ids: Sequence[int],
    wanted: ColumnElement[Any] | InstrumentedAttribute[Any],
) -> list[str]:
    """What is wanted of each group's pair and dataset."""
    query = (
        select(Group.id, wanted)
        .join(Pair, Pair.id == Group.pair_id)
        .join(Dataset, Dataset.id == Pair.dataset_id)
    )
    found: list[str] = []
    for start in range(0, len(group_ids), BATCH):
        ids = list(group_ids[start : start + BATCH])
        rows = session.execute(query.where(Group.id.in_(ids)).order_by(Group.id))
        found += [row[1] or "" for row in rows]
    return found


def group_judgments(
    session: Session, group_ids: Sequence[int], shape: Shape
) -> dict[int, list[GroupJudgment]]:
    """The current judgments of the items of groups of one shape, by group; people as `person-N`.

    Of the picks of a passage alone: a release has no column yet for answers to other questions.
    `position` is that of the chosen candidate, counted from 1; None for "none".
    """
    query = (
        select(
            Item.group_id,
            Item.id,
            Item.scenario,
            Item.revision,
            Item.expected,
            Judge.id,
            Judge.name,
            Judge.kind,
            Judge.offline,
            Judge.simulated,
            Judgment.choice,
            Judgment.order_shown,
            Judgment.detail,
            Judgment.run_id == Group.run_id,
        )
        .join(Group, Group.id == Item.group_id)
        .join(Judgment, Judgment.item_id == Item.id)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Item.group_id.in_(group_ids), Judgment.is_current, is_pick())
        .order_by(Item.group_id, *in_order_of_roles(shape), Judgment.id)
    )
    found: dict[int, list[GroupJudgment]] = {}
    for row in session.execute(query):
        group_id, item_id, scenario, revision, expected, judge_id, name, kind, *rest = row
        offline, simulated, choice, order, detail, is_validator = rest
        found.setdefault(group_id, []).append(
            GroupJudgment(
                group_id=group_id,
                item_id=item_id,
                scenario=scenario,
                revision=revision,
                judge=pseudonym(judge_id) if kind == "person" else name,
                kind=kind,
                offline=offline,
                simulated=simulated,
                choice=choice,
                position=order.index(choice) + 1 if choice in order else None,
                expected=expected,
                confidence=(
                    confidence_of(detail or {}, list(order), expected) if is_validator else None
                ),
            )
        )
    return found


def pseudonym(judge_id: int) -> str:
    """A person's name in releases: constant within a store, and does not identify anyone."""
    return f"person-{judge_id}"
