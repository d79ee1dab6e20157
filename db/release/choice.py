"""The choice of a release: which groups of a run it contains, and their counts."""

from array import array
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import Select, and_, func, or_, select
from sqlalchemy.orm import Session

from db.corpus.texts import pair_source
from db.errors import BadInput
from db.run.groups import is_complete
from db.run.runs import shape_of
from db.tables import (
    Dataset,
    Group,
    Item,
    Judgment,
    Pair,
    Passage,
    Review,
    Run,
    StudyItem,
    VerdictVersion,
)

REVIEWS = ("not-rejected", "approved")
BATCH = 2000
ChoiceQuery = TypeVar("ChoiceQuery", bound=Select[*tuple[Any, ...]])


@dataclass(frozen=True)
class Choice:
    """Which groups of a run go into a release.

    A group that a person approved does, whatever the filter decided (it is *rescued* if dropped). A
    group without all its texts never does: it has nothing to train on. `sources` and
    `languages` are values of the pairs' columns `source` (the dataset's if a pair has none) and
    `language`; empty means all. `study_id`: only groups that have items in that study.
    """

    run_id: int
    reviews: str = "not-rejected"
    include_dropped: bool = False
    sources: tuple[str, ...] = ()
    languages: tuple[str, ...] = ()
    study_id: int | None = None

    def __post_init__(self) -> None:
        if self.reviews not in REVIEWS:
            raise BadInput(
                f"no review filter {self.reviews!r}",
                f"one of {', '.join(REVIEWS)}",
                code="review_filter_unknown",
            )


def chosen_ids(session: Session, choice: Choice) -> "array[int]":
    """The ids of the chosen groups, ascending: eight bytes each, to hold millions of them."""
    query = _chosen(_of_written(session, choice, select(Group.id)), choice).order_by(Group.id)
    found = session.execute(query.execution_options(yield_per=BATCH))
    return array("q", (group_id for (group_id,) in found))


def chosen_licences(session: Session, choice: Choice, default: str) -> list[str]:
    """The licences of the chosen groups' pairs; the dataset's if a pair names none."""
    value = func.coalesce(
        func.nullif(func.trim(Pair.meta["licence"].as_string()), ""),
        func.nullif(func.trim(Pair.meta["license"].as_string()), ""),
        default,
    )
    query = _chosen(select(value).select_from(Group).join(Pair, Pair.id == Group.pair_id), choice)
    return sorted(str(licence) for licence in session.scalars(query.distinct()))


def choice_state(session: Session, choice: Choice) -> list[int]:
    """Numbers that change whenever the contents of a release of this choice may have changed."""
    run = select(Group.id).where(Group.run_id == choice.run_id)
    reviews = select(
        func.max(Review.id), func.count(Review.id), func.count(Review.undone_at)
    ).where(Review.group_id.in_(run))
    judgments = (
        select(func.max(Judgment.id), func.count(Judgment.id))
        .join(Item, Item.id == Judgment.item_id)
        .where(Item.group_id.in_(run), Judgment.is_current)
    )
    groups = select(func.max(Group.id), func.count(Group.id)).where(
        Group.run_id == choice.run_id, Group.verdict.is_not(None)
    )
    # a version's number may be given again, its id not
    versions = select(Run.verdict_version, func.max(VerdictVersion.id)).outerjoin(
        VerdictVersion,
        (VerdictVersion.run_id == Run.id) & (VerdictVersion.number == Run.verdict_version),
    )
    versions = versions.where(Run.id == choice.run_id).group_by(Run.id, Run.verdict_version)
    return [
        number or 0
        for query in (groups, reviews, judgments, versions)
        for number in session.execute(query).one()
    ]


class GroupPair(NamedTuple):
    """The pair of a group, as in its dataset, and what a group is preferred by."""

    group_id: int
    query: str
    passage: str
    verdict: str | None
    review: str | None


def pairs_of_groups(session: Session, group_ids: Sequence[int]) -> Iterator[list[GroupPair]]:
    """The pairs of the groups, a batch at a time, in the order of the ids."""
    query = (
        select(Group.id, Pair.query, Passage.text, Group.verdict, Review.action)
        .join(Pair, Pair.id == Group.pair_id)
        .join(Passage, Passage.id == Pair.passage_id)
        .outerjoin(Review, and_(Review.group_id == Group.id, Review.is_current))
    )
    for start in range(0, len(group_ids), BATCH):
        ids = list(group_ids[start : start + BATCH])
        rows = session.execute(query.where(Group.id.in_(ids)).order_by(Group.id))
        yield [
            GroupPair(group_id, query_text, passage, verdict, review)
            for group_id, query_text, passage, verdict, review in rows
        ]


def count_rescued(session: Session, choice: Choice) -> int:
    """How many of the chosen groups the filter dropped and a person approved."""
    query = _of_written(session, choice, select(func.count()).select_from(Group))
    query = _chosen(query, choice)
    return session.scalar(query.where(Group.verdict == "dropped", Review.action == "approve")) or 0


class ChosenCount(NamedTuple):
    """The number of chosen groups with this verdict, current review and source."""

    verdict: str
    review: str
    source: str
    groups: int


def count_by_kind(session: Session, choice: Choice, source: str) -> list[ChosenCount]:
    """Counts of the chosen groups; `source` is used for pairs that name none."""
    value = func.coalesce(func.nullif(Pair.meta["source"].as_string(), ""), source)
    review = func.coalesce(Review.action, "")
    query = select(Group.verdict, review, value, func.count()).select_from(Group)
    query = _of_written(session, choice, query)
    query = _chosen(query, choice).group_by(Group.verdict, review, value)
    return [ChosenCount(*row) for row in session.execute(query)]


def _of_written(session: Session, choice: Choice, query: ChoiceQuery) -> ChoiceQuery:
    """The query over groups with their pairs, of those that have all their texts."""
    complete = is_complete(shape_of(session, choice.run_id))
    return query.join(Pair, Pair.id == Group.pair_id).where(complete)


def _chosen(query: ChoiceQuery, choice: Choice) -> ChoiceQuery:
    query = query.where(Group.run_id == choice.run_id, Group.verdict.is_not(None))
    query = query.outerjoin(Review, and_(Review.group_id == Group.id, Review.is_current))
    if not choice.include_dropped:
        query = query.where(or_(Group.verdict == "kept", Review.action == "approve"))
    if choice.sources:
        query = query.join(Dataset, Dataset.id == Pair.dataset_id)
        query = query.where(pair_source().in_(choice.sources))
    if choice.study_id is not None:
        judged = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        query = query.where(Group.id.in_(judged.where(StudyItem.study_id == choice.study_id)))
    if choice.languages:
        query = query.where(Pair.meta["language"].as_string().in_(choice.languages))
    if choice.reviews == "approved":
        return query.where(Review.action == "approve")
    return query.where(or_(Review.action.is_(None), Review.action != "reject"))
