"""Near-duplicate texts: equal up to case, spacing and punctuation, or of high Jaccard similarity.

A text is reduced to its letters and digits (NFKC, case-folded, nothing else: "don 't" and "Don't"
are one), and that to the set of its 5-character shingles. Candidates come from MinHash bands
(64 values, 16 bands of 4: a pair of Jaccard 0.7 is met with probability 0.988, one of 0.8 with
0.9998); each candidate pair is then checked on the shingles themselves, so nothing is called a
near-duplicate that is not. All of it is numpy over hashes of bytes; the numbers are the same in
every process.
"""

import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from analysis.text.folding import SEPARATORS
from analysis.text.postings import mixed

SHINGLE = 5
THRESHOLD = 0.7
BANDS, ROWS = 16, 4
MANY = 64

_random = np.random.default_rng(20251)
_FACTORS = _random.integers(0, 2**64, size=BANDS * ROWS, dtype=np.uint64) | np.uint64(1)
_OFFSETS = _random.integers(0, 2**64, size=BANDS * ROWS, dtype=np.uint64)
_POWERS = np.array([pow(1_099_511_628_211, power, 2**64) for power in range(SHINGLE)], np.uint64)


def near_duplicate_keys(texts: Sequence[str], *, threshold: float = THRESHOLD) -> list[int]:
    """A number per text, the same for near-duplicates: the place of the first text of its cluster.

    Near-duplication is closed transitively. Independent of the order of the texts up to the
    numbering, except that in a band met by more than `MANY` texts each is compared with the first
    `MANY` only.
    """
    places_by_form: dict[str, list[int]] = defaultdict(list)
    for place, text in enumerate(texts):
        places_by_form[normal_form(text)].append(place)
    forms = list(places_by_form)
    parents = list(range(len(forms)))
    for bucket in _buckets(forms):
        for later, one in enumerate(bucket):
            for other in bucket[: min(later, MANY)]:
                roots = _root(parents, one), _root(parents, other)
                if roots[0] != roots[1] and jaccard(forms[one], forms[other]) >= threshold:
                    parents[max(roots)] = min(roots)
    keys = [0] * len(texts)
    for number, form in enumerate(forms):
        first = places_by_form[forms[_root(parents, number)]][0]
        for place in places_by_form[form]:
            keys[place] = first
    return keys


def near_pairs(
    forms: Sequence[str], *, threshold: float = THRESHOLD
) -> list[tuple[int, int, float]]:
    """Places of every two different normal forms that are near-duplicates, and their Jaccard."""
    found: dict[tuple[int, int], float] = {}
    for bucket in _buckets(forms):
        for later, one in enumerate(bucket):
            for other in bucket[: min(later, MANY)]:
                pair = (min(one, other), max(one, other))
                if pair not in found:
                    found[pair] = jaccard(forms[one], forms[other])
    return [(*pair, share) for pair, share in sorted(found.items()) if share >= threshold]


def normal_form(text: str) -> str:
    """The text's letters and digits, NFKC and case-folded; a text without any: itself, stripped."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return SEPARATORS.sub("", folded) or text.strip()


def jaccard(one: str, other: str) -> float:
    """Shared shingles of two normal forms over all their shingles."""
    a, b = _shingles(one), _shingles(other)
    shared = len(np.intersect1d(a, b, assume_unique=True))
    return shared / (len(a) + len(b) - shared)


@lru_cache(maxsize=4096)
def _shingles(form: str) -> np.ndarray:
    """Hashes of the form's different shingles, sorted: uint64."""
    return np.unique(_hashes(form))


def _hashes(form: str) -> np.ndarray:
    """A hash per shingle, in their order: uint64."""
    data = np.frombuffer(form.encode(), dtype=np.uint8).astype(np.uint64)
    if len(data) < SHINGLE:
        data = np.pad(data, (0, SHINGLE - len(data)))
    count = len(data) - SHINGLE + 1
    keys = data[:count] * _POWERS[0]
    for step in range(1, SHINGLE):
        keys += data[step : step + count] * _POWERS[step]
    return mixed(keys)


def _buckets(forms: Sequence[str]) -> Iterator[list[int]]:
    """Places of the forms that share a band of their signatures, a list per band value.

    Band by band in sorted arrays, 256 bytes a form: a table of all bands took 5 kB.
    """
    bands = np.empty((len(forms), BANDS, ROWS), dtype=np.uint32)
    for place, form in enumerate(forms):
        bands[place] = signature(form)
    for band in range(BANDS):
        values = np.ascontiguousarray(bands[:, band]).view(np.uint64)
        order = np.lexsort(values.T)  # stable: the places of a bucket ascend
        is_same = (values[order[1:]] == values[order[:-1]]).all(axis=1)
        edges = np.flatnonzero(np.diff(is_same, prepend=False, append=False))
        for first, last in edges.reshape(-1, 2):
            yield order[first : last + 1].tolist()


def signature(form: str) -> np.ndarray:
    """The MinHash signature of a normal form: uint32, shape (BANDS, ROWS)."""
    hashed = _hashes(form)[:, None] * _FACTORS + _OFFSETS  # a shingle twice: the same minimum
    lowest: np.ndarray = (hashed >> np.uint64(32)).min(axis=0).astype(np.uint32)
    return lowest.reshape(BANDS, ROWS)


def _root(parents: list[int], place: int) -> int:
    while parents[place] != place:
        parents[place] = parents[parents[place]]
        place = parents[place]
    return place
