"""Who judges which item of a study: leases, decisions, skips, with exactly the requested overlap.

A lease holds a place of an item (`study_item.taken`) for ten idle minutes; any action of the judge
in the study renews it. An expired lease returns its place when another judge requests an item.
Every change of places happens under a lock on the study's row, so that two people never get the
last place; the check on `study_item` enforces it again.

Note: a decision names a *position on the screen*, never a label. The assignment stores which
candidate was there: the browser never receives a role. A decision that arrives after its place was
taken by another judge is stored with state `aside`, and not counted.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import ColumnElement, Select, and_, exists, func, or_, select, update
from sqlalchemy.orm import Session, aliased

from db.errors import BadInput, Refused
from db.study.judgments import ADJUDICATOR, find_judgment, record_judgment
from db.study.studies import current_guideline, get_study
from db.tables import (
    Assignment,
    Item,
    Judge,
    Judgment,
    Passage,
    Review,
    Study,
    StudyItem,
    StudyJudge,
    utc_now,
)
from db.values import NONE

LEASE = timedelta(minutes=10)
GOLD_EVERY = 10
GOLD_SEEN = 3
GOLD_THRESHOLD = 0.7


@dataclass(frozen=True)
class ShownItem:
    """An item as shown to a judge: texts only, candidates in this judge's own order."""

    study_id: int
    item_id: int
    instruction: str
    query: str
    candidates: tuple[str, ...]


@dataclass(frozen=True)
class Decision:
    """A decision on a shown item; `position` None is "none of them"."""

    event_id: str
    item_id: int
    position: int | None
    shown_at: datetime | None = None
    decided_at: datetime | None = None
    note: str = ""
    flagged: bool = False
    change: bool = False


@dataclass(frozen=True)
class OwnProgress:
    """One judge's progress: answered, skipped, still open, and the pace."""

    done: int
    skipped: int
    left: int
    seconds_per_item: float | None


def next_item(
    session: Session, study_id: int, judge_id: int, *, now: datetime | None = None
) -> ShownItem | None:
    """The item this judge should answer now, None if nothing is left for them.

    The same item is returned until it is answered or skipped. Raises Refused if the study is
    paused or closed. Does not commit.
    """
    items = lease_items(session, study_id, judge_id, 1, now=now)
    return items[0] if items else None


def lease_items(
    session: Session, study_id: int, judge_id: int, count: int, *, now: datetime | None = None
) -> list[ShownItem]:
    """Up to `count` items leased to this judge, the oldest lease first; renews all their leases.

    Raises Refused if the study is paused or closed, the judge is paused in it, or has not passed
    its qualification. Does not commit.
    """
    now = now or utc_now()
    study = lock_study(session, study_id)
    if study.status != "open":
        raise Refused(f"the study {study.name!r} is {study.status}: nothing can be judged in it")
    member = membership(session, study_id, judge_id)
    if member.state == "paused":
        raise Refused(f"you are paused in this study: {member.reason}")
    if member.passed_at is None and has_part(session, study_id, "training"):
        raise Refused("the qualification comes first")
    _release_expired(session, study_id, judge_id, now)
    held = list(
        session.scalars(
            _own(study_id, judge_id).where(Assignment.state == "leased").order_by(Assignment.id)
        )
    )
    for assignment in held:
        assignment.lease_until = now + LEASE
    if len(held) < count:
        held += _lease_new(session, study_id, judge_id, count - len(held), now)
    session.flush()
    return [show(session, assignment) for assignment in held[:count]]


def show(session: Session, assignment: Assignment) -> ShownItem:
    """The item of an assignment as its judge sees it: no labels, no passage ids."""
    item = session.get_one(Item, assignment.item_id)
    return show_item(session, assignment.study_id, item, assignment.order_shown)


def show_item(session: Session, study_id: int, item: Item, order_shown: Sequence[str]) -> ShownItem:
    """The item with its candidates in the given order of labels: texts only."""
    passage_ids = {entry["label"]: entry["passage_id"] for entry in item.candidates}
    texts = dict(
        session.execute(
            select(Passage.id, Passage.text).where(Passage.id.in_(list(passage_ids.values())))
        ).all()
    )
    return ShownItem(
        study_id=study_id,
        item_id=item.id,
        instruction=item.instruction,
        query=item.query,
        candidates=tuple(texts[passage_ids[label]] for label in order_shown),
    )


