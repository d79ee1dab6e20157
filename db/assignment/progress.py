"""A judge's own progress in a study, and what is left for them.

What is left is counted after every answer: with one statement, and without asking the store for the
pair of each free item: the pairs of a study's items are kept in memory. They never change, as
neither an item of a study nor its group is deleted before the study is. `db.assignment.eligibility`
chooses by the same rule, item by item; `tests/db/test_open_pairs.py` compares both with a plain
count.
"""

from collections import OrderedDict
from dataclasses import dataclass
from datetime import datetime
from threading import Lock
from weakref import WeakKeyDictionary

from sqlalchemy import Pool, select
from sqlalchemy.orm import Session

from db.assignment.known_items import KnownItems, known_items
from db.study.studies import get_study
from db.tables import Group, Item, Judgment, StudyJudge

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
    that they know, or judged in another study, are not, nor what exceeds their quota.
    """
    known = known_items(session, study_id, judge_id)
    open_to_me = _count_open(session, study_id, known)
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
    done, leased = known.in_state("done"), known.in_state("leased")
    member = session.get(StudyJudge, (study_id, judge_id))
    if member is not None and member.quota is not None:
        open_to_me = min(open_to_me, max(0, member.quota - done - leased))
    return OwnProgress(
        done=done,
        skipped=known.in_state("skipped"),
        left=open_to_me + leased,
        seconds_per_item=seconds[len(seconds) // 2] if seconds else None,
    )


def _count_open(session: Session, study_id: int, known: KnownItems) -> int:
    """How many more items the judge can be given: of each pair one, or those of one card."""
    free, given = known.free, known.given()
    pair_of = _pairs(session, study_id, free | given)
    if get_study(session, study_id).settings.get("per_card", 1) > 1:  # a pair's items are one card
        return sum(pair_of[item_id] not in known.pairs for item_id in free - given)
    pairs = {pair_of[item_id] for item_id in given} | known.pairs
    return len({pair_of[item_id] for item_id in free} - pairs)


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
