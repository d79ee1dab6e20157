"""Reviews stay with the pair and its texts: groups of other runs with the same texts have them too.

Another run of a dataset often reuses the answers of the first and so has the same texts. A review
of one group is written for the others of its pair with exactly these texts (`spread`), and a group
that is finished later takes over the review of such a group (`carry_reviews`), with its edits. The
copy names the review it is of (`carried_from`) and keeps who gave it.
"""

from collections.abc import Mapping, Sequence

from sqlalchemy import select, update
from sqlalchemy.orm import Session, aliased

from db.review.texts import group_texts, write_texts
from db.store.bulk import Row, insert_for_ids
from db.tables import Group, Review

CHUNK = 1000


def lock_pair(session: Session, group: Group) -> None:
    """Lock all groups of the group's pair until the transaction ends, in an order that all share.

    A worker that finishes one of them waits, and then finds the review.
    """
    query = select(Group.id).where(Group.pair_id == group.pair_id).order_by(Group.id)
    session.scalars(query.with_for_update()).all()


def same_texts(session: Session, group_ids: Sequence[int]) -> dict[int, list[int]]:
    """For each of the groups that has any: the finished groups of its pair in other runs that have
    exactly the same texts."""
    others: dict[int, list[int]] = {}
    for start in range(0, len(group_ids), CHUNK):
        for group_id, other_id in _siblings(session, group_ids[start : start + CHUNK]):
            others.setdefault(group_id, []).append(other_id)
    named = {*others, *(each for found in others.values() for each in found)}
    texts = group_texts(session, sorted(named))
    found = {
        group_id: [each for each in ids if texts[each] == texts[group_id]]
        for group_id, ids in others.items()
    }
    return {group_id: ids for group_id, ids in found.items() if ids}


def spread(session: Session, review: Review, group_ids: Sequence[int]) -> None:
    """Write the review for these groups, which had the same texts before it. Does not commit."""
    for group_id in group_ids:
        _copy(session, review, group_id)


def replace_reviews(session: Session, rows: Sequence[Row]) -> list[int]:
    """Insert these reviews, at most one of a group, as the current ones; returns their ids.

    Does not commit.
    """
    session.execute(
        update(Review)
        .where(Review.group_id.in_([row["group_id"] for row in rows]), Review.is_current)
        .values(is_current=False)
    )
    return insert_for_ids(session, Review, rows)


def carry_reviews(session: Session, group_ids: Sequence[int]) -> int:
    """Give groups that were just finished the review of a group of their pair that has, or had
    before it was edited, the same texts. Returns how many got one. Does not commit."""
    reviewed: dict[int, list[int]] = {}
    for start in range(0, len(group_ids), CHUNK):
        part = group_ids[start : start + CHUNK]
        for group_id, other_id in _siblings(session, part, reviewed_only=True):
            reviewed.setdefault(group_id, []).append(other_id)
    return sum(_carry(session, group_id, others) for group_id, others in reviewed.items())


def copies_of(session: Session, review: Review) -> list[Review]:
    """The reviews of other groups that are current and of the same decision."""
    root = review.carried_from or review.id
    pair_id = session.scalars(select(Group.pair_id).where(Group.id == review.group_id)).one()
    query = (
        select(Review)
        .join(Group, Group.id == Review.group_id)
        .where(
            Group.pair_id == pair_id,
            Review.is_current,
            Review.id != review.id,
            (Review.id == root) | (Review.carried_from == root),
        )
    )
    return list(session.scalars(query.order_by(Review.id)))


def _siblings(
    session: Session, group_ids: Sequence[int], *, reviewed_only: bool = False
) -> list[tuple[int, int]]:
    other = aliased(Group)
    query = (
        select(Group.id, other.id)
        .join(other, (other.pair_id == Group.pair_id) & (other.id != Group.id))
        .where(Group.id.in_(group_ids), other.verdict.is_not(None))
        .order_by(Group.id, other.id)
    )
    if reviewed_only:
        query = query.join(Review, (Review.group_id == other.id) & Review.is_current)
    return [(row[0], row[1]) for row in session.execute(query)]


def _carry(session: Session, group_id: int, others: Sequence[int]) -> bool:
    texts = group_texts(session, [group_id, *others])
    newest: Review | None = None
    edits: list[Review] = []
    for other in others:
        history = list(
            session.scalars(
                select(Review)
                .where(Review.group_id == other, Review.undone_at.is_(None))
                .order_by(Review.id.desc())
            )
        )
        current = next((review for review in history if review.is_current), None)
        since = _edits_since(texts[group_id], texts[other], history)
        if current is None or since is None or (newest and current.id < newest.id):
            continue
        newest, edits = current, since
    if newest is None:
        return False
    for edit in edits:
        _copy(session, edit, group_id)
    if newest not in edits:
        _copy(session, newest, group_id, is_of_these_texts=True)
    return True


def _edits_since(
    before: Mapping[str, str], now: Mapping[str, str], newest_first: Sequence[Review]
) -> list[Review] | None:
    """The edits, oldest first, that made a group's texts what they are now from what they were
    before; None if they never were that."""
    edits: list[Review] = []
    for review in newest_first:
        if now == before:
            break
        if review.action == "edit":
            now = {name: text for name, text in now.items() if name not in review.after}
            now |= review.before
            edits.insert(0, review)
    return edits if now == before else None


def _copy(
    session: Session, review: Review, group_id: int, *, is_of_these_texts: bool = False
) -> None:
    """Write the review for another group, with its changes of texts unless they are there."""
    after = {} if is_of_these_texts else review.after
    session.execute(
        update(Review)
        .where(Review.group_id == group_id, Review.is_current)
        .values(is_current=False)
    )
    copy = Review(
        group_id=group_id,
        action=review.action,
        reason=review.reason,
        before={} if is_of_these_texts else review.before,
        after=after,
        reviewed_by=review.reviewed_by,
        carried_from=review.carried_from or review.id,
    )
    session.add(copy)
    session.flush()
    if after:
        write_texts(session, session.get_one(Group, group_id), f"review-{copy.id}", after)
