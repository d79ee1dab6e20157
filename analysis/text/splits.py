"""Held-out splits that leak nothing: groups that share a query or a passage stay on one side."""

import hashlib
from collections.abc import Hashable, Sequence

import numpy as np

MIX = (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB)


def held_out(groups: Sequence[tuple[Hashable, ...]], *, fraction: float, seed: int) -> np.ndarray:
    """Which groups are held out: a bool per group.

    A group is the tuple of its keys (query text, passage texts). Groups that share any key, also
    through others, are one component and land on the same side. Components are taken in an order
    that depends on their keys and the seed only, while they fit into `fraction` of the groups;
    with 0 < fraction < 1 at least one component is held out and at least one is not, where there
    are two. Keys are compared by `repr`, so use texts, numbers or tuples of them.
    """
    keys = [
        key_hash(repr(key))
        for place, names in enumerate(groups)
        for key in (names or (f"group {place}",))
    ]
    sizes = np.asarray([max(1, len(names)) for names in groups], dtype=np.int64)
    return held_out_hashed(np.asarray(keys, dtype=np.uint64), sizes, fraction=fraction, seed=seed)


def held_out_hashed(
    keys: np.ndarray, sizes: np.ndarray, *, fraction: float, seed: int
) -> np.ndarray:
    """As `held_out`, for millions of groups: their keys as `key_hash` numbers, one after the other.

    keys: (k,) uint64; sizes: (groups,) int64, how many of them each group has (at least one, sum
    k). Two different keys with one hash (probability below 1e-6 for five million keys) would only
    keep two groups together that need not be.
    """
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"fraction {fraction}: it lies between 0 and 1")
    count = len(sizes)
    out = np.zeros(count, dtype=bool)
    if not count:
        return out
    component, names = _components(keys, sizes)
    members = np.bincount(component)
    order = np.lexsort((names, _rank(names, seed)))
    wanted = count if fraction == 1.0 else min(round(fraction * count), count - 1)
    taken, chosen = 0, np.zeros(len(members), dtype=bool)
    for one, size in zip(order.tolist(), members[order].tolist(), strict=True):
        if taken + size <= wanted:
            chosen[one] = True
            taken += size
    if fraction > 0 and taken == 0 and len(members) > 1:
        chosen[order[np.argmin(members[order])]] = True
    return np.asarray(chosen[component])


def key_hash(key: str) -> int:
    """64 bits of BLAKE2 of a key."""
    return int.from_bytes(hashlib.blake2b(key.encode(), digest_size=8).digest(), "little")


def _components(keys: np.ndarray, sizes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(component of every group, name of every component: the smallest of its keys)."""
    count = len(sizes)
    starts = np.concatenate(([0], np.cumsum(sizes)[:-1]))
    ordered = np.sort(keys)
    shared = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])  # only these join groups
    place = np.searchsorted(shared, keys)
    place[place == len(shared)] = 0
    joins = shared[place] == keys if len(shared) else np.zeros(len(keys), dtype=bool)
    group = np.repeat(np.arange(count), sizes)[joins]
    component = _joined(count + len(shared), group, place[joins] + count)[:count]
    smallest = np.minimum.reduceat(keys, starts)
    _, component = np.unique(component, return_inverse=True)
    names = np.full(int(component.max()) + 1, np.iinfo(np.uint64).max, dtype=np.uint64)
    np.minimum.at(names, component, smallest)
    return component, names


def _joined(nodes: int, left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The smallest node of every node's connected component, by the edges left[i] - right[i].

    Labels sink along edges, and to the roots of labels, with pointer jumping (Shiloach and Vishkin
    1982): a few rounds, whatever the length of a chain.
    """
    label = np.arange(nodes)
    while True:
        low = np.minimum(label[left], label[right])
        if np.array_equal(label[left], low) and np.array_equal(label[right], low):
            return label
        for end in (left, right):
            np.minimum.at(label, label[end], low)
        while not np.array_equal(label, deeper := label[label]):
            label = deeper


def _rank(names: np.ndarray, seed: int) -> np.ndarray:
    """A number per name that the seed shuffles (SplitMix64: Steele et al. 2014)."""
    add, first, second = (np.uint64(number) for number in MIX)
    with np.errstate(over="ignore"):
        mixed = names + add * np.uint64((seed + 1) % 2**64)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * first
        mixed = (mixed ^ (mixed >> np.uint64(27))) * second
    return np.asarray(mixed ^ (mixed >> np.uint64(31)))