def submit_decision(
    session: Session,
    study_id: int,
    judge_id: int,
    decision: Decision,
    *,
    now: datetime | None = None,
) -> Judgment:
    """Store a judge's decision on an item leased to them. Idempotent by the event id.

    Raises Refused if the study is closed, the item was never leased to this judge, or it was
    answered already (unless `decision.change`); BadInput for a position that does not exist. Does
    not commit.
    """
    now = now or utc_now()
    study = lock_study(session, study_id)
    known = find_judgment(session, decision.event_id)
    if known is not None:
        if (known.judge_id, known.item_id) != (judge_id, decision.item_id):
            raise Refused(f"event {decision.event_id!r} is stored for another judge or item")
        return known
    assignment = _assignment(session, study_id, judge_id, decision.item_id)
    if study.status == "closed":
        raise Refused(f"the study {study.name!r} is closed: the answer was not stored")
    if assignment.state in ("done", "aside") and not decision.change:
        raise Refused("this item was answered already (in another tab?): the first answer stands")
    counts = assignment.state == "done" or _keep_place(session, assignment)
    shown_at, decided_at = _server_times(decision, now)
    judgment = record_judgment(
        session,
        judge_id=judge_id,
        item_id=assignment.item_id,
        choice=_label(assignment.order_shown, decision.position),
        order_shown=assignment.order_shown,
        event_id=decision.event_id,
        study_id=study_id if counts else None,
        guideline_id=current_guideline(session, study_id).id,
        shown_at=shown_at,
        decided_at=decided_at,
        note=decision.note,
        flagged=decision.flagged,
        detail={} if counts else {"aside_in_study": study_id},
    )
    assignment.state = "done" if counts else "aside"
    assignment.lease_until = None
    session.flush()
    _pause_on_failed_gold(session, study, judge_id, assignment.item_id)
    return judgment


def skip_item(
    session: Session,
    study_id: int,
    judge_id: int,
    item_id: int,
    *,
    note: str = "",
    flagged: bool = False,
) -> bool:
    """Return a leased item to the queue; this judge does not see it again.

    Skipping twice is skipping once; an answered item stays answered. Returns whether the item is
    skipped now. Raises Refused if it was never leased to them. Does not commit.
    """
    study = lock_study(session, study_id)
    assignment = _assignment(session, study_id, judge_id, item_id)
    if assignment.state in ("done", "aside"):
        return False
    if study.status == "closed":
        raise Refused(f"the study {study.name!r} is closed")
    if assignment.state == "leased":
        change_taken(session, study_id, item_id, -1)
    assignment.state, assignment.lease_until = "skipped", None
    assignment.note, assignment.flagged = note, flagged
    session.flush()
    return True


