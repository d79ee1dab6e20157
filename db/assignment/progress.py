"""A judge's own progress in a study, and what is left for them.

What is left is counted after every answer, so the count does not ask the store for the pair of each
free item: the pairs of a study's items are kept in memory. They never change, as neither an item of
a study nor its group is deleted before the study is. `db.assignment.eligibility` chooses by the
same rule, item by item; `tests/db/test_open_pairs.py` compares both with a plain count.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from threading import Lock
from weakref import WeakKeyDictionary

from sqlalchemy import (
    Integer,
    Pool,
    Select,
    String,
    bindparam,
    cast,
    func,
    or_,
    select,
    union_all,
)
from sqlalchemy.orm import Session

from db.assignment.eligibility import free_gold, given_parts
from db.assignment.gold_places import planned_gold
from db.study.judgments import ADJUDICATOR
from db.study.rules import rules_of
from db.study.studies import get_study
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
MAX_STUDIES = 8  # in memory, of one store; a pair takes about 100 bytes
CHUNK = 5000

PairsOfStudy = dict[int, int]
# By the time of creation, too: SQLite gives the number of a deleted study to another one.
_known: WeakKeyDictionary[Pool, OrderedDict[tuple[int, datetime], PairsOfStudy]]
_known = WeakKeyDictionary()
_lock = Lock()


@dataclass(frozen=True)
class OwnProgress:
    """One judge's progress: answered, skipped, still open, and the pace."""

    done: int
    skipped: int
    left: int
    seconds_per_item: float | None


def own_progress(session: Session, study_id: int, judge_id: int) -> OwnProgress:
    """A judge's progress in a study; the pace is the median of seconds from shown to decided.

    `left` counts what they would be given if no one else took a place meanwhile: items of pairs
    that they know, or judged in another study, are not. It counts hidden gold from the start, so
    that giving one changes nothing in the total.
    """
    states = dict(
        session.execute(
            select(Assignment.state, func.count())
            .where(Assignment.study_id == study_id, Assignment.judge_id == judge_id)
            .group_by(Assignment.state)
        ).all()
    )
    open_to_me = count_eligible(session, study_id, judge_id)
    gold = _gold_to_come(session, study_id, judge_id, open_to_me)
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
        left=open_to_me + gold + states.get("leased", 0),
        seconds_per_item=seconds[len(seconds) // 2] if seconds else None,
    )


def _gold_to_come(session: Session, study_id: int, judge_id: int, open_to_me: int) -> int:
    """How many hidden gold items the judge will still be given."""
    free = len(free_gold(session, study_id, judge_id))
    if not free:
        return 0
    parts = given_parts(session, study_id, judge_id)
    given = parts.get("gold", 0)
    every = rules_of(get_study(session, study_id)).gold_every
    others = parts.get("main", 0) + open_to_me
    return planned_gold(others, given=given, free=free, every=every) - given


def count_eligible(session: Session, study_id: int, judge_id: int) -> int:
    """How many more items of part main the judge can be given: one of each pair.

    A pair of which they were given a *gold* item counts on: otherwise the count would fall by one
    where a hidden gold item is given. (Sampled gold is of no pair of the study; gold from a file
    can be.)
    """
    name = session.get_one(Judge, judge_id).name
    values = {
        "study_id": study_id,
        "judge_id": judge_id,
        "name": name,
        "adjudicator": ADJUDICATOR + name,
    }
    free = {int(one) for one in (session.scalar(_free(), values) or "").split()}
    free -= set(session.scalars(_seen(), values))
    given = set(session.scalars(_given(), values))
    pair_of = _pairs(session, study_id, free | given)
    known = {pair_of[item_id] for item_id in given}
    known.update(session.scalars(_known_elsewhere(), values))
    return len({pair_of[item_id] for item_id in free} - known)


@cache
def _free() -> Select[str]:
    """The items of part main with a free place, in one text: as rows they take thrice the time."""
    ids = func.aggregate_strings(cast(StudyItem.item_id, String), " ")
    return select(ids).where(
        StudyItem.study_id == STUDY,
        StudyItem.part == "main",
        or_(StudyItem.places.is_(None), StudyItem.taken < StudyItem.places),
    )


@cache
def _seen() -> Select[int]:
    """The items that the person decided, or saw others' choices on, in adjudication."""
    decided = (
        select(Judgment.item_id)
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Judge.name == ADJUDICATOR_NAME)
    )
    viewed = select(AdjudicationView.item_id).where(AdjudicationView.seen_by == NAME)
    return select(Item.id).where(Item.id.in_(union_all(decided, viewed)))


@cache
def _given() -> Select[int]:
    """The items of the study that the judge was given, but for gold and expired leases."""
    gold = select(StudyItem.item_id).where(StudyItem.study_id == STUDY, StudyItem.part == "gold")
    return select(Assignment.item_id).where(
        Assignment.study_id == STUDY,
        Assignment.judge_id == JUDGE,
        Assignment.state != "expired",
        Assignment.item_id.not_in(gold),
    )


@cache
def _known_elsewhere() -> Select[int]:
    """Pairs that the judge was given in other studies or as examples, or reviewed, or opened."""
    of_item = select(Item.group_id)
    groups = (
        of_item.join(Assignment, Assignment.item_id == Item.id).where(
            Assignment.judge_id == JUDGE, Assignment.study_id != STUDY
        ),
        of_item.join(Example, Example.item_id == Item.id).where(Example.judge_id == JUDGE),
        select(Review.group_id).where(Review.reviewed_by == NAME),
        select(OpenedGroup.group_id).where(OpenedGroup.opened_by == NAME),
    )
    return select(Group.pair_id).where(Group.id.in_(union_all(*groups)))


def _pairs(session: Session, study_id: int, item_ids: set[int]) -> PairsOfStudy:
    """The pair of each of these items of the study, and maybe of others."""
    pool = session.get_bind().engine.pool  # the engine itself may be one of a single transaction
    key = (study_id, get_study(session, study_id).created_at)
    with _lock:
        studies = _known.setdefault(pool, OrderedDict())
        pairs = studies.setdefault(key, {})
        studies.move_to_end(key)
        while len(studies) > MAX_STUDIES:
            studies.popitem(last=False)
    missing = sorted(item_ids - pairs.keys())
    for start in range(0, len(missing), CHUNK):
        rows = session.execute(
            select(Item.id, Group.pair_id)
            .join(Group, Group.id == Item.group_id)
            .where(Item.id.in_(missing[start : start + CHUNK]))
        )
        pairs.update(dict(rows.all()))
    return pairs
