"""Judges and their judgments: append-only, one current judgment per judge and item.

Note: a decision that arrives twice (the same `event_id`) returns the stored row and changes
nothing, so that an outbox may send again whatever was not confirmed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import computed_field
from sqlalchemy import (
    ColumnElement,
    Select,
    String,
    and_,
    exists,
    func,
    insert,
    literal,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, Session

from db.errors import BadInput, NotFound, Refused
from db.names import PERSON_SUFFIX
from db.rows import Json, Row
from db.run.new_items import question_of
from db.tables import CountedJudgment, Group, Item, Judge, Judgment, Question, StudyItem, utc_now

ADJUDICATOR = "adjudicator:"
STREAMED = 5000  # rows read at once


@dataclass(frozen=True)
class JudgmentRow:
    """One current judgment as agreement reads it."""

    item_id: int
    judge: str
    kind: str
    label: str
    simulated: bool
    offline: bool
    decided_at: datetime


class ListedJudgment(Row):
    """A judgment in a list; `choice`: a candidate's label, "none" or "ambiguous"."""

    id: int
    item_id: int
    judge_id: int
    judge: str
    kind: str
    simulated: bool
    offline: bool
    choice: str
    note: str
    flagged: bool
    reason: str
    shown_at: datetime | None
    decided_at: datetime

    @computed_field  # type: ignore[prop-decorator]
    @property
    def name(self) -> str:
        """Whose it is, of which item."""
        return f"{self.judge} on item {self.item_id}"


class JudgmentShown(ListedJudgment):
    """A judgment with the order of its candidates, where it was given, and what its judge kept.

    `replaces_id`: the answer that it changed; `is_current`: none has changed it.
    """

    study_id: int | None
    run_id: int | None
    scenario: str
    order_shown: tuple[str, ...]
    replaces_id: int | None
    is_current: bool
    detail: Json


@dataclass(frozen=True)
class JudgmentState:
    """Count and age of the judgments that agreement reads: it changes whenever one of them does."""

    judgments: int
    last_id: int
    last_at: datetime | None


def get_or_create_judge(
    session: Session,
    name: str,
    *,
    kind: str,
    provider: str = "",
    model: str = "",
    offline: bool = False,
    simulated: bool = False,
    account_id: int | None = None,
) -> Judge:
    """The judge, created if missing: a person with an account by it, any other by kind and name.

    A machine's judge (a model, a simulated judge, an adjudicator) always has its own name. A person
    whose account has that name, which stores of earlier versions allowed, is shown with
    PERSON_SUFFIX instead. Raises Refused where a person without an account, of an imported file,
    would answer under another judge's name. Does not commit.
    """
    if account_id is not None:
        judge = session.scalar(select(Judge).where(Judge.account_id == account_id))
        if judge is not None:
            return judge
    holder = session.scalar(select(Judge).where(Judge.name == name))
    if holder is not None:
        found = (holder.kind, holder.offline, holder.simulated, holder.account_id)
        if account_id is None and found == (kind, offline, simulated, None):
            return holder
        if _is_machine(kind, simulated) and not _is_machine(holder.kind, holder.simulated):
            holder.name += PERSON_SUFFIX
            session.flush()
        elif account_id is not None and _is_machine(holder.kind, holder.simulated):
            name += PERSON_SUFFIX
        else:
            raise Refused(
                f"the name {name!r} is taken by another judge ({holder.kind})",
                "choose another name",
                code="judge_name_taken",
                name=name,
            )
    judge = Judge(
        name=name,
        kind=kind,
        provider=provider,
        model=model,
        offline=offline,
        simulated=simulated,
        account_id=account_id,
    )
    session.add(judge)
    session.flush()
    return judge


def _is_machine(kind: str, simulated: bool) -> bool:
    return kind != "person" or simulated


def of_person(person: str | ColumnElement[str]) -> ColumnElement[bool]:
    """A condition on a query's own judge: it is this person's, not a machine of that name."""
    names = (person, literal(person, String) + PERSON_SUFFIX)
    return and_(Judge.name.in_(names), Judge.kind == "person", Judge.simulated.is_(False))


def own_judge_id(session: Session, person: str, account_id: int | None) -> int | None:
    """The id of a person's judge, by the account (the local admin has none); None before it is.

    Their judge may go by another name: PERSON_SUFFIX.
    """
    is_own = of_person(person) if account_id is None else Judge.account_id == account_id
    return session.scalar(select(Judge.id).where(is_own))


def find_judgment(session: Session, event_id: str) -> Judgment | None:
    """The judgment stored for an event, None if it never arrived."""
    return session.scalar(select(Judgment).where(Judgment.event_id == event_id))


def has_judged(judge_id: int, item_id: InstrumentedAttribute[int]) -> ColumnElement[bool]:
    """A condition on a query's own item: the judge has a current judgment on it."""
    return exists(
        select(Judgment.id).where(
            Judgment.item_id == item_id, Judgment.judge_id == judge_id, Judgment.is_current
        )
    )