def own_progress(session: Session, study_id: int, judge_id: int) -> OwnProgress:
    """A judge's progress in a study; the pace is the median of seconds from shown to decided.

    `left` counts every item with a free place that they were not given: an upper bound, since
    items of groups they reviewed, or judged in another study, are never given to them.
    """
    states = dict(
        session.execute(
            select(Assignment.state, func.count())
            .where(Assignment.study_id == study_id, Assignment.judge_id == judge_id)
            .group_by(Assignment.state)
        ).all()
    )
    free = (
        select(func.count())
        .select_from(StudyItem)
        .where(
            StudyItem.study_id == study_id,
            StudyItem.part == "main",
            StudyItem.taken < StudyItem.places,
        )
    )
    mine = free.join(
        Assignment,
        and_(
            Assignment.study_id == StudyItem.study_id,
            Assignment.item_id == StudyItem.item_id,
            Assignment.judge_id == judge_id,
            Assignment.state != "expired",
        ),
    )
    open_to_me = (session.scalar(free) or 0) - (session.scalar(mine) or 0)
    times = session.execute(
        select(Judgment.shown_at, Judgment.decided_at)
        .where(
            Judgment.study_id == study_id,
            Judgment.judge_id == judge_id,
            Judgment.shown_at.is_not(None),
        )
        .order_by(Judgment.id.desc())
        .limit(50)
    )
    seconds = sorted((decided - shown).total_seconds() for shown, decided in times if shown)
    return OwnProgress(
        done=states.get("done", 0),
        skipped=states.get("skipped", 0),
        left=open_to_me + states.get("leased", 0),
        seconds_per_item=seconds[len(seconds) // 2] if seconds else None,
    )


def lock_study(session: Session, study_id: int, *, lock: bool = True) -> Study:
    """The study, with a row lock (PostgreSQL; on SQLite a writing session is alone anyway)."""
    study = get_study(session, study_id)
    if not lock:
        return study
    query = select(Study).where(Study.id == study_id).with_for_update(key_share=True)
    return session.scalars(query.execution_options(populate_existing=True)).one()


def _own(study_id: int, judge_id: int) -> Select[Assignment]:
    return select(Assignment).where(
        Assignment.study_id == study_id, Assignment.judge_id == judge_id
    )


def _assignment(session: Session, study_id: int, judge_id: int, item_id: int) -> Assignment:
    found = session.scalar(_own(study_id, judge_id).where(Assignment.item_id == item_id))
    if found is None:
        raise Refused(f"item {item_id} was never given to this judge in study {study_id}")
    return found


def _release_expired(session: Session, study_id: int, judge_id: int, now: datetime) -> None:
    """Free the places of expired leases, except those of the judge who is requesting."""
    expired = session.scalars(
        select(Assignment).where(
            Assignment.study_id == study_id,
            Assignment.state == "leased",
            Assignment.lease_until < now,
            Assignment.judge_id != judge_id,
        )
    )
    for assignment in expired:
        assignment.state = "expired"
        change_taken(session, study_id, assignment.item_id, -1)


def membership(session: Session, study_id: int, judge_id: int) -> StudyJudge:
    """A judge's membership in the study, created for a new judge. Does not commit.

    Raises Refused for a new judge if the study is for invited people only.
    """
    member = session.get(StudyJudge, (study_id, judge_id))
    if member is not None:
        return member
    study = get_study(session, study_id)
    if study.settings.get("members_only"):
        raise Refused(
            f"the study {study.name!r} is for people invited into it: ask its curator for a link"
        )
    return add_member(session, study_id, judge_id)


def add_member(session: Session, study_id: int, judge_id: int) -> StudyJudge:
    """Make a judge a member of a study, by invitation or by a curator. Does not commit."""
    member = session.get(StudyJudge, (study_id, judge_id))
    if member is None:
        member = StudyJudge(study_id=study_id, judge_id=judge_id)
        session.add(member)
        session.flush()
    return member


def gold_score(session: Session, study_id: int, judge_id: int) -> tuple[int, int]:
    """(correct, answered) hidden gold items of the judge."""
    rows = session.execute(
        select(Judgment.choice, StudyItem.gold_choice)
        .join(StudyItem, StudyItem.item_id == Judgment.item_id)
        .where(
            StudyItem.study_id == study_id,
            StudyItem.part == "gold",
            Judgment.study_id == study_id,
            Judgment.judge_id == judge_id,
            Judgment.is_current,
        )
    ).all()
    return sum(choice == gold for choice, gold in rows), len(rows)


def _pause_on_failed_gold(session: Session, study: Study, judge_id: int, item_id: int) -> None:
    """Pause a judge below the gold threshold, if the study's rules say so."""
    if session.get_one(StudyItem, (study.id, item_id)).part != "gold":
        return
    right, seen = gold_score(session, study.id, judge_id)
    threshold = float(study.settings.get("gold_threshold", GOLD_THRESHOLD))
    pauses = study.settings.get("gold_action", "warn") == "pause"
    if pauses and seen >= GOLD_SEEN and right < threshold * seen:
        member = membership(session, study.id, judge_id)
        member.state, member.changed_at = "paused", utc_now()
        member.reason = f"{right} of {seen} gold items correct"
        session.flush()


def has_part(session: Session, study_id: int, part: str) -> bool:
    """Whether the study has items of this part (training, gold)."""
    query = select(StudyItem.item_id).where(StudyItem.study_id == study_id, StudyItem.part == part)
    return session.scalar(query.limit(1)) is not None


def _eligible(
    session: Session, study_id: int, judge_id: int, part: str = "main"
) -> list[ColumnElement[bool]]:
    """Conditions on items with a free place whose group this judge has neither been given nor
    reviewed, and which they have not adjudicated."""
    name = session.get_one(Judge, judge_id).name
    sibling = aliased(Item)
    given = (
        select(Assignment.id)
        .join(sibling, sibling.id == Assignment.item_id)
        .where(
            sibling.group_id == Item.group_id,
            Assignment.judge_id == judge_id,
            or_(Assignment.state != "expired", Assignment.study_id != study_id),
        )
    )
    adjudicated = (
        select(Judgment.id)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Judgment.item_id == StudyItem.item_id, Judge.name == ADJUDICATOR + name)
    )
    return [
        StudyItem.study_id == study_id,
        StudyItem.part == part,
        or_(StudyItem.places.is_(None), StudyItem.taken < StudyItem.places),
        ~exists(given),
        ~exists(
            select(Review.id).where(Review.group_id == Item.group_id, Review.reviewed_by == name)
        ),
        ~exists(adjudicated),
    ]


