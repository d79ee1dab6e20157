"""Groups that a person may not see, because they may judge an item of them; and opening one anyway.

Whoever may be given an item of a group in a study that is not closed, now or later, sees nothing of
the group elsewhere: its texts by role, its verdict and its reviews are the answer. Every query that
shows groups to a person leaves out `hidden_groups`. A curator may open a group, which is recorded:
they are never given its items afterwards, and an answer they gave before can no longer be changed.
"""

from collections.abc import Sequence

from sqlalchemy import Select, exists, or_, select
from sqlalchemy.orm import Session

from db.assignment.places import change_taken, lock_study
from db.errors import Refused
from db.people.accounts import record_audit
from db.tables import (
    AdjudicationView,
    Assignment,
    Group,
    Item,
    Judge,
    OpenedGroup,
    Review,
    Study,
    StudyItem,
    StudyJudge,
)

CHUNK = 1000
HIDDEN = (
    "you may judge an item of group {} in an open study, so its roles, verdict and reviews are "
    "hidden from you until the study is closed"
)


def hidden_groups(session: Session, person: str) -> Select[int]:
    """The ids of the groups that are hidden from a person, as a query.

    Not hidden are groups that they opened, and those that they reviewed before they were given an
    item of them: eligibility never gives these to them.
    """
    in_study = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
    given = (
        select(Assignment.id)
        .join(Judge, Judge.id == Assignment.judge_id)
        .where(
            Assignment.study_id == StudyItem.study_id,
            Assignment.item_id == StudyItem.item_id,
            Judge.name == person,
        )
    )
    reviewed = select(Review.id).where(
        Review.group_id == Item.group_id, Review.reviewed_by == person
    )
    opened = select(OpenedGroup.id).where(
        OpenedGroup.group_id == Item.group_id, OpenedGroup.opened_by == person
    )
    return in_study.where(
        StudyItem.study_id.in_(_studies_of(session, person)),
        or_(~exists(reviewed), exists(given)),
        ~exists(opened),
    )


def is_hidden(session: Session, group_id: int, person: str) -> bool:
    """Whether the group is hidden from the person."""
    found = hidden_groups(session, person).where(Item.group_id == group_id)
    return session.scalar(found.limit(1)) is not None


def require_visible(session: Session, group_id: int, person: str) -> None:
    """Raise Refused if the group is hidden from the person."""
    if is_hidden(session, group_id, person):
        raise Refused(HIDDEN.format(group_id))


def hidden_of_run(session: Session, run_id: int, person: str) -> list[int]:
    """The groups of a run that are hidden from a person."""
    query = select(Group.id).where(
        Group.run_id == run_id, Group.id.in_(hidden_groups(session, person))
    )
    return list(session.scalars(query.order_by(Group.id)))


def was_opened(session: Session, item_id: int, person: str) -> bool:
    """Whether the person has opened the item's group, or seen others' choices on the item."""
    seen = select(AdjudicationView.id).where(
        AdjudicationView.item_id == item_id, AdjudicationView.seen_by == person
    )
    if session.scalar(seen.limit(1)) is not None:
        return True
    query = (
        select(OpenedGroup.id)
        .join(Item, Item.group_id == OpenedGroup.group_id)
        .where(Item.id == item_id, OpenedGroup.opened_by == person)
    )
    return session.scalar(query) is not None


def open_groups(
    session: Session, group_ids: Sequence[int], *, person: str, where: str = "groups"
) -> int:
    """Record that a person opens these groups, and return their leases of the groups' items.

    Groups that are not hidden from them need no record. Returns how many were recorded. The caller
    checks the permission: who only judges never opens a group. Does not commit.
    """
    opened = 0
    for start in range(0, len(group_ids), CHUNK):
        part = group_ids[start : start + CHUNK]
        hidden = hidden_groups(session, person).where(Item.group_id.in_(part))
        ids = sorted(set(session.scalars(hidden)))
        _return_leases(session, ids, person)
        session.add_all(OpenedGroup(group_id=each, opened_by=person, place=where) for each in ids)
        opened += len(ids)
    if opened:
        subject = f"group {group_ids[0]}" if len(group_ids) == 1 else f"{opened} groups"
        record_audit(session, person, "group.open", subject, place=where)
    session.flush()
    return opened


def _studies_of(session: Session, person: str) -> list[int]:
    """The studies that are not closed and in which the person is, or may become, a member."""
    joined = set(
        session.scalars(
            select(StudyJudge.study_id)
            .join(Judge, Judge.id == StudyJudge.judge_id)
            .where(Judge.name == person)
        )
    )
    studies = session.scalars(select(Study).where(Study.status != "closed"))
    return [
        study.id
        for study in studies
        if study.id in joined or not study.settings.get("members_only")
    ]


def _return_leases(session: Session, group_ids: Sequence[int], person: str) -> None:
    judge_id = select(Judge.id).where(Judge.name == person).scalar_subquery()
    held = session.scalars(
        select(Assignment)
        .join(Item, Item.id == Assignment.item_id)
        .where(
            Item.group_id.in_(group_ids),
            Assignment.judge_id == judge_id,
            Assignment.state == "leased",
        )
    ).all()
    for assignment in held:
        lock_study(session, assignment.study_id)
        assignment.state, assignment.lease_until = "expired", None
        change_taken(session, assignment.study_id, assignment.item_id, -1)
    session.flush()
