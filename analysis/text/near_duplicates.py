"""Near-duplicate texts: equal up to case, spacing and punctuation, or of high Jaccard similarity.

A text is reduced to its letters and digits (NFKC, case-folded, nothing else: "don 't" and "Don't"
are one), and that to the set of its 5-character shingles. Candidates come from MinHash bands
(64 values, 16 bands of 4: a pair of Jaccard 0.7 is met with probability 0.988, one of 0.8 with
0.9998); each candidate pair is then checked on the shingles themselves, so nothing is called a
near-duplicate that is not. All of it is numpy over hashes of bytes; the numbers are the same in
every process.
"""

import unicodedata
from array import array
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache, partial
from hashlib import blake2b

import numpy as np

from analysis.parts import Keep, computed
from analysis.text.folding import SEPARATORS
from analysis.text.postings import mixed

SHINGLE = 5
THRESHOLD = 0.7
BANDS, ROWS = 16, 4
MANY, AT_ONCE = 64, 1024
KEPT = 50_000  # texts of a part: some 4 s

_random = np.random.default_rng(20251)
_FACTORS = _random.integers(0, 2**64, size=BANDS * ROWS, dtype=np.uint64) | np.uint64(1)
_OFFSETS = _random.integers(0, 2**64, size=BANDS * ROWS, dtype=np.uint64)
_POWERS = np.array([pow(1_099_511_628_211, power, 2**64) for power in range(SHINGLE)], np.uint64)


def near_duplicate_keys(
    texts: Sequence[str], *, threshold: float = THRESHOLD, keep: Keep = computed
) -> list[int]:
    """A number per text, the same for near-duplicates: the place of the first text of its cluster.

    Near-duplication is closed transitively. Independent of the order of the texts up to the
    numbering, except that in a band met by more than `MANY` texts each is compared with the first
    `MANY` only. `keep`: of `Parts`, to go on after a kill.
    """
    whole = np.empty((len(texts), 2 + BANDS), dtype=np.uint64)
    for start in range(0, len(texts), KEPT):
        places = range(start, min(start + KEPT, len(texts)))
        forms = (normal_form(texts[place]) for place in places)
        whole[start : places.stop] = keep(f"hashes-{start}", partial(hashed, forms, len(places)))
    hashes, bands = whole[:, :2], whole[:, 2:]
    first_of = first_places(hashes)
    firsts = np.flatnonzero(first_of == np.arange(len(texts)))  # of each form
    shingles = lru_cache(maxsize=4096)(lambda one: _shingles(normal_form(texts[int(firsts[one])])))
    parents = array("q", range(len(firsts)))
    for bucket in _buckets(bands, firsts):
        for later, one in enumerate(bucket):
            for other in bucket[: min(later, MANY)]:
                roots = _root(parents, one), _root(parents, other)
                if roots[0] != roots[1] and _jaccard(shingles(one), shingles(other)) >= threshold:
                    parents[max(roots)] = min(roots)
    keys = firsts[[_root(parents, one) for one in range(len(firsts))]] if len(firsts) else firsts
    found: list[int] = keys[np.searchsorted(firsts, first_of)].tolist()
    return found


def text_hashes(texts: Iterable[str]) -> np.ndarray:
    """Of each text 128 bits that stand for it."""
    digests = (blake2b(text.encode(), digest_size=16).digest() for text in texts)
    return np.fromiter(digests, dtype="S16")


def firsts_of(keys: np.ndarray) -> np.ndarray:
    """The places of the first of each different key, in their order."""
    return np.sort(np.unique(keys, return_index=True)[1])


def first_places(hashes: np.ndarray) -> np.ndarray:
    """For each row of hashes the place of the first row that equals it."""
    order = np.lexsort(hashes.T)  # stable: equal rows stay in their order
    is_new = np.ones(len(order), dtype=bool)
    is_new[1:] = (hashes[order[1:]] != hashes[order[:-1]]).any(axis=1)
    found = np.empty(len(order), dtype=np.int64)
    found[order] = order[is_new][np.cumsum(is_new) - 1]
    return found


def normal_form(text: str) -> str:
    """The text's letters and digits, NFKC and case-folded; a text without any: itself, stripped."""
    folded = unicodedata.normalize("NFKC", text).casefold()
    return SEPARATORS.sub("", folded) or text.strip()


def jaccard(one: str, other: str) -> float:
    """Shared shingles of two normal forms over all their shingles."""
    return _jaccard(_shingles(one), _shingles(other))


def _jaccard(a: np.ndarray, b: np.ndarray) -> float:
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


def hashed(forms: Iterable[str], count: int) -> np.ndarray:
    """Of each form 128 bits that stand for it, and a hash of each band of its signature: uint64,
    (count, 2 + BANDS). 144 bytes a form, and no form is kept."""
    found = np.empty((count, 2 + BANDS), dtype=np.uint64)
    whole = np.empty((AT_ONCE, BANDS, ROWS), dtype=np.uint32)
    for place, form in enumerate(forms):
        digest = blake2b(form.encode(), digest_size=16).digest()
        found[place, :2] = np.frombuffer(digest, np.uint64)
        whole[place % AT_ONCE] = signature(form)
        if (place + 1) % AT_ONCE == 0 or place + 1 == count:
            halves = whole[: place % AT_ONCE + 1].view(np.uint64)
            start = place - place % AT_ONCE
            found[start : place + 1, 2:] = mixed(mixed(halves[..., 0]) + halves[..., 1])
    return found


def _buckets(bands: np.ndarray, places: np.ndarray) -> Iterator[list[int]]:
    """Which of the places share a band, by their number among them: a list per band value."""
    for band in range(BANDS):
        values = bands[places, band]
        order = np.argsort(values, kind="stable")  # the numbers of a bucket ascend
        is_same = values[order[1:]] == values[order[:-1]]
        edges = np.flatnonzero(np.diff(is_same, prepend=False, append=False))
        for first, last in edges.reshape(-1, 2):
            yield order[first : last + 1].tolist()


def signature(form: str) -> np.ndarray:
    """The MinHash signature of a normal form: uint32, shape (BANDS, ROWS)."""
    hashed = _hashes(form)[:, None] * _FACTORS + _OFFSETS  # a shingle twice: the same minimum
    lowest: np.ndarray = (hashed >> np.uint64(32)).min(axis=0).astype(np.uint32)
    return lowest.reshape(BANDS, ROWS)


def _root(parents: "array[int]", place: int) -> int:
    while parents[place] != place:
        parents[place] = parents[parents[place]]
        place = parents[place]
    return place
