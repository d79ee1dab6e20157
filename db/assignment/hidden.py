"""Groups that a person may not see, because they may judge an item of them; and opening one anyway.

Whoever may be given an item of a group in a study that is not closed, now or later, sees nothing of
the groups of its pair elsewhere: texts by role, verdicts and reviews are the answer. Every query
that shows groups to a person leaves them out (`hidden_pair`). What is shown in full is recorded
(`record_read`), so that no later study gives its items to this person. A curator may open a hidden
group, which is recorded, too: they are never given its items afterwards, and an answer they gave
before can no longer be changed.
"""

from collections.abc import Collection, Sequence
from functools import cache

from sqlalchemy import (
    ColumnElement,
    Integer,
    Select,
    String,
    bindparam,
    exists,
    func,
    literal,
    or_,
    select,
)
from sqlalchemy.orm import InstrumentedAttribute, Session, aliased

from db.assignment.known_pairs import Id, Person, opened_pair, reviewed_pair, saw_choices
from db.assignment.places import change_taken, lock_study
from db.errors import Refused
from db.events import record_event
from db.store.bulk import insert_of
from db.study.judgments import of_person
from db.tables import (
    Assignment,
    Group,
    Item,
    Judge,
    OpenedGroup,
    Study,
    StudyItem,
    StudyJudge,
    utc_now,
)

CHUNK = 1000
READ = "read"  # the place of a group that was read without a warning
STUDIED = aliased(Group)  # the group of a study's item
HIDDEN = (
    "you may judge an item of group {} in a study that is not closed, so its roles, verdict and "
    "reviews are hidden from you until it is closed"
)


def hidden_pair(
    session: Session, person: str, pair_id: InstrumentedAttribute[int]
) -> ColumnElement[bool]:
    """A condition on a query's own pair: its groups are hidden from the person.

    By pair, as other runs of a pair share texts with the group that the item is of. Not hidden are
    pairs of which they opened a group, and those of which they reviewed one before they were given
    an item: eligibility never gives these to them.
    """
    found = hidden_pairs(session, person)
    if session.get_bind().dialect.name == "sqlite":
        # looked up in one list: of a correlated query SQLite walks all items of the studies for
        # each row, minutes for 100,000 groups; PostgreSQL plans an anti-join
        return pair_id.in_(found.correlate(None))
    return exists(found.where(STUDIED.pair_id == pair_id))


def hidden_groups(session: Session, person: str) -> Select[int]:
    """The ids of all groups that are hidden from a person, as a query: see `hidden_pair`."""
    return select(Group.id).where(Group.pair_id.in_(hidden_pairs(session, person)))


def is_hidden(session: Session, group_id: int, person: str) -> bool:
    """Whether the group is hidden from the person."""
    query = select(Group.id).where(
        Group.id == group_id, hidden_pair(session, person, Group.pair_id)
    )
    return session.scalar(query) is not None


def require_visible(session: Session, group_id: int, person: str) -> None:
    """Raise Refused if the group is hidden from the person."""
    if is_hidden(session, group_id, person):
        raise Refused(
            HIDDEN.format(group_id),
            "open it first, if you will not judge it",
            code="group_hidden",
        )


def hidden_items(session: Session, item_ids: Collection[int], person: str) -> set[int]:
    """Those of the items whose group is hidden from the person; a few hundred at most."""
    query = (
        select(Item.id)
        .join(Group, Group.id == Item.group_id)
        .where(Item.id.in_(item_ids), hidden_pair(session, person, Group.pair_id))
    )
    return set(session.scalars(query))


def hidden_items_of_study(session: Session, study_id: int, person: str) -> set[int]:
    """Those of a study's items whose group is hidden from the person."""
    return set(session.scalars(hidden_in_study(session, study_id, person)))


def hidden_in_study(session: Session, study_id: int, person: str) -> Select[int]:
    """The query of `hidden_items_of_study`."""
    return (
        select(Item.id)
        .join(StudyItem, StudyItem.item_id == Item.id)
        .join(Group, Group.id == Item.group_id)
        .where(StudyItem.study_id == study_id, hidden_pair(session, person, Group.pair_id))
    )


def count_hidden(session: Session, run_id: int, person: str) -> int:
    """How many groups of a run are hidden from a person."""
    query = (
        select(func.count())
        .select_from(Group)
        .where(Group.run_id == run_id, hidden_pair(session, person, Group.pair_id))
    )
    return session.scalar(query) or 0


def was_opened(session: Session, item_id: int, person: str) -> bool:
    """Whether the person has opened a group of the item's pair, or seen others' choices on one."""
    return session.scalar(_opened(), {"item_id": item_id, "person": person}) is not None


@cache  # every answer of every judge needs it, and building it takes longer than its answer
def _opened() -> Select[int]:
    person = bindparam("person", type_=String)
    return (
        select(Item.id)
        .join(STUDIED, STUDIED.id == Item.group_id)
        .where(
            Item.id == bindparam("item_id", type_=Integer),
            knows_pair(STUDIED.pair_id, person),
        )
    )