def current_judgment(session: Session, judge_id: int, item_id: int) -> Judgment | None:
    """The judge's current judgment on the item."""
    return session.scalar(
        select(Judgment).where(
            Judgment.judge_id == judge_id, Judgment.item_id == item_id, Judgment.is_current
        )
    )


def record_judgment(
    session: Session,
    *,
    judge_id: int,
    item_id: int,
    choice: str,
    order_shown: Sequence[str],
    event_id: str,
    study_id: int | None = None,
    run_id: int | None = None,
    guideline_id: int | None = None,
    shown_at: datetime | None = None,
    decided_at: datetime | None = None,
    note: str = "",
    detail: dict[str, Any] | None = None,
) -> Judgment:
    """Store a decision; the judge's earlier one on the item is kept, but no longer current.

    Idempotent by `event_id`. Raises NotFound for an unknown item, BadInput if the choice is not a
    candidate of the item or the order is not one of its candidates, Refused if the event is stored
    for another judge or item. Does not check leases: see `db.study.assignments.submit_decision`.
    Does not commit.
    """
    known = find_judgment(session, event_id)
    if known is not None:
        if (known.judge_id, known.item_id) != (judge_id, item_id):
            raise Refused(
                f"event {event_id!r} is stored for another judge or item", code="event_taken"
            )
        return known
    item = _existing_item(session, item_id)
    judgment = Judgment(
        event_id=event_id,
        judge_id=judge_id,
        item_id=item_id,
        study_id=study_id,
        run_id=run_id,
        guideline_id=guideline_id,
        choice=choice,
        order_shown=list(order_shown),
        shown_at=shown_at,
        decided_at=decided_at or utc_now(),
        note=note,
        detail=detail or {},
    )
    earlier = current_judgment(session, judge_id, item_id)
    add_judgment(session, judgment, item=item, earlier=earlier)
    return judgment


def _existing_item(session: Session, item_id: int) -> Item:
    item = session.get(Item, item_id)
    if item is None:
        raise NotFound(f"no item {item_id}", code="item_unknown")
    return item


def add_judgment(
    session: Session, judgment: Judgment, *, item: Item, earlier: Judgment | None
) -> None:
    """Store a new judgment in place of the judge's current one on the item, if any.

    For who has read both already, and that the event is new; raises BadInput as `record_judgment`
    does. Does not commit.
    """
    check_choice(session, item, judgment.choice, judgment.order_shown)
    if earlier is not None:
        session.execute(update(Judgment).where(Judgment.id == earlier.id).values(is_current=False))
        judgment.replaces_id = earlier.id
    session.add(judgment)
    session.flush()


def check_choice(session: Session, item: Item, choice: str, order_shown: Sequence[str]) -> None:
    """Raise BadInput if the choice is no answer to the item's question, or the order is not one of
    its candidates."""
    labels = [candidate["label"] for candidate in item.candidates]
    question_of(session, item).check(choice, labels, f"item {item.id}")
    if sorted(order_shown) != sorted(labels):
        raise BadInput(
            f"the order shown is not an order of the candidates of item {item.id}",
            code="order_shown_invalid",
        )


@dataclass(frozen=True)
class Remark:
    """A current judgment with a note or a flag."""

    judge_id: int
    item_id: int
    note: str
    flagged: bool


def remarks(session: Session, study_id: int) -> list[Remark]:
    """The current judgments of a study that have a note or a flag."""
    query = select(
        Judgment.judge_id, Judgment.item_id, Judgment.note, Judgment.flagged, Judgment.is_current
    ).where(
        Judgment.study_id == study_id,
        text("(judgment.note <> '' OR judgment.flagged)"),  # exactly the partial index's condition
    )
    return [Remark(*row[:4]) for row in session.execute(query) if row.is_current]


def judgment_frame(session: Session, study_id: int) -> list[JudgmentRow]:
    """Every current judgment that counts in a study, by item and judge: the input of agreement.

    A judgment counts where it was given: in this study, or in its queue by a program that had
    answered the item before (`count_known`). Models also count with what they answered outside of
    studies, of a whole run: the run's validator and second judges. Qualification and gold items are
    left out, and so are adjudicators, who saw others' answers.
    """
    return list(stream_judgments(session, study_id))


def stream_judgments(session: Session, study_id: int) -> Iterator[JudgmentRow]:
    """`judgment_frame` row by row: of a million judgments, `STREAMED` are in memory."""
    query = judgments_that_count(
        study_id,
        Judgment.item_id,
        Judge.name,
        Judge.kind,
        Judgment.choice,
        Judge.simulated,
        Judge.offline,
        Judgment.decided_at,
    ).order_by(Judgment.item_id, Judge.name)
    rows = session.execute(query.execution_options(yield_per=STREAMED))
    return (JudgmentRow(*row) for row in rows)


def judgment_state(session: Session, study_id: int) -> JudgmentState:
    """How many judgments `judgment_frame` reads, the newest of them, and its time."""
    query = judgments_that_count(
        study_id, func.count(), func.max(Judgment.id), func.max(Judgment.decided_at)
    )
    judgments, last_id, last_at = session.execute(query).one()
    return JudgmentState(judgments, last_id or 0, last_at)


