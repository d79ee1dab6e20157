"""Adjudication: items on which people disagree, with all answers; the decision is a judgment of its
own, by an adjudicator, which agreement leaves out.
"""

import uuid
from collections import Counter, defaultdict
from collections.abc import Sequence, Set
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session

from db.corpus.texts import passage_texts
from db.errors import BadInput, NotFound, Refused
from db.events import record_event
from db.question import Question
from db.run.new_items import questions_of
from db.study.judgments import (
    ADJUDICATOR,
    current_judgment,
    find_judgment,
    get_or_create_judge,
    record_judgment,
    remarks,
)
from db.study.speed import seconds_taken, too_fast_limit
from db.tables import Assignment, Item, Judge, Judgment, StudyItem

SEPARATOR = ","  # not in any label: see `db.values`
CHUNK = 5000


@dataclass(frozen=True)
class JudgeAnswer:
    """One judge's answer on an item."""

    judge: str
    kind: str
    simulated: bool
    choice: str
    note: str
    flagged: bool
    seconds: float | None
    too_fast: bool = False
    reason: str = ""


@dataclass(frozen=True)
class Disputed:
    """An item with all its answers, and the decision if there is one."""

    item_id: int
    scenario: str
    instruction: str
    query: str
    candidates: tuple[tuple[str, str], ...]
    question: Question
    answers: tuple[JudgeAnswer, ...]
    skips: tuple[JudgeAnswer, ...]
    decision: str | None
    decision_note: str
    decided_by: str = field(default="")


def disputed_ids(
    session: Session,
    study_id: int,
    *,
    open_only: bool = False,
    include_agreed: bool = False,
    also: Set[int] = frozenset(),
    named: int | None = None,
) -> list[int]:
    """Items of the study by disagreement of people (simulated ones too), most disputed first.

    Items on which all agree come last; without `include_agreed` only flagged or noted ones, the
    `named` one, and those in `also`, judged or not.
    """
    remarked = {one.item_id for one in remarks(session, study_id)} | also | {named or 0}
    left_out = set(
        session.scalars(
            select(StudyItem.item_id).where(
                StudyItem.study_id == study_id, StudyItem.part.in_(("training", "gold"))
            )
        )
    )
    if open_only:
        left_out |= decided_ids(session, study_id)
    share = {
        item_id: _largest_share(Counter(choices.split(SEPARATOR)))
        for item_id, choices in session.execute(_split_items(session, study_id))
    }
    agreed = _judged_ids(session, study_id, None if include_agreed else remarked) - share.keys()
    share |= dict.fromkeys((agreed & remarked) | (also - share.keys()), 1.0)
    disputed = sorted(
        share.keys() - left_out,
        key=lambda item_id: (share[item_id], item_id not in remarked, item_id),
    )
    return disputed + sorted(agreed - remarked - left_out)


def get_disputed(session: Session, study_id: int, item_id: int) -> Disputed:
    """An item of the study with all its answers and the decision. Raises NotFound."""
    return disputed_items(session, study_id, [item_id])[0]


def disputed_items(session: Session, study_id: int, ids: Sequence[int]) -> list[Disputed]:
    """Items of the study, in this order, with their answers and decisions: some queries for all.

    Raises NotFound.
    """
    _require_in_study(session, study_id, *ids)
    items = {item.id: item for item in session.scalars(select(Item).where(Item.id.in_(ids)))}
    questions = questions_of(session, items.values())
    texts = passage_texts(
        session, {each["passage_id"] for item in items.values() for each in item.candidates}
    )
    fastest = too_fast_limit(session, study_id)
    answers: dict[int, list[JudgeAnswer]] = defaultdict(list)
    decisions: dict[int, tuple[str, str, str]] = {}
    rows = session.execute(
        select(Judgment, Judge)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Judgment.item_id.in_(ids), Judgment.is_current)
        .order_by(Judge.kind.desc(), Judge.name)
    )
    for judgment, judge in rows:
        if judge.kind == "adjudicator":
            if judgment.study_id == study_id:
                name = judge.name.removeprefix(ADJUDICATOR)
                decisions[judgment.item_id] = judgment.choice, judgment.note, name
            continue
        seconds = seconds_taken(judgment.shown_at, judgment.decided_at)
        answers[judgment.item_id].append(
            JudgeAnswer(
                judge=judge.name,
                kind=judge.kind,
                simulated=judge.simulated,
                choice=judgment.choice,
                note=judgment.note,
                flagged=judgment.flagged,
                seconds=seconds,
                too_fast=judge.kind == "person" and seconds is not None and seconds < fastest,
                reason=judgment.reason,
            )
        )
    skips = _skips(session, study_id, ids)
    found = []
    for item in map(items.__getitem__, ids):
        decision, note, by = decisions.get(item.id, (None, "", ""))
        found.append(
            Disputed(
                item_id=item.id,
                scenario=item.scenario,
                instruction=item.instruction,
                query=item.query,
                candidates=tuple(
                    (each["label"], texts[each["passage_id"]]) for each in item.candidates
                ),
                question=questions[item.question_id],
                answers=tuple(answers[item.id]),
                skips=tuple(skips[item.id]),
                decision=decision,
                decision_note=note,
                decided_by=by,
            )
        )
    return found