def knows_pair(pair_id: Id, person: Person) -> ColumnElement[bool]:
    """A condition on a query's own pair: `was_opened`."""
    return or_(saw_choices(pair_id, person), opened_pair(pair_id, person))


def open_groups(
    session: Session, group_ids: Sequence[int], *, person: str, where: str = "groups"
) -> int:
    """Record that a person opens these groups, and return their leases of items of their pairs.

    Groups that are not hidden from them need no record. Returns how many were recorded. The caller
    checks the permission: who only judges never opens a group. Does not commit.
    """
    _lock_studies(session, person)
    opened = 0
    for start in range(0, len(group_ids), CHUNK):
        of_part = Group.id.in_(group_ids[start : start + CHUNK])
        opened += _open(session, of_part, person, where)
    if opened:
        one = group_ids[0] if len(group_ids) == 1 else ""
        record_event(session, person, "group.open", one, place=where, groups=opened)
    return opened


def open_run(session: Session, run_id: int, *, person: str) -> int:
    """Open all groups of a run that are hidden from a person, as `open_groups` does."""
    _lock_studies(session, person)
    opened = _open(session, Group.run_id == run_id, person, "groups")
    if opened:
        record_event(session, person, "group.open", ("run", run_id), place="groups", groups=opened)
    return opened


def record_read(session: Session, group_ids: Collection[int], person: str) -> None:
    """Record that groups which are not hidden from a person were sent to them. Does not commit.

    They are never given items of these pairs, in studies of later either.
    """
    unread = unread_groups(session, group_ids, person)
    if unread:
        record_opened(session, Group.id.in_(unread), person, READ)


def unread_groups(session: Session, group_ids: Collection[int], person: str) -> set[int]:
    """Those of the groups that the person has not read or opened before."""
    query = select(OpenedGroup.group_id).where(
        OpenedGroup.group_id.in_(group_ids), OpenedGroup.opened_by == person
    )
    return set(group_ids) - set(session.scalars(query))


def hidden_pairs(session: Session, person: str) -> Select[int]:
    """The ids of all pairs whose groups are hidden from a person, as a query: see `hidden_pair`."""
    given = (
        select(Assignment.id)
        .join(Judge, Judge.id == Assignment.judge_id)
        .where(
            Assignment.study_id == StudyItem.study_id,
            Assignment.item_id == StudyItem.item_id,
            of_person(person),
        )
    )
    return (
        select(STUDIED.pair_id)
        .join(Item, Item.group_id == STUDIED.id)
        .join(StudyItem, StudyItem.item_id == Item.id)
        .where(
            StudyItem.study_id.in_(_studies_of(session, person)),
            or_(~reviewed_pair(STUDIED.pair_id, person), exists(given)),
            ~opened_pair(STUDIED.pair_id, person),
        )
    )


def _studies_of(session: Session, person: str) -> list[int]:
    """The studies that are not closed and in which the person is, or may become, a member."""
    joined = set(
        session.scalars(
            select(StudyJudge.study_id)
            .join(Judge, Judge.id == StudyJudge.judge_id)
            .where(of_person(person))
        )
    )
    studies = session.scalars(select(Study).where(Study.status != "closed"))
    return [
        study.id
        for study in studies
        if study.id in joined or not study.settings.get("members_only")
    ]


def _lock_studies(session: Session, person: str) -> None:
    """Lock the studies in which the person may hold leases, in an order that all callers share."""
    mine = (
        select(StudyJudge.study_id)
        .join(Judge, Judge.id == StudyJudge.judge_id)
        .join(Study, Study.id == StudyJudge.study_id)
        .where(of_person(person), Study.status != "closed")
    )
    for study_id in session.scalars(mine.order_by(StudyJudge.study_id)).all():
        lock_study(session, study_id)


def _open(session: Session, chosen: ColumnElement[bool], person: str, where: str) -> int:
    """Return leases of, then record, those of the chosen groups that are hidden; how many."""
    hidden = chosen & hidden_pair(session, person, Group.pair_id)
    pairs = select(Group.pair_id).where(hidden)
    held = session.scalars(
        select(Assignment)
        .join(Judge, Judge.id == Assignment.judge_id)
        .join(Item, Item.id == Assignment.item_id)
        .join(STUDIED, STUDIED.id == Item.group_id)
        .where(
            of_person(person),
            Assignment.state == "leased",
            STUDIED.pair_id.in_(pairs.correlate(None)),
        )
        .execution_options(populate_existing=True)
    ).all()
    for assignment in held:
        assignment.state, assignment.lease_until = "expired", None
        change_taken(session, assignment.study_id, [assignment.item_id], -1)
    session.flush()
    return record_opened(session, hidden, person, where)


def record_opened(session: Session, chosen: ColumnElement[bool], person: str, where: str) -> int:
    """Record that a person knows the chosen groups; returns how many are new. Does not commit."""
    found = select(Group.id, literal(person), literal(where), literal(utc_now())).where(chosen)
    statement = (
        insert_of(session)(OpenedGroup)
        .from_select(["group_id", "opened_by", "place", "created_at"], found)
        .on_conflict_do_nothing()
    )
    return len(session.scalars(statement.returning(OpenedGroup.id)).all())
