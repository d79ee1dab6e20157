"""Texts that two corpora share: exactly, up to writing, nearly, edited, or in runs of words.

How two texts overlap, the strongest that holds:
    exact        the same text
    normalised   the same letters and digits (case, spacing, punctuation, accents and look-alike
                 letters aside; `analysis.text.folding`)
    near         Jaccard similarity of 5-character shingles ≥ 0.7
    edited       at most every fourth word (rounded up) is another, of less than 8 words every
                 fifth, of more than 12 a third, and a content word is not; or 88 % of the letters
                 are the same (optimal string alignment). Compared are texts of 2 to 12 words and
                 longer ones that share a tenth of their 3-word runs
    ngram        at least half of the shorter one's 8-word runs stand in the other, or 12 of them
                 (an excerpt of about 20 words); a text of 5 to 7 words counts as one run and is
                 looked for whole

`edited` and `ngram` compare like with like only: questions and instructions with each other,
passages and free texts with each other. A five-word question inside an encyclopedia's passage shows
nothing. Runs that stand in more than 100 texts of the other side are boilerplate and do not count.

The second list is indexed once, in arrays (about 10 KB for a passage of 100 words); the first goes
through in blocks, so that its length costs time and no memory. `bench/contamination.py` measures
both, and the recall on edits; docs/contamination.md has the table.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from rapidfuzz.distance import OSA, Levenshtein

from analysis.text.folding import letters, words
from analysis.text.near_duplicates import (
    BANDS,
    THRESHOLD,
    hashed,
    jaccard,
    normal_form,
    text_hashes,
)
from analysis.text.postings import Postings, different, mixed, runs, without_some, word_hashes
from analysis.text.words import FUNCTION_WORDS
from db.corpus.texts import CorpusText

RUN, MIN_WORDS, SHARE, BOILERPLATE = 8, 5, 0.5, 100
EXCERPT_RUNS = 12  # of 19 words in a row; bench/contamination.py heavy
SHORT, FEWEST = 12, 2  # words of a text that is compared with up to two of them left out
EDIT_RUN, EDIT_RUNS_SHARE = 3, 0.1
# At most every fourth word of an edited text is another, of one below 8 words every fifth.
EDITED_EVERY, MIN_EDITED = 4, 8
LONG_EDITED = 0.33  # of a longer one: a word between spaces ("14-inch") can be two words here
SAME_LETTERS = 0.88
BLOCK = 2000
ASKING = ("query", "instruction")
HOW = ("exact", "normalised", "near", "edited", "ngram", "paraphrase")
Candidates = Iterable[tuple[int, int]]


@dataclass(frozen=True)
class Overlap:
    """Two texts, by their places in the two lists, and how they overlap (`share` of 1)."""

    one: int
    other: int
    how: str
    share: float


def overlaps(ours: Sequence[CorpusText], theirs: Sequence[CorpusText]) -> list[Overlap]:
    """Every two texts of the two lists that overlap, by place; each once, the strongest way."""
    return list(stream_overlaps(ours, theirs))


def stream_overlaps(ours: Iterable[CorpusText], theirs: Sequence[CorpusText]) -> Iterator[Overlap]:
    """As `overlaps`, one block of ours after the other."""
    index = OverlapIndex(theirs)
    block: list[CorpusText] = []
    start = 0
    for row in ours:
        block.append(row)
        if len(block) == BLOCK:
            yield from index.find(block, start)
            start += BLOCK
            block = []
    if block:
        yield from index.find(block, start)


class _Side:
    """Texts of one kind (questions and instructions, or passages and free texts) as arrays."""

    def __init__(self, rows: Sequence[CorpusText], asking: bool) -> None:
        places = [place for place, row in enumerate(rows) if (row.field in ASKING) == asking]
        self.places = np.array(places, dtype=np.int64)
        self.hashes, self.lengths = word_hashes(words(rows[place].text) for place in places)

    def runs(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """The runs of `size` words (of `RUN`: each once), and the places of their texts."""
        keys, owners = runs(self.hashes, self.lengths, size)
        if size == RUN:  # only their number counts; of the others it is candidates that count
            keys, owners = different(keys, owners)
        return keys, self.places[owners]

    def whole(self, size: int) -> tuple[np.ndarray, np.ndarray]:
        """Texts of exactly `size` words, each as one run, and their places."""
        keys, owners = runs(self.hashes, self.lengths, size)
        exact = self.lengths[owners] == size
        return keys[exact], self.places[owners[exact]]

    def shortened(self) -> tuple[np.ndarray, np.ndarray]:
        """Short texts with up to two words left out, and the places of these texts."""
        keys, owners = without_some(self.hashes, self.lengths, FEWEST, SHORT)
        return keys, self.places[owners]


class _KindIndex:
    """The texts of one kind of the second list, ready to be looked up."""

    def __init__(self, side: _Side, count: int) -> None:
        self.runs = Postings(*side.runs(RUN))
        self.edit_runs = Postings(*side.runs(EDIT_RUN))
        self.shortened = Postings(*side.shortened())
        self.whole = {size: Postings(*side.whole(size)) for size in range(MIN_WORDS, RUN)}
        self.inside = {size: Postings(*side.runs(size)) for size in range(MIN_WORDS, RUN)}
        self.number_of_runs = _number_of(side.runs(RUN)[1], count)
        self.number_of_edit_runs = _number_of(side.runs(EDIT_RUN)[1], count)


class OverlapIndex:
    """The second list of texts, indexed; `find` compares blocks of the first with it."""

    def __init__(self, theirs: Sequence[CorpusText]) -> None:
        self.theirs = theirs
        self._letters = Postings(*_letters(theirs))
        self._bands = Postings(*_bands(theirs))
        self._kinds = {
            asking: _KindIndex(_Side(theirs, asking), len(theirs)) for asking in (True, False)
        }

    def find(self, ours: Sequence[CorpusText], start: int = 0) -> list[Overlap]:
        """Overlaps of a block, whose first text has the place `start`; by place."""
        found: dict[tuple[int, int], Overlap] = {}
        for overlap in (*self._same(ours), *self._near(ours), *self._edited_and_runs(ours)):
            key = (overlap.one, overlap.other)
            known = found.get(key)
            if known is None or HOW.index(overlap.how) < HOW.index(known.how):
                found[key] = overlap
        return [
            Overlap(start + one, other, found[one, other].how, found[one, other].share)
            for one, other in sorted(found)
        ]

    def _same(self, ours: Sequence[CorpusText]) -> Iterator[Overlap]:
        for place, other in _unique(*self._letters.pairs(*_letters(ours), len(self.theirs))):
            one, two = ours[place].text, self.theirs[other].text
            if letters(one) == letters(two):
                yield Overlap(place, other, "exact" if one == two else "normalised", 1.0)

    def _near(self, ours: Sequence[CorpusText]) -> Iterator[Overlap]:
        for one, other in _unique(*self._bands.pairs(*_bands(ours), BOILERPLATE)):
            forms = normal_form(ours[one].text), normal_form(self.theirs[other].text)
            share = jaccard(*forms)
            if share >= THRESHOLD and forms[0] != forms[1]:
                yield Overlap(one, other, "near", share)

    def _edited_and_runs(self, ours: Sequence[CorpusText]) -> Iterator[Overlap]:
        for asking, index in self._kinds.items():
            side = _Side(ours, asking)
            if not len(side.places):
                continue
            yield from self._edited(
                ours, _unique(*index.shortened.pairs(*side.shortened(), BOILERPLATE))
            )
            few = _shared(side, EDIT_RUN, index.edit_runs, index.number_of_edit_runs, len(ours))
            yield from self._edited(
                ours, ((one, other) for one, other, share, _ in few if share >= EDIT_RUNS_SHARE)
            )
            shared = _shared(side, RUN, index.runs, index.number_of_runs, len(ours))
            for one, other, share, count in shared:
                if share >= SHARE or count >= EXCERPT_RUNS:
                    yield Overlap(one, other, "ngram", share)
            for size in range(MIN_WORDS, RUN):
                pairs = (
                    index.whole[size].pairs(*side.runs(size), len(self.theirs)),
                    index.inside[size].pairs(*side.whole(size), len(self.theirs)),
                )
                for one, other in (*_unique(*pairs[0]), *_unique(*pairs[1])):
                    yield Overlap(one, other, "ngram", 1.0)

    def _edited(self, ours: Sequence[CorpusText], candidates: Candidates) -> Iterator[Overlap]:
        for one, other in candidates:
            share = edit_share(ours[one].text, self.theirs[other].text)
            if share is not None:
                yield Overlap(one, other, "edited", share)


def edit_share(one: str, other: str) -> float | None:
    """How much of two texts is the same after a light edit; None where they are two texts.

    The share of words (of the longer text) that need no change, else the share of letters.
    """
    a, b = _words(one), _words(other)
    longest = max(len(a), len(b))
    if longest:
        changed = Levenshtein.distance(a, b)
        every = EDITED_EVERY if longest >= MIN_EDITED else EDITED_EVERY + 1
        most = -(-longest // every) if longest <= SHORT else int(LONG_EDITED * longest)
        if changed <= most and content_words_of(a) & content_words_of(b):
            return 1 - changed / longest
    first, second = "".join(a), "".join(b)
    least = int((1 - SAME_LETTERS) * max(len(first), len(second)))
    distance = OSA.distance(first, second, score_cutoff=least)
    return 1 - distance / max(len(first), len(second), 1) if distance <= least else None


def content_words_of(tokens: Sequence[str]) -> set[str]:
    """The words that are no function words."""
    return {word for word in tokens if word not in FUNCTION_WORDS}


@lru_cache(maxsize=20_000)
def _words(text: str) -> tuple[str, ...]:
    return tuple(words(text))


def _shared(
    side: _Side, size: int, index: Postings, theirs: np.ndarray, ours: int
) -> list[tuple[int, int, float, int]]:
    """Our and their text, the share of the runs of the shorter one that both hold, their number."""
    keys, owners = side.runs(size)
    number = _number_of(owners, ours)
    pairs, counts = np.unique(_codes(*index.pairs(keys, owners, BOILERPLATE)), return_counts=True)
    one, other = pairs >> 32, pairs & 0xFFFFFFFF
    shares = counts / np.minimum(number[one], theirs[other])
    found = (one.tolist(), other.tolist(), shares.tolist(), counts.tolist())
    return list(zip(*found, strict=True))


def _unique(one: np.ndarray, other: np.ndarray) -> list[tuple[int, int]]:
    """The different pairs."""
    pairs = np.unique(_codes(one, other))
    return list(zip((pairs >> 32).tolist(), (pairs & 0xFFFFFFFF).tolist(), strict=True))


def _codes(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """A pair of places as one number: sorting numbers is far faster than sorting columns."""
    codes: np.ndarray = (one << 32) | other
    return codes


def _number_of(owners: np.ndarray, count: int) -> np.ndarray:
    return np.bincount(owners, minlength=count)


def _letters(rows: Sequence[CorpusText]) -> tuple[np.ndarray, np.ndarray]:
    """A key of the letters of every text, and its place."""
    keys = text_hashes(letters(row.text) for row in rows)
    return keys.view(np.uint64)[::2], np.arange(len(rows))


def _bands(rows: Sequence[CorpusText]) -> tuple[np.ndarray, np.ndarray]:
    """Keys of the MinHash bands of every text, and its place."""
    bands = hashed((normal_form(row.text) for row in rows), len(rows))[:, 2:]
    keys = mixed(bands + np.arange(BANDS, dtype=np.uint64))
    return keys.ravel(), np.repeat(np.arange(len(rows)), BANDS)
