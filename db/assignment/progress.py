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
from typing import NamedTuple
from weakref import WeakKeyDictionary

from sqlalchemy import Pool, and_, select
from sqlalchemy.orm import Session

from db.assignment.known_items import KnownItems, known_items
from db.study.studies import get_study
from db.tables import Group, Item, Judgment, StudyItem

MAX_STUDIES = 8  # in memory, of one store; a pair takes about 100 bytes
CHUNK = 5000


class Place(NamedTuple):
    """An item's pair, and its card: the items of one group at one position."""

    pair_id: int
    card: tuple[int, int]


PlacesOfStudy = dict[int, Place]
# By the time of creation, too: SQLite gives the number of a deleted study to another one.
_known: WeakKeyDictionary[Pool, OrderedDict[tuple[int, datetime], PlacesOfStudy]]
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
    that they know, or judged in another study, are not.
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
    return OwnProgress(
        done=known.in_state("done"),
        skipped=known.in_state("skipped"),
        left=open_to_me + known.in_state("leased"),
        seconds_per_item=seconds[len(seconds) // 2] if seconds else None,
    )


def count_eligible(session: Session, study_id: int, judge_id: int) -> int:
    """How many more items the judge can be given; of a pair those of its card in this study."""
    return _count_open(session, study_id, known_items(session, study_id, judge_id))


def _count_open(session: Session, study_id: int, known: KnownItems) -> int:
    given = known.given()
    free = known.free - known.seen - given
    places = _places(session, study_id, free | given)
    card_of: dict[int, tuple[int, int]] = {}  # of each pair, the card that is theirs or the next
    for item_id in [*given, *sorted(free, key=lambda one: places[one].card)]:
        card_of.setdefault(places[item_id].pair_id, places[item_id].card)
    found = (places[item_id] for item_id in free)
    return sum(one.pair_id not in known.pairs and card_of[one.pair_id] == one.card for one in found)


def _places(session: Session, study_id: int, item_ids: set[int]) -> PlacesOfStudy:
    """Pair and card of each of these items of the study, and maybe of others."""
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
            select(Item.id, Group.pair_id, StudyItem.position, Group.id)
            .join(Group, Group.id == Item.group_id)
            .join(StudyItem, and_(StudyItem.item_id == Item.id, StudyItem.study_id == study_id))
            .where(Item.id.in_(missing[start : start + CHUNK]))
        )
        pairs.update({item: Place(pair, (position, group)) for item, pair, position, group in rows})
    return pairs
