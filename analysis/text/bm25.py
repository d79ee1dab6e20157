"""BM25 over a set of texts (bm25s, Lucene's variant: k1 1.5, b 0.75, English stop words)."""

from collections.abc import Sequence

import numpy as np


class Bm25:
    """An index over texts; `top` ranks them for queries.

    What would surprise: ties and texts that share no word with the query are ranked too (score 0),
    in an order of no meaning, so that every query gets `k` answers.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        import bm25s

        self.size = len(texts)
        tokens = bm25s.tokenize(list(texts), stopwords="en", return_ids=False, show_progress=False)
        self._index = None
        if any(tokens):
            self._index = bm25s.BM25()
            self._index.index(tokens, show_progress=False)

    def top(self, queries: Sequence[str], k: int) -> tuple[np.ndarray, np.ndarray]:
        """Places of the best texts and their scores, best first: both (queries, min(k, texts))."""
        import bm25s

        k = min(k, self.size)
        if self._index is None or k == 0 or not queries:
            places = np.tile(np.arange(k), (len(queries), 1))
            return places, np.zeros((len(queries), k), dtype=np.float32)
        tokens = bm25s.tokenize(
            list(queries), stopwords="en", return_ids=False, show_progress=False
        )
        places, scores = self._index.retrieve(tokens, k=k, show_progress=False)
        return np.asarray(places, dtype=np.int64), np.asarray(scores, dtype=np.float32)

    def scores(self, query: str) -> np.ndarray:
        """The score of every text, float32 (texts,); 0 where no word is shared."""
        import bm25s

        (tokens,) = bm25s.tokenize([query], stopwords="en", return_ids=False, show_progress=False)
        known = [] if self._index is None else [t for t in tokens if t in self._index.vocab_dict]
        if self._index is None or not known:
            return np.zeros(self.size, dtype=np.float32)
        return np.asarray(self._index.get_scores(known), dtype=np.float32)
