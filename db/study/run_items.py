"""What is known of every item of a run, and what people decided about those of a study."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from sqlalchemy import ScalarSelect, func, select
from sqlalchemy.orm import Session, aliased

from db.corpus.texts import pair_source
from db.run.new_items import in_order_of_roles, is_pick
from db.run.runs import shape_of
from db.store.kept import kept
from db.study.judgments import JudgmentRow
from db.study.studies import get_study
from db.tables import Dataset, Group, Item, Judge, Judgment, Pair, StudyItem

FIELD_END, ITEM_END = "\x1f", "\x1e"  # which no scenario and no answer has


class ItemKind(NamedTuple):
    """What is known of an item without asking people.

    `expected`: its right answer. `passed`: whether the run's validator gave it; `missed`: in
    how many of its group's items it did not. None where the store has no answer of a validator.
    `drop_reason` is empty for kept groups.
    """

    verdict: str
    source: str = ""
    drop_reason: str = ""
    scenario: str = ""
    passed: bool | None = None
    missed: int | None = None
    expected: str | None = None


@dataclass(frozen=True)
class JudgedItem:
    """An item that people judged; `value`: 1 where they confirm its passage, 0 where not."""

    item_id: int
    group_id: int
    kind: ItemKind
    value: float


class EstimateState(NamedTuple):
    """Adjudicated decisions (how many, the newest) and the run's verdicts: of each, how many groups
    and the sum of their ids, which also changes where two groups swap verdicts."""

    decisions: int
    last_decision: int
    verdicts: tuple[tuple[object, ...], ...]


def run_item_kinds(
    session: Session, run_id: int, *, of_study: int | None = None
) -> dict[int, tuple[int, ItemKind]]:
    """Of every item that the run's validator was to judge: its group and its kind.

    Only first revisions: an edited text is not what the run's verdict is about. Groups that were
    dropped before validation have no items and are not in it. of_study: only of the groups of that
    study's items.
    """
    query = (
        select(
            Item.id,
            Item.group_id,
            Item.scenario,
            Item.expected,
            Group.verdict,
            func.coalesce(Group.drop_reason, ""),
            pair_source(),
            _answered(run_id),
        )
        .join(Group, Group.id == Item.group_id)
        .join(Pair, Pair.id == Group.pair_id)
        .join(Dataset, Dataset.id == Pair.dataset_id)
        .where(Group.run_id == run_id, Group.verdict.is_not(None), Item.revision == 1, is_pick())
        .order_by(Item.group_id, *in_order_of_roles(shape_of(session, run_id)))
    )
    if of_study is not None:
        items = select(StudyItem.item_id).where(StudyItem.study_id == of_study)
        member = aliased(Item)
        query = query.where(Item.group_id.in_(select(member.group_id).where(member.id.in_(items))))
    rows = session.execute(query).all()
    missed: dict[int, int | None] = {}
    for _, group_id, _, expected, *_, answer in rows:
        before = missed.get(group_id, 0)
        if answer is None or before is None:
            missed[group_id] = None
        else:
            missed[group_id] = before + (answer != expected)
    return {
        item_id: (
            group_id,
            ItemKind(
                str(verdict),
                source or "",
                reason,
                scenario,
                None if answer is None else answer == expected,
                missed[group_id],
                expected,
            ),
        )
        for item_id, group_id, scenario, expected, verdict, reason, source, answer in rows
    }


def _answered(run_id: int) -> ScalarSelect[str]:
    """The choice of the run's validator for an item, looked up for each: few of many are read."""
    return (
        select(Judgment.choice)
        .where(
            Judgment.item_id == Item.id,
            Judgment.run_id == run_id,
            Judgment.study_id.is_(None),
            Judgment.judge_id.in_(select(Judge.id).where(Judge.kind == "model")),
        )
        .order_by(Judgment.id.desc())
        .limit(1)
        .scalar_subquery()
    )


def validator_choices(session: Session, run_id: int) -> dict[int, str]:
    """The choice of the run's validator by item, of all that it was to judge."""
    query = (
        select(Judgment.item_id, Judgment.choice)
        .join(Judge, Judge.id == Judgment.judge_id)
        .join(Item, Item.id == Judgment.item_id)
        .where(
            Judgment.run_id == run_id,
            Judgment.study_id.is_(None),
            Judge.kind == "model",
            Item.revision == 1,
            is_pick(),
        )
        .order_by(Judgment.id)
    )
    return dict(session.execute(query).all())


def run_population(session: Session, run_id: int) -> dict[ItemKind, int]:
    """How many items of each kind the run has.

    It is kept while nothing it counts has changed: 100,000 groups take a second, and a study that
    people judge asks for it after every answer.
    """
    state = _population_state(session, run_id)
    count = partial(_count_population, session, run_id)
    return dict(kept(session, "population", run_id, state, count))


