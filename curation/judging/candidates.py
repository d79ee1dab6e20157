"""Random candidates of an item: passages of the same dataset that do not answer its query.

Sampled by position in the order of ids, seeded by the run and the pair: the same sample in every
worker and after every resume. Never P+, a near-duplicate of P+, or the passage of another pair with
the same query.

A passage in another language than the pair's (its passage's, read with its query where that is
unclear) gives itself away, so such are passed over
(`validation.distractors_in_language`): where the first ones of the sample do, up to MAX_TRIED more
are tried, and those in other languages fill up what is missing then. A text whose language is
unclear counts as in the pair's, but where one is passed over it comes after those sought, for it
may be in the other language, too. Where nothing is passed over, the sample is what it was before
there was this rule, so that stored answers are found again.
"""

import hashlib
import random
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from analysis.text.words import words
from curation.recipe.recipe import Recipe
from curation.recipe.settings import Validation
from curation.rules.language import language_of, language_of_pair, language_of_texts
from db.corpus.texts import passage_texts
from db.errors import BadInput
from db.run.group_queue import ClaimedGroup
from db.tables import Pair, Passage

SPARE = 4
ALIKE = 0.5
MAX_TRIED = 2000  # a language with 0.5 % of the passages has 10 among them
MAX_HARD = 200
TRIED_AT_ONCE = 50
MAX_LANGUAGES = 200_000  # remembered by a worker, some 20 MB


@dataclass(frozen=True)
class Pool:
    """The imported passages of a dataset by id, and which passages share a query.

    `languages` remembers the languages of those that were looked at.
    """

    dataset_id: int
    ids: "array[int]"
    answers: dict[str, set[int]]
    languages: dict[int, str | None] = field(default_factory=dict)


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
            f"the dataset has {len(ids)} passages: too few for {distractors} random candidates",
            "import more passages or set validation.distractors lower",
            code="passages_too_few",
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

    All texts of the pool are read once; the index stays in memory. `by_language`: stop words and
    stemmer are of the language that most of them are in, else English.
    """

    def __init__(self, session: Session, pool: Pool, *, by_language: bool = False) -> None:
        from analysis.text.bm25 import Bm25, stemmer_of

        rows = session.execute(
            select(Passage.text)
            .where(Passage.dataset_id == pool.dataset_id, Passage.origin != "generated")
            .order_by(Passage.id)
        )
        texts = [text for (text,) in rows]
        language = stemmer_of(language_of_texts(texts)) if by_language else "en"
        self._pool, self._index = pool, Bm25(texts, language)

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


def hard_passages(session: Session, pool: Pool, recipe: Recipe) -> HardPassages | None:
    """The pool under BM25 where a recipe adds such passages."""
    if not recipe.validation.hard_distractors:
        return None
    return HardPassages(session, pool, by_language=recipe.filters.in_pair_language)


def choose_for(
    session: Session,
    pool: Pool,
    hard: HardPassages | None,
    groups: Sequence[ClaimedGroup],
    *,
    seed: int,
    rules: Validation,
) -> list[list[tuple[int, str]]]:
    """The passages added to those of each group, as (id, text): random ones, then hard ones."""
    count, hard_count = rules.counts
    drawn = [sample_candidates(pool, group, count=count, seed=seed) for group in groups]
    found = [[] for _ in groups] if hard is None else hard.find(groups, count=hard_count)
    texts = passage_texts(session, sorted({one for ids in (*drawn, *found) for one in ids}))
    result: list[list[tuple[int, str]]] = []
    for group, ids, hard_ids in zip(groups, drawn, found, strict=True):
        if rules.distractors_in_language and (
            language := language_of_pair(group.query, group.passage)
        ):
            speaking = _Speaking(session, pool, language, texts)
            further = speaking.read(further_candidates(pool, group, ids, seed=seed))
            ids = speaking.first(ids, count, further)
            if hard is not None:  # random passages where BM25 finds too few in the language
                found_later = (ids for one in [group] for ids in hard.find([one], count=MAX_HARD))
                more = speaking.read(chain.from_iterable(found_later))
                hard_ids = speaking.first(hard_ids, hard_count, chain(more, further))
        chosen = choose(group, ids, texts, count=count)
        chosen += choose(group, hard_ids, texts, count=hard_count, beside=chosen)
        result.append([(one, texts[one]) for one in chosen])
    return result


@dataclass(frozen=True)
class _Speaking:
    """Passages in one language; `texts` gets what is read on the way."""

    session: Session
    pool: Pool
    language: str
    texts: dict[int, str]

    def first(self, ids: Sequence[int], count: int, further: Iterator[int]) -> list[int]:
        """Those in the language or an unclear one, in their order, then the others.

        Where one of the first `count` is in another language, those of an unclear one come after
        the ones sought: an English list of foods gives itself away among German texts. While the
        first are fewer than `count` and a spare, those in the language are sought among `further`.
        """
        fitting = [one for one in ids if self._language(one) in (self.language, None)]
        others = [one for one in ids if one not in fitting]
        unclear: list[int] = []
        if fitting[:count] != list(ids[:count]):
            unclear = [one for one in fitting if self._language(one) is None]
            fitting = [one for one in fitting if one not in unclear]
        while others and len(fitting) < count + SPARE and (one := next(further, None)) is not None:
            if self._language(one) == self.language and one not in fitting:
                fitting.append(one)
        return fitting + unclear + others

    def read(self, ids: Iterable[int]) -> Iterator[int]:
        """The ids, whose texts are read as they come, some at once."""
        rest = iter(ids)
        while part := list(islice(rest, TRIED_AT_ONCE)):
            missing = [one for one in part if one not in self.texts]
            self.texts.update(passage_texts(self.session, missing))
            yield from part

    def _language(self, passage_id: int) -> str | None:
        known = self.pool.languages
        if passage_id not in known:
            if len(known) >= MAX_LANGUAGES:
                known.clear()
            known[passage_id] = language_of(self.texts[passage_id])
        return known[passage_id]


def further_candidates(
    pool: Pool, group: ClaimedGroup, sampled: Sequence[int], *, seed: int
) -> Iterator[int]:
    """More ids to choose from, in an order of their own: at most MAX_TRIED."""
    chance = seeded(seed, group.query_id, "further distractors")
    seen = {*sampled, *answering_passages(pool, group)}
    for place in chance.sample(range(len(pool.ids)), min(len(pool.ids), MAX_TRIED)):
        if pool.ids[place] not in seen:
            yield pool.ids[place]


def answering_passages(pool: Pool, group: ClaimedGroup) -> set[int]:
    """The passages that answer the group's query."""
    return pool.answers.get(group.query, set()) | {group.passage_id}


def seeded(seed: int, *names: str) -> random.Random:
    """A random generator that depends on the seed and the names alone."""
    return random.Random(hashlib.sha256("\0".join([str(seed), *names]).encode()).digest())