def adjudicate(
    session: Session,
    study_id: int,
    item_id: int,
    choice: str,
    *,
    by: str,
    note: str = "",
    order_shown: Sequence[str] = (),
    revealed: bool = True,
    event_id: str = "",
    change: bool = True,
    shown_at: datetime | None = None,
    decided_at: datetime | None = None,
) -> Judgment:
    """Store the decision on an item; earlier decisions are kept, but no longer current.

    `revealed`: whether the adjudicator knew the roles; `order_shown`: the order of the candidates,
    by default that of the item (pages: `db.study.blind_adjudication`). The same decision again
    stores nothing new; one of a card, with an `event_id`, is stored once, however often it arrives.
    Raises NotFound for an item that is not in the study, BadInput if the choice is not one of its
    candidates, Refused without `change` where the item is decided. Does not commit.
    """
    if not by.strip():
        raise BadInput("a decision needs the name of the adjudicator", code="adjudicator_missing")
    _require_in_study(session, study_id, item_id)
    judge = get_or_create_judge(session, ADJUDICATOR + by, kind="adjudicator")
    known = find_judgment(session, event_id) if event_id else None
    if known is not None:  # before others' later decisions: it replaced those that it found
        return known
    before = current_judgment(session, judge.id, item_id)
    if not event_id and before is not None and (before.choice, before.note) == (choice, note):
        return before
    others = session.scalars(
        select(Judgment)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(
            Judgment.item_id == item_id,
            Judgment.study_id == study_id,
            Judgment.is_current,
            Judge.kind == "adjudicator",
            Judge.id != judge.id,
        )
    ).all()
    is_decided = bool(others) or (before is not None and before.study_id == study_id)
    if is_decided and not change:
        raise Refused(
            "this item was decided meanwhile, by another adjudicator or in another tab: that "
            "decision stands",
            "go back to it to change it",
            code="decided_already",
        )
    for other in others:
        other.is_current = False
    item = session.get_one(Item, item_id)
    record_event(session, by, "study.adjudicate", study_id, item=item_id, choice=choice)
    return record_judgment(
        session,
        judge_id=judge.id,
        item_id=item_id,
        choice=choice,
        order_shown=order_shown or [entry["label"] for entry in item.candidates],
        event_id=event_id or f"adjudication:{uuid.uuid4().hex}",
        study_id=study_id,
        shown_at=shown_at,
        decided_at=decided_at,
        note=note,
        detail={"revealed": revealed},
    )


def _by_people(session: Session, study_id: int) -> list[ColumnElement[bool]]:
    """Current judgments of the study by people, as exclusion of the few other judges' ids."""
    others = list(session.scalars(select(Judge.id).where(Judge.kind != "person")))
    found = [Judgment.study_id == study_id, Judgment.is_current.is_(True)]
    return [*found, Judgment.judge_id.not_in(others)] if others else found


def _split_items(session: Session, study_id: int) -> Select[int, str]:
    """Items on which people differ, with all their choices: one pass over a covering index."""
    return (
        select(Judgment.item_id, func.aggregate_strings(Judgment.choice, SEPARATOR))
        .where(*_by_people(session, study_id))
        .group_by(Judgment.item_id)
        .having(func.min(Judgment.choice) != func.max(Judgment.choice))
    )


def _judged_ids(session: Session, study_id: int, among: Set[int] | None) -> set[int]:
    """Items that people have judged: all, or only those in `among`."""
    judged = select(Judgment.item_id).where(*_by_people(session, study_id)).distinct()
    if among is None:
        return set(session.scalars(judged))
    ids = sorted(among)
    return {
        item_id
        for start in range(0, len(ids), CHUNK)
        for item_id in session.scalars(
            judged.where(Judgment.item_id.in_(ids[start : start + CHUNK]))
        )
    }


def is_judged(session: Session, study_id: int) -> bool:
    """Whether a person has judged an item of the study, assigned or imported."""
    found = select(Judgment.id).where(*_by_people(session, study_id)).limit(1)
    return session.scalar(found) is not None


def is_disputed(session: Session, study_id: int) -> bool:
    """Whether people have chosen differently on an item of the study."""
    return session.execute(_split_items(session, study_id).limit(1)).first() is not None


def decided_ids(session: Session, study_id: int) -> set[int]:
    """The items of the study that an adjudicator has decided."""
    judges = list(session.scalars(select(Judge.id).where(Judge.kind == "adjudicator")))
    return set(
        session.scalars(
            select(Judgment.item_id).where(
                Judgment.study_id == study_id, Judgment.is_current, Judgment.judge_id.in_(judges)
            )
        )
    )


def _largest_share(votes: Counter[str]) -> float:
    """The share of the most frequent answer: 1 where all agree."""
    return max(votes.values()) / votes.total()


def _skips(session: Session, study_id: int, ids: Sequence[int]) -> dict[int, list[JudgeAnswer]]:
    rows = session.execute(
        select(Assignment, Judge)
        .join(Judge, Judge.id == Assignment.judge_id)
        .where(
            Assignment.study_id == study_id,
            Assignment.item_id.in_(ids),
            Assignment.state == "skipped",
        )
        .order_by(Judge.name)
    )
    found: dict[int, list[JudgeAnswer]] = defaultdict(list)
    for skip, judge in rows:
        who = (judge.name, judge.kind, judge.simulated)
        found[skip.item_id].append(
            JudgeAnswer(*who, "skipped", skip.note, skip.flagged, None, reason=skip.reason)
        )
    return found


def _require_in_study(session: Session, study_id: int, *ids: int) -> None:
    query = select(StudyItem.item_id).where(StudyItem.study_id == study_id)
    known = set(session.scalars(query.where(StudyItem.item_id.in_(ids))))
    for item_id in ids:
        if item_id not in known:
            raise NotFound(
                f"item {item_id} is not in study {study_id}",
                f"`studies disagreements {study_id}` lists its items",
                code="item_not_in_study",
            )
