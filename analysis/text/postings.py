"""Hashes of parts of texts and the texts that hold them, in sorted arrays: bounded memory.

A part is known by 64 bits. Two different parts with one hash (1e-6 for millions of parts) would
make a candidate pair, which is verified on the texts.
"""

from array import array
from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np

_random = np.random.default_rng(20261)
POWERS = _random.integers(0, 2**64, size=16, dtype=np.uint64) | np.uint64(1)


class Postings:
    """Which texts hold a key: built once, looked up for many keys at a time.

    12 bytes for each pair of key and text.
    """

    def __init__(self, keys: np.ndarray, owners: np.ndarray) -> None:
        order = np.argsort(keys, kind="stable")
        self._keys, self._owners = keys[order], owners[order].astype(np.int32)

    def pairs(
        self, keys: np.ndarray, owners: np.ndarray, most: int
    ) -> tuple[np.ndarray, np.ndarray]:
        """(owner of a key, text that holds it) for every such pair; both int64.

        Keys held by more than `most` texts are boilerplate and give none.
        """
        if not len(self._keys) or not len(keys):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        order = np.argsort(keys)  # ascending keys walk through the array: no cache misses
        keys, owners = keys[order], owners[order]
        low = np.searchsorted(self._keys, keys, "left")
        known = np.flatnonzero(self._keys[np.minimum(low, len(self._keys) - 1)] == keys)
        low, owners = low[known], owners[known]
        count = np.searchsorted(self._keys, keys[known], "right") - low
        hits = np.flatnonzero(count <= most)
        low, count = low[hits], count[hits]
        steps = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
        held = self._owners[np.repeat(low, count) + steps].astype(np.int64)
        return np.repeat(owners[hits].astype(np.int64), count), held


def word_hashes(texts: Iterable[Sequence[str]]) -> tuple[np.ndarray, np.ndarray]:
    """The words of all texts as 64-bit numbers, one after the other, and the texts' lengths."""
    flat, lengths = array("q"), array("q")
    for each in texts:
        flat.extend(map(hash, each))
        lengths.append(len(each))
    return np.array(flat, dtype=np.int64).view(np.uint64), np.array(lengths, dtype=np.int64)


def runs(hashes: np.ndarray, lengths: np.ndarray, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Keys of the runs of `size` words of each text, and their texts."""
    count = len(hashes) - size + 1
    if count <= 0:
        return np.zeros(0, np.uint64), np.zeros(0, np.int64)
    keys = np.zeros(count, dtype=np.uint64)
    for step in range(size):
        keys += hashes[step : step + count] * POWERS[step]
    owners = np.repeat(np.arange(len(lengths)), lengths)
    inside = owners[:count] == owners[size - 1 :]
    return mixed(keys[inside]), owners[:count][inside]


def without_some(
    hashes: np.ndarray, lengths: np.ndarray, fewest: int, most: int
) -> tuple[np.ndarray, np.ndarray]:
    """Keys of texts of at most `most` words with none, any one and any two words left out.

    At least `fewest` words stay. Two texts share a key where up to two words of each are other.
    """
    starts = np.cumsum(lengths) - lengths
    keys, owners = [np.zeros(0, np.uint64)], [np.zeros(0, np.int64)]
    for size in range(fewest, most + 1):
        these = np.flatnonzero(lengths == size)
        if not len(these):
            continue
        kept = [
            [place for place in range(size) if place not in gone]
            for number in range(min(2, size - fewest) + 1)
            for gone in combinations(range(size), number)
        ]
        padded = np.full((len(kept), size), size)
        for row, places in enumerate(kept):
            padded[row, : len(places)] = places
        table = np.zeros((len(these), size + 1), dtype=np.uint64)
        table[:, :size] = hashes[starts[these][:, None] + np.arange(size)]
        found = (table[:, padded] * POWERS[:size]).sum(axis=-1, dtype=np.uint64)
        keys.append(mixed(found.ravel()))
        owners.append(np.repeat(these, len(kept)))
    return np.concatenate(keys), np.concatenate(owners)


def mixed(values: np.ndarray) -> np.ndarray:
    """splitmix64's finaliser: neighbouring numbers become independent ones."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    result: np.ndarray = values ^ (values >> np.uint64(31))
    return result


def different(keys: np.ndarray, owners: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Each key once per owner."""
    # one number per pair: sorting numbers is far faster than sorting by two columns
    both = keys ^ mixed(owners.astype(np.uint64) + np.uint64(1))
    _, first = np.unique(both, return_index=True)
    return keys[first], owners[first]
