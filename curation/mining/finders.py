"""The passages of a corpus that are nearest to pairs: by words, and by meaning.

The corpus is read in parts, so that memory does not grow with it: every part is looked through for
all pairs before the next one is read.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from sqlalchemy import func, select

from analysis.embed.embedding import embed_texts
from analysis.embed.neighbours import Best
from analysis.text.bm25 import Bm25InParts, stemmer_of
from curation.mining.request import NegativesMine, Source
from curation.rules.language import LOOKED_AT, language_of_texts
from db.store.store import Store
from db.tables import Passage

PART = 50_000  # passages of a corpus in memory
QUERIES_AT_ONCE = 256
IDS_PER_QUERY = 10_000

Found = list[tuple[int, float]]  # (id of the passage, score), best first
Seen = Callable[[int], None]  # is given how many passages more were looked through


@dataclass(frozen=True)
class SourcePair:
    """A pair that negatives are looked for."""

    query_id: str
    query: str
    passage_id: str
    passage: str


class Corpus:
    """The imported passages of a dataset: what runs wrote is no document of it.

    Those that are imported while it is read are not in it.
    """

    def __init__(self, store: Store, dataset_id: int) -> None:
        self._store, self._dataset_id = store, dataset_id
        of_dataset = (Passage.dataset_id == dataset_id, Passage.origin != "generated")
        with store.read() as session:
            about = select(func.count(), func.min(Passage.id), func.max(Passage.id))
            self.size, self._first, self._last = session.execute(about.where(*of_dataset)).one()

    def parts(self, size: int | None = None) -> Iterator[tuple[np.ndarray, list[str]]]:
        """Ids, int64, and texts of the passages, in the order of their ids."""
        after = (self._first or 0) - 1
        # + 0: by the index of datasets each part would read and sort all that come after it
        of_dataset = (Passage.dataset_id + 0 == self._dataset_id, Passage.origin != "generated")
        while True:
            with self._store.read() as session:
                rows = session.execute(
                    select(Passage.id, Passage.text)
                    .where(*of_dataset, Passage.id > after, Passage.id <= self._last)
                    .order_by(Passage.id)
                    .limit(size or PART)
                ).all()
            if not rows:
                return
            after = rows[-1][0]
            yield np.array([row[0] for row in rows], dtype=np.int64), [row[1] for row in rows]

    def first_texts(self) -> list[str]:
        """Some texts, by which their language is recognised."""
        return next(self.parts(LOOKED_AT), (None, []))[1]

    def passages(self, ids: Sequence[int]) -> dict[int, tuple[str, str]]:
        """Name and text of some passages, by id."""
        found: dict[int, tuple[str, str]] = {}
        wanted = select(Passage.id, Passage.external_id, Passage.text)
        with self._store.read() as session:
            for start in range(0, len(ids), IDS_PER_QUERY):
                some = Passage.id.in_(ids[start : start + IDS_PER_QUERY])
                found |= {row[0]: (row[1], row[2]) for row in session.execute(wanted.where(some))}
        return found


def by_words(
    store: Store, request: NegativesMine, corpus: Corpus, pairs: Sequence[SourcePair], seen: Seen
) -> Best:
    """By BM25; a passage that shares no word with the query is not found."""
    language = request.language or stemmer_of(language_of_texts(corpus.first_texts()))
    index = Bm25InParts([pair.query for pair in pairs], language)
    for _, texts in corpus.parts():
        index.count(texts)
        seen(len(texts))
    best = Best(len(pairs), request.depth, floor=0.0)
    for ids, texts in corpus.parts():
        for query, scores in enumerate(index.scores(texts)):
            best.add(query, scores, ids)
            if query % QUERIES_AT_ONCE == 0:
                seen(0)
        seen(len(texts))
    return best


def by_meaning(
    store: Store, request: NegativesMine, corpus: Corpus, pairs: Sequence[SourcePair], seen: Seen
) -> Best:
    """By the cosine of an embedding model, up to a share of that of P+ (see `below_share`)."""
    queries, right = (
        embed_texts(store, texts, model=request.model)
        for texts in ([pair.query for pair in pairs], [pair.passage for pair in pairs])
    )
    limits = request.margin * np.einsum("ij,ij->i", queries, right)
    best = Best(len(pairs), request.depth)
    for ids, texts in corpus.parts():
        vectors = embed_texts(store, texts, model=request.model)
        for start in range(0, len(pairs), QUERIES_AT_ONCE):
            block = queries[start : start + QUERIES_AT_ONCE] @ vectors.T
            for query, scores in enumerate(block, start):
                if limits[query] > 0:
                    fitting = np.where(scores <= limits[query], scores, -np.inf)
                    best.add(query, fitting, ids)
            seen(0)
        seen(len(texts))
    return best


FINDERS: Mapping[Source, Callable[..., Best]] = {"bm25": by_words, "embedding": by_meaning}
PASSES: Mapping[Source, int] = {"bm25": 2, "embedding": 1}  # how often they read the corpus
