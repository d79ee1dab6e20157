"""BM25 over a set of texts as bm25s with PyStemmer does it, the convention of mteb's baseline.

Lucene's variant with k1 1.5 and b 0.75, tokens of two characters or more in lower case, stop words
left out and a Snowball stemmer, both by language. Anserini differs in k1 0.9, b 0.4 and the Porter
stemmer. A text in a language without a stemmer (`NO_LANGUAGE`) is split into words alone, which
keep their combining marks.
`convention_of` is what stands beside a score.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analysis.text.words import TOKEN
from db.errors import BadInput


@dataclass(frozen=True)
class TextLanguage:
    """How texts of a language become tokens: names that bm25s and PyStemmer know."""

    stop_words: str
    stemmer: str


LANGUAGES = {
    "en": TextLanguage("english", "english"),
    "da": TextLanguage("danish", "danish"),
    "de": TextLanguage("german", "german"),
    "es": TextLanguage("spanish", "spanish"),
    "fr": TextLanguage("french", "french"),
    "it": TextLanguage("italian", "italian"),
    "nl": TextLanguage("dutch", "dutch"),
    "no": TextLanguage("norwegian", "norwegian"),
    "pt": TextLanguage("portuguese", "portuguese"),
    "ru": TextLanguage("russian", "russian"),
    "sv": TextLanguage("swedish", "swedish"),
    "tr": TextLanguage("turkish", "turkish"),
}
NO_LANGUAGE = "none"
CONVENTION = "BM25 (bm25s, Lucene, k1 1.5, b 0.75, {})"


def convention_of(language: str = "en") -> str:
    """How BM25 of a language is defined, in words; of `NO_LANGUAGE` without stop words."""
    if language == NO_LANGUAGE:
        return CONVENTION.format("no stop words, no stemmer")
    return CONVENTION.format(f"stop words, Snowball stemmer, language {language}")


def stemmer_of(language: str | None) -> str:
    """The stemmer for texts in a language: NO_LANGUAGE for one that has none, English where the
    language is not known."""
    if language is None:
        return "en"
    return language if language in LANGUAGES else NO_LANGUAGE


def tokens_of(texts: Sequence[str], language: str = "en") -> list[list[str]]:
    """The stemmed tokens of every text. Raises BadInput for a language without a stemmer."""
    import bm25s
    import Stemmer

    known = LANGUAGES.get(language)
    if known is None and language != NO_LANGUAGE:
        named = ", ".join((*LANGUAGES, NO_LANGUAGE))
        raise BadInput(
            f"no stemmer for the language {language!r}",
            f"one of {named}",
            code="stemmer_unknown",
        )
    found: list[list[str]] = bm25s.tokenize(
        list(texts),
        stopwords=known.stop_words if known else [],
        stemmer=Stemmer.Stemmer(known.stemmer) if known else None,
        return_ids=False,
        show_progress=False,
        # bm25s's own pattern splits words at the marks that the scripts of India write vowels with
        **({} if known else {"token_pattern": TOKEN}),
    )
    return found


class Bm25:
    """An index over texts; `top` ranks them for queries, `scores` gives every text's for one.

    Note: ties and texts that share no word with the query are ranked too (score 0), so that every
    query gets `k` answers: by `top` in an order that depends on the machine, by `best` by place.
    """

    def __init__(self, texts: Sequence[str], language: str = "en") -> None:
        import bm25s

        self.size, self.language = len(texts), language
        self.convention = convention_of(language)
        tokens = tokens_of(texts, language)
        self._index = None
        if any(tokens):
            self._index = bm25s.BM25()
            self._index.index(tokens, show_progress=False)

    def top(self, queries: Sequence[str], k: int) -> tuple[np.ndarray, np.ndarray]:
        """Places of the best texts and their scores, best first: both (queries, min(k, texts))."""
        k = min(k, self.size)
        if self._index is None or k == 0 or not queries:
            places = np.tile(np.arange(k), (len(queries), 1))
            return places, np.zeros((len(queries), k), dtype=np.float32)
        tokens = tokens_of(queries, self.language)
        places, scores = self._index.retrieve(tokens, k=k, show_progress=False)
        return np.asarray(places, dtype=np.int64), np.asarray(scores, dtype=np.float32)

    def best(self, query: str, k: int) -> list[int]:
        """Places of the best texts for one query, as `ranked` has them."""
        return [place for place, _ in self.ranked(query, k)]

    def ranked(self, query: str, k: int) -> list[tuple[int, float]]:
        """(place, score) of the best texts for one query, ties by place: the same on every machine.

        numpy's `argpartition`, on which `top` rests, leaves ties in an order that depends on the
        CPU's vector instructions.
        """
        scores = self.scores(query)
        k = min(k, self.size)
        if k == 0:
            return []
        least = np.partition(scores, self.size - k)[self.size - k]
        reached = np.flatnonzero(scores >= least)
        order = np.argsort(-scores[reached], kind="stable")[:k]
        return [(int(place), float(scores[place])) for place in reached[order]]

    def scores(self, query: str) -> np.ndarray:
        """The score of every text for one query, float32 in the order of the texts."""
        if self._index is None:
            return np.zeros(self.size, dtype=np.float32)
        (tokens,) = tokens_of([query], self.language)
        if not tokens:
            return np.zeros(self.size, dtype=np.float32)
        return np.asarray(self._index.get_scores(tokens), dtype=np.float32)
