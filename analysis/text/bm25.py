"""BM25 over a set of texts as bm25s with PyStemmer does it, the convention of mteb's baseline.

Lucene's variant with k1 1.5 and b 0.75, tokens of two characters or more in lower case, stop words
left out and a Snowball stemmer, both by language. Anserini differs in k1 0.9, b 0.4 and the Porter
stemmer. A text in a language without a stemmer (`NO_LANGUAGE`) is split into words alone, which
keep their combining marks.
`convention_of` is what stands beside a score.
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence
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
K1, B = 1.5, 0.75  # bm25s's defaults, which `Bm25InParts` has to repeat


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


class Bm25InParts:
    """BM25 of some queries over texts that come in parts, of which only one is in memory.

    Every part is seen twice: `count` it, then, when all are counted, `scores`. A score is that of
    `Bm25` over all texts together, to the bit: what a word weighs is counted over all of them.
    """

    def __init__(self, queries: Sequence[str], language: str = "en") -> None:
        self.size, self.language = 0, language
        self._queries = tokens_of(queries, language)
        self._numbers: dict[str, int] = {}  # of the queries' words: others have no score
        for query in self._queries:
            for word in query:
                self._numbers.setdefault(word, len(self._numbers))
        self._words, self._frequency = 0, Counter[int]()

    def count(self, texts: Sequence[str]) -> None:
        """Count a part: texts, words, and in how many texts each word of the queries is."""
        for tokens in tokens_of(texts, self.language):
            self.size += 1
            self._words += len(tokens)
            self._frequency.update(
                {self._numbers[word] for word in tokens if word in self._numbers}
            )

    def scores(self, texts: Sequence[str]) -> Iterator[np.ndarray]:
        """The scores of a part's texts, float32 in their order, for one query after another."""
        tokens = tokens_of(texts, self.language)
        lengths = np.array([len(each) for each in tokens], dtype=np.int64)
        found = np.array(
            [
                self._numbers[word] * len(texts) + place
                for place, each in enumerate(tokens)
                for word in each
                if word in self._numbers
            ],
            dtype=np.int64,
        )
        cells, times = np.unique(found, return_counts=True)
        numbers, places = np.divmod(cells, max(1, len(texts)))
        starts = np.searchsorted(numbers, np.arange(len(self._numbers) + 1))
        often = times.astype(np.float32)
        average = np.float64(self._words) / max(1, self.size)
        saturated = often / (K1 * ((1 - B) + B * lengths[places] / average) + often)
        weights = (self._rarity()[numbers] * saturated).astype(np.float32)
        for query in self._queries:
            scores = np.zeros(len(texts), dtype=np.float32)
            for word in query:
                start, end = starts[self._numbers[word]], starts[self._numbers[word] + 1]
                scores[places[start:end]] += weights[start:end]
            yield scores

    def _rarity(self) -> np.ndarray:
        """The inverse document frequency of the queries' words, Lucene's."""
        of = [self._frequency[number] for number in range(len(self._numbers))]
        return np.array(
            [math.log(1 + (self.size - one + 0.5) / (one + 0.5)) for one in of], dtype=np.float32
        )