def list_judgments(
    session: Session,
    study_id: int,
    *,
    without: Select[int] | None = None,
    after: int = 0,
    limit: int = 100,
) -> tuple[list[ListedJudgment], int]:
    """Judgments as `judgment_frame` counts them, by id, and how many there are in all.

    after: an id, those behind it; without: a query of items whose judgments are left out.
    """
    seen = true() if without is None else Judgment.item_id.not_in(without)
    query = judgments_that_count(study_id, *_LISTED).where(seen, Judgment.id > after)
    rows = session.execute(query.order_by(Judgment.id).limit(limit))
    total = session.scalar(judgments_that_count(study_id, func.count()).where(seen)) or 0
    return [ListedJudgment.model_validate(row) for row in rows], total


def find_shown(session: Session, judgment_id: int) -> JudgmentShown | None:
    """One judgment, also one that was changed since; None where there is none."""
    more = (name for name in JudgmentShown.model_fields if name not in ListedJudgment.model_fields)
    columns = [Item.scenario if name == "scenario" else getattr(Judgment, name) for name in more]
    query = (
        select(*_LISTED, *columns)
        .join(Judge, Judge.id == Judgment.judge_id)
        .join(Item, Item.id == Judgment.item_id)
        .join(Group, Group.id == Item.group_id)  # the scope of the session is on groups
        .where(Judgment.id == judgment_id)
    )
    found = session.execute(query).one_or_none()
    return None if found is None else JudgmentShown.model_validate(found)


_LISTED = (
    Judgment.id,
    Judgment.item_id,
    Judgment.judge_id,
    Judge.name.label("judge"),
    Judge.kind,
    Judge.simulated,
    Judge.offline,
    Judgment.choice,
    Judgment.note,
    Judgment.flagged,
    Judgment.reason,
    Judgment.shown_at,
    Judgment.decided_at,
)


def items_of_two_judges(session: Session, study_id: int, *, people: bool = False) -> set[int]:
    """The items with judgments of two judges or more, as `judgment_frame` counts them; `people`:
    of two persons."""
    query = judgments_that_count(study_id, Judgment.item_id)
    if people:
        query = query.where(Judge.kind == "person")
    several = func.count(Judgment.judge_id.distinct()) > 1
    return set(session.scalars(query.group_by(Judgment.item_id).having(several)))


def judgments_that_count(study_id: int, *columns: Any) -> Select[Any]:
    """A query of these columns over the judgments of a study that agreement counts.

    See `judgment_frame`.
    """
    counted = exists().where(
        CountedJudgment.study_id == study_id, CountedJudgment.judgment_id == Judgment.id
    )
    of_a_run = and_(Judge.kind == "model", Judgment.study_id.is_(None))
    return (
        select(*columns)
        .select_from(Judgment)
        .join(Judge, Judge.id == Judgment.judge_id)
        .join(
            StudyItem,
            and_(StudyItem.item_id == Judgment.item_id, StudyItem.study_id == study_id),
        )
        .where(
            StudyItem.part == "main",
            Judgment.is_current,
            Judge.kind != "adjudicator",
            or_(Judgment.study_id == study_id, of_a_run, counted),
        )
    )


def count_choices(
    session: Session,
    study_id: int,
    judges: tuple[str, str],
    *,
    question: str = "",
    without: Select[int] | None = None,
) -> dict[tuple[str, str], int]:
    """How often two judges of a study gave each pair of answers to an item of both.

    question: the name of one of several; without: the ids of items that are left out.
    """
    first, second = (
        judgments_that_count(study_id, Judgment.item_id, Judgment.choice)
        .where(Judge.name == name)
        .subquery()
        for name in judges
    )
    query = (
        select(first.c.choice, second.c.choice, func.count())
        .join(second, second.c.item_id == first.c.item_id)
        .group_by(first.c.choice, second.c.choice)
    )
    if question:
        of_question = select(Item.id).join(Question).where(Question.name == question)
        query = query.where(first.c.item_id.in_(of_question))
    if without is not None:
        query = query.where(first.c.item_id.not_in(without))
    return {(one, other): number for one, other, number in session.execute(query)}


def count_known(session: Session, study_id: int, judge_id: int) -> None:
    """Let a program's earlier answers on a study's items, given elsewhere, count in it.

    For a program that went through the whole queue: answers of part of it, chosen by another study,
    would be no sample. Does not commit.
    """
    known = (
        select(StudyItem.study_id, Judgment.id)
        .join(Judgment, Judgment.item_id == StudyItem.item_id)
        .where(
            StudyItem.study_id == study_id,
            StudyItem.part == "main",
            Judgment.judge_id == judge_id,
            Judgment.is_current,
            or_(Judgment.study_id.is_(None), Judgment.study_id != study_id),
            ~exists().where(
                CountedJudgment.study_id == study_id, CountedJudgment.judgment_id == Judgment.id
            ),
        )
    )
    session.execute(insert(CountedJudgment).from_select(["study_id", "judgment_id"], known))
