"""What is free in a study and what a judge knows of it: all that is counted after every answer.

One statement with one row of each kind, its ids in one text: as rows they take thrice the time.
"""

from dataclasses import dataclass, field
from functools import cache

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Integer,
    Select,
    String,
    bindparam,
    cast,
    func,
    literal_column,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import InstrumentedAttribute, Session

from db.study.judgments import ADJUDICATOR
from db.tables import (
    AdjudicationView,
    Assignment,
    Example,
    Group,
    Item,
    Judge,
    Judgment,
    OpenedGroup,
    Review,
    StudyItem,
)

STUDY, JUDGE = bindparam("study_id", type_=Integer), bindparam("judge_id", type_=Integer)
NAME, ADJUDICATOR_NAME = bindparam("name", type_=String), bindparam("adjudicator", type_=String)
FREE, PAIRS = "free", "pairs"


@dataclass
class KnownItems:
    """Ids of items, by kind, and of pairs.

    `free`: with a free place, hidden gold or not. `pairs`: known from elsewhere, such as items that
    this person decided, or saw with others' choices, in adjudication. `mine`: given to the judge in
    this study, by state.
    """

    free: set[int] = field(default_factory=set)
    pairs: set[int] = field(default_factory=set)
    mine: dict[str, set[int]] = field(default_factory=dict)

    def in_state(self, state: str) -> int:
        """How many of the judge's assignments are in a state."""
        return len(self.mine.get(state, ()))

    def given(self) -> set[int]:
        """The items that the judge was given, but for expired leases."""
        return set().union(*(ids for state, ids in self.mine.items() if state != "expired"))


def known_items(session: Session, study_id: int, judge_id: int) -> KnownItems:
    """What is free in the study, and what the judge knows."""
    name = session.get_one(Judge, judge_id).person
    values = {
        "study_id": study_id,
        "judge_id": judge_id,
        "name": name,
        "adjudicator": ADJUDICATOR + name,
    }
    ids: dict[str, set[int]] = {}
    for kind, text in session.execute(_statement(), values):
        ids[kind] = {int(one) for one in (text or "").split()}
    free, pairs = (ids.pop(kind) for kind in (FREE, PAIRS))
    return KnownItems(free, pairs, mine=ids)


@cache  # built once: that takes longer than its answer
def _statement() -> CompoundSelect[str, str]:
    is_free = or_(StudyItem.places.is_(None), StudyItem.taken < StudyItem.places)
    return union_all(
        _row(
            FREE,
            StudyItem.item_id,
            StudyItem.study_id == STUDY,
            StudyItem.part != "training",
            is_free,
        ),
        _row(PAIRS, Group.pair_id, Group.id.in_(_groups_known_elsewhere())),
        _mine(),
    )


def _row(
    kind: str, ident: InstrumentedAttribute[int], *conditions: ColumnElement[bool]
) -> Select[str, str]:
    name = literal_column(f"'{kind}'", String)
    return select(name, _in_one_text(ident)).where(*conditions)


def _in_one_text(ident: InstrumentedAttribute[int]) -> ColumnElement[str]:
    return func.aggregate_strings(cast(ident, String), " ")


def _mine() -> Select[str, str]:
    return (
        select(Assignment.state, _in_one_text(Assignment.item_id))
        .where(Assignment.study_id == STUDY, Assignment.judge_id == JUDGE)
        .group_by(Assignment.state)
    )


def _groups_known_elsewhere() -> CompoundSelect[int]:
    """Groups that the judge was given in other studies or as examples, or reviewed, or opened, or
    of which they decided an item, or saw others' choices on one, in adjudication."""
    of_item = select(Item.group_id)
    return union_all(
        of_item.join(Assignment, Assignment.item_id == Item.id).where(
            Assignment.judge_id == JUDGE, Assignment.study_id != STUDY
        ),
        of_item.join(Example, Example.item_id == Item.id).where(Example.judge_id == JUDGE),
        of_item.join(Judgment, Judgment.item_id == Item.id)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Judge.name == ADJUDICATOR_NAME, Judge.kind == "adjudicator"),
        of_item.join(AdjudicationView, AdjudicationView.item_id == Item.id).where(
            AdjudicationView.seen_by == NAME
        ),
        select(Review.group_id).where(Review.reviewed_by == NAME),
        select(OpenedGroup.group_id).where(OpenedGroup.opened_by == NAME),
    )