def _lease_new(
    session: Session, study_id: int, judge_id: int, count: int, now: datetime
) -> list[Assignment]:
    """Lease up to `count` items: those after the judge's furthest first, then freed ones."""
    member = membership(session, study_id, judge_id)
    free = (
        select(StudyItem.item_id, StudyItem.position)
        .join(Item, Item.id == StudyItem.item_id)
        .where(*_eligible(session, study_id, judge_id))
        .order_by(StudyItem.position)
    )
    after = member.furthest
    gold = _gold_due(session, study_id, judge_id, count)
    count -= len(gold)
    rows = session.execute(free.where(StudyItem.position > after).limit(count)).all()
    found = [item_id for item_id, _ in rows]
    member.furthest = max([after, *(position for _, position in rows)])
    if len(found) < count:
        before = free.where(StudyItem.position <= after).limit(count - len(found))
        found += [item_id for item_id, _ in session.execute(before)]
    until = now + LEASE
    return [lease_item(session, study_id, judge_id, item_id, until) for item_id in [*gold, *found]]


def _gold_due(session: Session, study_id: int, judge_id: int, count: int) -> list[int]:
    """Gold items that are due: one after every `gold_every` items this judge was given."""
    if not has_part(session, study_id, "gold"):
        return []
    every = int(get_study(session, study_id).settings.get("gold_every", GOLD_EVERY))
    parts = dict(
        session.execute(
            select(StudyItem.part, func.count())
            .join(
                Assignment,
                and_(
                    Assignment.study_id == StudyItem.study_id,
                    Assignment.item_id == StudyItem.item_id,
                ),
            )
            .where(Assignment.study_id == study_id, Assignment.judge_id == judge_id)
            .group_by(StudyItem.part)
        ).all()
    )
    due = parts.get("main", 0) // every - parts.get("gold", 0)
    if due < 1:
        return []
    query = (
        select(StudyItem.item_id)
        .join(Item, Item.id == StudyItem.item_id)
        .where(*_eligible(session, study_id, judge_id, "gold"))
        .order_by(StudyItem.position)
        .limit(min(due, count))
    )
    return list(session.scalars(query))


def eligible_items(
    session: Session, study_id: int, judge_id: int, item_ids: Sequence[int]
) -> list[int]:
    """Those of the items (of part main) that may be leased to this judge now."""
    query = (
        select(StudyItem.item_id)
        .join(Item, Item.id == StudyItem.item_id)
        .where(*_eligible(session, study_id, judge_id), StudyItem.item_id.in_(item_ids))
    )
    return list(session.scalars(query.order_by(StudyItem.position)))


def lease_item(
    session: Session, study_id: int, judge_id: int, item_id: int, until: datetime
) -> Assignment:
    """Lease an item, which must be eligible for the judge, until a time. Does not commit."""
    change_taken(session, study_id, item_id, +1)
    assignment = session.scalar(_own(study_id, judge_id).where(Assignment.item_id == item_id))
    if assignment is None:
        assignment = Assignment(
            study_id=study_id,
            item_id=item_id,
            judge_id=judge_id,
            order_shown=shuffled_labels(session.get_one(Item, item_id), judge_id),
        )
        session.add(assignment)
    assignment.state, assignment.lease_until = "leased", until
    session.flush()
    return assignment


def shuffled_labels(item: Item, judge_id: int) -> list[str]:
    """The candidates' labels in this judge's own order, the same at every call."""
    labels = [str(entry["label"]) for entry in item.candidates]
    seed = hashlib.sha256(f"{item.id} {judge_id} {item.query}".encode()).digest()
    random.Random(seed).shuffle(labels)
    return labels


def _keep_place(session: Session, assignment: Assignment) -> bool:
    """Whether the assignment holds a place or could take a free one again."""
    if assignment.state == "leased":
        return True
    if assignment.state == "aside":
        return False
    taken = session.execute(
        update(StudyItem)
        .where(
            StudyItem.study_id == assignment.study_id,
            StudyItem.item_id == assignment.item_id,
            or_(StudyItem.places.is_(None), StudyItem.taken < StudyItem.places),
        )
        .values(taken=StudyItem.taken + 1)
        .returning(StudyItem.item_id)
    ).all()
    return bool(taken)


def change_taken(session: Session, study_id: int, item_id: int, by: int) -> None:
    """Count a place of an item as taken (+1) or free (-1); call it under the study's lock."""
    session.execute(
        update(StudyItem)
        .where(StudyItem.study_id == study_id, StudyItem.item_id == item_id)
        .values(taken=StudyItem.taken + by)
    )


def _label(order_shown: Sequence[str], position: int | None) -> str:
    if position is None:
        return NONE
    if not 0 <= position < len(order_shown):
        raise BadInput(f"there is no passage {position + 1}: there are {len(order_shown)}")
    return str(order_shown[position])


def _server_times(decision: Decision, now: datetime) -> tuple[datetime | None, datetime]:
    """When it was shown and decided; both moved back if the browser's clock is ahead."""
    if decision.decided_at is None:
        return decision.shown_at, now
    ahead = max(decision.decided_at - now, timedelta(0))
    shown = None if decision.shown_at is None else decision.shown_at - ahead
    return shown, decision.decided_at - ahead