def _population_state(session: Session, run_id: int) -> tuple[object, ...]:
    """What changes whenever the population does: the outcomes of the run's groups, the models'
    answers of all runs (of this one's alone they would have to be read), the newest item."""
    outcome = (Group.verdict, Group.drop_reason)
    groups = session.execute(
        select(*outcome, func.count(), func.sum(Group.id))
        .where(Group.run_id == run_id, Group.verdict.is_not(None))
        .group_by(*outcome)
        .order_by(*outcome)
    )
    models = select(Judge.id).where(Judge.kind == "model")
    number, last = session.execute(
        select(func.count(), func.max(Judgment.id)).where(
            Judgment.study_id.is_(None), Judgment.judge_id.in_(models)
        )
    ).one()
    # a restored store may have as many, with the same numbers
    event_id = session.scalar(select(Judgment.event_id).where(Judgment.id == last))
    newest = session.scalar(select(func.max(Item.id)))
    return newest, number, last, event_id, *(tuple(row) for row in groups)


def _count_population(session: Session, run_id: int) -> dict[ItemKind, int]:
    """Counted where the items are stored: a large run has hundreds of thousands, of which
    `run_item_kinds` would make as many rows here. The items of a group become one text, since few
    of them differ.
    """
    choice = _answered(run_id)
    fields = (Item.scenario, func.coalesce(Item.expected, ""), func.coalesce(choice, ""))
    of_item = fields[0] + FIELD_END + fields[1] + FIELD_END + fields[2]
    of_group = (
        select(Item.group_id, func.aggregate_strings(of_item, ITEM_END).label("items"))
        .join(Group, Group.id == Item.group_id)
        .where(Group.run_id == run_id, Group.verdict.is_not(None), Item.revision == 1, is_pick())
        .group_by(Item.group_id)
        .subquery()
    )
    kinds = (
        select(
            Group.verdict,
            func.coalesce(pair_source(), "").label("source"),
            func.coalesce(Group.drop_reason, "").label("drop_reason"),
            of_group.c["items"],
        )
        .select_from(of_group)
        .join(Group, Group.id == of_group.c.group_id)
        .join(Pair, Pair.id == Group.pair_id)
        .join(Dataset, Dataset.id == Pair.dataset_id)
        .subquery()
    )
    counted = select(*kinds.c, func.count()).group_by(*kinds.c)
    found: dict[ItemKind, int] = defaultdict(int)
    rows: Iterable[Any] = session.execute(counted)
    for verdict, source, reason, items, number in rows:
        answered = [each.split(FIELD_END) for each in items.split(ITEM_END)]
        missed = sum(label != expected for _, expected, label in answered)
        is_known = all(label for _, _, label in answered)
        for scenario, expected, label in answered:
            kind = ItemKind(
                str(verdict),
                source,
                reason,
                scenario,
                label == expected if label else None,
                missed if is_known else None,
                expected or None,
            )
            found[kind] += number
    return dict(found)


def used_item_ids(session: Session, study_id: int) -> list[int]:
    """The study's items, qualification and gold items too, in their order."""
    query = select(StudyItem.item_id).where(StudyItem.study_id == study_id)
    return list(session.scalars(query.order_by(StudyItem.position)))


def queue_item_ids(session: Session, study_id: int) -> list[int]:
    """The items that the study asks about: without qualification and gold items."""
    query = select(StudyItem.item_id).where(StudyItem.study_id == study_id)
    return list(session.scalars(query.where(StudyItem.part == "main")))


def decided_items(session: Session, study_id: int) -> dict[int, str]:
    """The adjudicated choice by item of the study."""
    query = (
        select(Judgment.item_id, Judgment.choice)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Judgment.study_id == study_id, Judgment.is_current, Judge.kind == "adjudicator")
    )
    return dict(session.execute(query).all())


def estimate_state(session: Session, study_id: int) -> EstimateState:
    """The decisions and verdicts that estimates about a study's run depend on.

    They depend on its judgments, too: `judgment_state`. Raises NotFound.
    """
    run_id = get_study(session, study_id).run_id
    decisions = session.execute(
        select(func.count(), func.coalesce(func.max(Judgment.id), 0))
        .select_from(Judgment)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Judgment.study_id == study_id, Judgment.is_current, Judge.kind == "adjudicator")
    ).one()
    verdicts = session.execute(
        select(Group.verdict, func.count(), func.sum(Group.id))
        .where(Group.run_id == run_id, Group.verdict.is_not(None))
        .group_by(Group.verdict)
        .order_by(Group.verdict)
    ).all()
    return EstimateState(*decisions, tuple(tuple(row) for row in verdicts))


def judged_items(
    kinds: Mapping[int, tuple[int, ItemKind]],
    rows: Iterable[JudgmentRow],
    decided: Mapping[int, str] | None = None,
) -> list[JudgedItem]:
    """The items with the verdict of people, by item. Pure.

    `rows` are those of people only. A decision of an adjudicator counts; else what more than half
    of the people chose, and a half where they are split evenly between the passage and others.
    """
    decided = decided or {}
    votes: dict[int, list[str]] = defaultdict(list)
    for row in rows:
        votes[row.item_id].append(row.label)
    found = []
    for item_id in sorted(votes.keys() | decided.keys()):
        if item_id not in kinds:
            continue
        group_id, kind = kinds[item_id]
        choices = [decided[item_id]] if item_id in decided else votes[item_id]
        share = sum(choice == kind.expected for choice in choices) / len(choices)
        value = 0.5 if share == 0.5 else float(share > 0.5)
        found.append(JudgedItem(item_id, group_id, kind, value))
    return found
