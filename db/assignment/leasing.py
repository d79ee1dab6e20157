"""Leasing the items of a study to judges, with exactly the requested overlap.

A lease holds a place of an item (`study_item.taken`) for ten minutes after the judge's last answer
or skip in the study, and for two minutes if there was none in the last ten: opening the page alone
holds nothing for longer. An expired lease returns its place when another judge requests an item.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta

from sqlalchemy import case, func, literal, select, update
from sqlalchemy.orm import Session

from db.assignment.eligibility import Chosen, choose_items
from db.assignment.guidelines import record_shown
from db.assignment.members import membership, not_open, require_active
from db.assignment.places import change_taken
from db.assignment.shown_items import random_order
from db.assignment.standing import Standing
from db.errors import Refused
from db.tables import Assignment, Item, Study, StudyJudge, utc_now

LEASE = timedelta(minutes=10)
UNANSWERED_LEASE = timedelta(minutes=2)


def hold_items(
    session: Session,
    here: Standing,
    count: int,
    *,
    shown: int | None = None,
    now: datetime | None = None,
) -> list[Assignment]:
    """Up to `count` cards of items leased to this judge, the oldest lease first; renews all leases.

    The study is locked already. `shown`: the version of the guidelines that stands beside them, by
    default the newest. Of the card that reaches the judge's quota all items are leased; those held
    before a lower quota are theirs to answer. Raises Refused if the study is paused or closed, the
    judge is paused in it, has not passed its qualification, or has answered their quota. Does not
    commit.
    """
    now = now or utc_now()
    if here.study.status != "open":
        raise not_open(here.study)
    member = here.member = here.member or membership(session, here.study.id, here.judge.id)
    require_active(member)
    if not here.is_qualified:
        raise Refused(
            "the qualification comes first",
            "answer its examples first",
            code="qualification_first",
        )
    record_shown(session, here, shown)
    if here.has_expired:
        _release_expired(session, here, now)
    until = now + (LEASE if _is_working(here, now) else UNANSWERED_LEASE)
    held = _renew(session, here, until)
    per_card = here.study.settings.get("per_card", 1)
    count *= per_card
    wanted = min(count - len(held), _room(session, member, len(held), default=count))
    if wanted > 0:
        chosen = choose_items(session, member, wanted, per_card=per_card)
        held += lease(session, here.study.id, here.judge.id, chosen, until)
    elif not held and member.quota is not None:
        raise Refused(
            f"you have judged the {member.quota} items that are your share of this study",
            "ask a curator for more",
            code="quota_reached",
            quota=member.quota,
        )
    return held[:count]


def _room(session: Session, member: StudyJudge, held: int, *, default: int) -> int:
    """How many more items the judge may be given by their quota."""
    if member.quota is None:
        return default
    done = select(func.count(Assignment.id)).where(
        Assignment.study_id == member.study_id,
        Assignment.judge_id == member.judge_id,
        Assignment.state == "done",
    )
    return member.quota - (session.scalar(done) or 0) - held


def _orders(
    session: Session, study_id: int, judge_id: int, chosen: Sequence[Chosen]
) -> dict[int, list[str]]:
    """The orders of passages that the judge had before, by group: of these items, and of others of
    their cards, in a study where a card has several."""
    if session.get_one(Study, study_id).settings.get("per_card", 1) == 1:
        return {one.item.group_id: one.expired.order_shown for one in chosen if one.expired}
    rows = session.execute(
        select(Item.group_id, Assignment.order_shown)
        .join(Item, Item.id == Assignment.item_id)
        .where(
            Assignment.study_id == study_id,
            Assignment.judge_id == judge_id,
            Item.group_id.in_({one.item.group_id for one in chosen}),
        )
    )
    return dict(rows.all())


def lease(
    session: Session, study_id: int, judge_id: int, chosen: Sequence[Chosen], until: datetime
) -> list[Assignment]:
    """Lease items, which must be eligible for the judge, until a time. Does not commit.

    The items of a card get one order of their passages.
    """
    if not chosen:
        return []
    change_taken(session, study_id, [one.item.id for one in chosen], +1)
    leased = []
    orders = _orders(session, study_id, judge_id, chosen)
    for one in chosen:
        order = orders.setdefault(one.item.group_id, random_order(one.item))
        assignment = one.expired or Assignment(
            study_id=study_id,
            item_id=one.item.id,
            judge_id=judge_id,
            order_shown=order,
        )
        assignment.state, assignment.lease_until = "leased", until
        session.add(assignment)
        leased.append(assignment)
    session.flush()
    return leased


def _renew(session: Session, here: Standing, until: datetime) -> list[Assignment]:
    """Hold all leases of the judge until then, the oldest first.

    One that was given by name is held for a day already.
    """
    held_until = Assignment.lease_until
    renewed = (
        update(Assignment)
        .where(
            Assignment.study_id == here.study.id,
            Assignment.judge_id == here.judge.id,
            Assignment.state == "leased",
        )
        .values(
            lease_until=case(
                (held_until > until, held_until), else_=literal(until, held_until.type)
            )
        )
        .returning(Assignment)
        .execution_options(synchronize_session=False, populate_existing=True)
    )
    return sorted(session.scalars(renewed), key=lambda assignment: assignment.id)


def _is_working(here: Standing, now: datetime) -> bool:
    """Whether an answer or skip of the judge in the study was received in the last ten minutes.

    By the server's clock, and also where the answer came too late to count: a slow reader's do.
    """
    return here.last_ended_at is not None and here.last_ended_at > now - LEASE


def _release_expired(session: Session, here: Standing, now: datetime) -> None:
    """Free the places of expired leases, except those of the judge who is requesting."""
    expired = session.scalars(
        select(Assignment).where(
            Assignment.study_id == here.study.id,
            Assignment.state == "leased",
            Assignment.lease_until < now,
            Assignment.judge_id != here.judge.id,
        )
    ).all()
    for assignment in expired:
        assignment.state = "expired"
        change_taken(session, here.study.id, [assignment.item_id], -1)
