"""Random candidates of an item: passages of the same dataset that do not answer its query.

Sampled by position in the order of ids, seeded by the run and the pair: the same sample in every
worker and after every resume. Never P+, a near-duplicate of P+, or the passage of another pair with
the same query.
"""

import hashlib
import random
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from analysis.text.words import words
from db.corpus.texts import passage_texts
from db.errors import BadInput
from db.run.group_queue import ClaimedGroup
from db.tables import Pair, Passage

SPARE = 4
ALIKE = 0.5


@dataclass(frozen=True)
class Pool:
    """The imported passages of a dataset by id, and which passages share a query."""

    dataset_id: int
    ids: "array[int]"
    answers: dict[str, set[int]]


def load_pool(session: Session, dataset_id: int, *, distractors: int) -> Pool:
    """The pool of a dataset. Raises BadInput if it is too small for that many distractors."""
    ids = array(
        "q",
        session.scalars(
            select(Passage.id)
            .where(Passage.dataset_id == dataset_id, Passage.origin != "generated")
            .order_by(Passage.id)
        ),
    )
    if len(ids) <= distractors:
        raise BadInput(
            f"the dataset has {len(ids)} passages: too few for {distractors} random candidates; "
            "import more passages or set validation.distractors lower"
        )
    repeated = (
        select(Pair.query)
        .where(Pair.dataset_id == dataset_id)
        .group_by(Pair.query)
        .having(func.count() > 1)
    )
    answers: dict[str, set[int]] = {}
    rows = session.execute(
        select(Pair.query, Pair.passage_id).where(
            Pair.dataset_id == dataset_id, Pair.query.in_(repeated)
        )
    )
    for query, passage_id in rows:
        answers.setdefault(query, set()).add(passage_id)
    return Pool(dataset_id, ids, answers)


def sample_candidates(pool: Pool, group: ClaimedGroup, *, count: int, seed: int) -> list[int]:
    """Ids to choose from, in the order to try them: a few more than `count`."""
    chance = seeded(seed, group.query_id, "distractors")
    number = min(len(pool.ids), count + SPARE + 1)
    sampled = [pool.ids[place] for place in chance.sample(range(len(pool.ids)), number)]
    return [
        passage_id for passage_id in sampled if passage_id not in answering_passages(pool, group)
    ]


def choose(
    group: ClaimedGroup,
    sampled: Sequence[int],
    texts: Mapping[int, str],
    *,
    count: int,
    beside: Sequence[int] = (),
) -> list[int]:
    """The first `count` sampled passages that are not near-duplicates of P+ or each other.

    Nor of those chosen already, given as `beside`.
    """
    chosen: list[int] = []
    taken = [group.passage, *(texts[passage_id] for passage_id in beside)]
    for passage_id in sampled:
        if len(chosen) == count:
            break
        text = texts[passage_id]
        if not any(is_near_duplicate(text, other) for other in taken):
            chosen.append(passage_id)
            taken.append(text)
    return chosen


def is_near_duplicate(one: str, other: str) -> bool:
    """Whether two texts are near-duplicates, as defined in `analysis.text.near_duplicates`.

    Texts that share few words cannot be; numpy is loaded for the others only.
    """
    if one == other:
        return True
    shorter, longer = sorted((len(one), len(other)))
    if shorter < ALIKE * longer:
        return False
    left, right = set(words(one)), set(words(other))
    if len(left & right) < ALIKE * len(left | right):
        return False
    from analysis.text.near_duplicates import THRESHOLD, jaccard, normal_form

    forms = normal_form(one), normal_form(other)
    return forms[0] == forms[1] or jaccard(*forms) >= THRESHOLD


class HardPassages:
    """The pool under BM25: passages that share words with the query without answering it.

    All texts of the pool are read once; the index stays in memory.
    """

    def __init__(self, session: Session, pool: Pool) -> None:
        from analysis.text.bm25 import Bm25

        rows = session.execute(
            select(Passage.text)
            .where(Passage.dataset_id == pool.dataset_id, Passage.origin != "generated")
            .order_by(Passage.id)
        )
        self._pool, self._index = pool, Bm25([text for (text,) in rows])

    def find(self, groups: Sequence[ClaimedGroup], *, count: int) -> list[list[int]]:
        """Ids to choose from for each group, best first: a few more than `count`, no answers."""
        return [
            [
                self._pool.ids[place]
                for place in self._index.best(group.query, count + SPARE + 1)
                if self._pool.ids[place] not in answering_passages(self._pool, group)
            ]
            for group in groups
        ]


def choose_for(
    session: Session,
    pool: Pool,
    hard: HardPassages | None,
    groups: Sequence[ClaimedGroup],
    *,
    seed: int,
    counts: tuple[int, int],
) -> list[list[tuple[int, str]]]:
    """The passages added to those of each group, as (id, text): `counts` random and hard ones."""
    drawn = [sample_candidates(pool, group, count=counts[0], seed=seed) for group in groups]
    found = [[] for _ in groups] if hard is None else hard.find(groups, count=counts[1])
    texts = passage_texts(session, sorted({one for ids in (*drawn, *found) for one in ids}))
    result: list[list[tuple[int, str]]] = []
    for group, ids, hard_ids in zip(groups, drawn, found, strict=True):
        chosen = choose(group, ids, texts, count=counts[0])
        chosen += choose(group, hard_ids, texts, count=counts[1], beside=chosen)
        result.append([(one, texts[one]) for one in chosen])
    return result


def answering_passages(pool: Pool, group: ClaimedGroup) -> set[int]:
    """The passages that answer the group's query."""
    return pool.answers.get(group.query, set()) | {group.passage_id}


def seeded(seed: int, *names: str) -> random.Random:
    """A random generator that depends on the seed and the names alone."""
    return random.Random(hashlib.sha256("\0".join([str(seed), *names]).encode()).digest())
