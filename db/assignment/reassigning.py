"""Reassigning one judge's leases to a named person instead of the queue.

Note: not every item can go to every person. An item whose group the other person was given,
reviewed or adjudicated goes back to the queue, as it does for everyone.
"""

from dataclasses import dataclass
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.assignment.eligibility import chosen_items, eligible_items
from db.assignment.leasing import lease
from db.assignment.members import add_member
from db.assignment.places import lock_study, return_leases
from db.errors import BadInput, Refused
from db.people.rights import may_judge
from db.tables import Account, Assignment, Judge, utc_now

REASSIGNED = timedelta(days=1)


@dataclass(frozen=True)
class Reassigned:
    """How many items went to the named person, and how many to the queue."""

    moved: int
    returned: int


def reassign(session: Session, study_id: int, from_judge_id: int, to_judge_id: int) -> Reassigned:
    """Move a judge's leases to another person, who has a day to answer them.

    The other person becomes a member of the study. Raises BadInput if both are the same or the
    other is not a person, Refused if the study is closed, or if the other may not judge in it or is
    paused in it. Does not commit.
    """
    if from_judge_id == to_judge_id:
        raise BadInput(
            "the items stay with the same person",
            "choose another one to give them to",
            code="reassignment_to_same_person",
        )
    receiver = session.get(Judge, to_judge_id)
    if receiver is None or receiver.kind != "person" or receiver.simulated:
        raise BadInput(
            f"judge {to_judge_id} is not a person: items go to people",
            "choose a person",
            code="judge_not_person",
        )
    study = lock_study(session, study_id)
    if study.status == "closed":
        raise Refused(
            f"the study {study.name!r} is closed: nothing is assigned in it",
            "create another one",
            code="study_not_open",
        )
    account = None if receiver.account_id is None else session.get(Account, receiver.account_id)
    if account is not None and not may_judge(session, account, study):
        raise Refused(
            f"{receiver.name} has no right to judge in this study",
            "invite them first",
            code="judge_right_missing",
        )
    member = add_member(session, study_id, to_judge_id)
    if member.state == "paused":
        raise Refused(
            f"{receiver.name} is paused in this study ({member.reason})",
            "resume them first",
            code="judge_paused",
        )
    held = list(
        session.scalars(
            select(Assignment.item_id)
            .where(
                Assignment.study_id == study_id,
                Assignment.judge_id == from_judge_id,
                Assignment.state == "leased",
            )
            .order_by(Assignment.id)
        )
    )
    return_leases(session, study_id, from_judge_id)
    until = utc_now() + REASSIGNED
    moved = set(eligible_items(session, study_id, to_judge_id, held))
    items = [item_id for item_id in held if item_id in moved]
    lease(
        session, study_id, to_judge_id, chosen_items(session, study_id, to_judge_id, items), until
    )
    return Reassigned(moved=len(items), returned=len(held) - len(items))
