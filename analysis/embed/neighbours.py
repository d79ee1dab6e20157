"""Exact nearest neighbours, in blocks: as fast as matrix products, no index."""

from collections.abc import Sequence

import numpy as np

FLOATS_AT_ONCE, SLICES = 1 << 25, 32


def nearest(
    vectors: np.ndarray, among: np.ndarray, k: int, *, themselves: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Places and cosine distances of the k nearest of `among` (all of length one), nearest first.

    Both (vectors, k). With `themselves` the vectors are `among` and each is its own first
    neighbour at distance 0, also where others are equal to it. Ties: the lower place first.
    """
    k = min(k, len(among))
    places = np.empty((len(vectors), k), dtype=np.int64)
    distances = np.empty((len(vectors), k), dtype=np.float32)
    rows = max(1, FLOATS_AT_ONCE // max(len(among), 1))
    for start in range(0, len(vectors), rows):
        similar = vectors[start : start + rows] @ among.T
        here = np.arange(len(similar))
        if themselves:
            similar[here, start + here] = 2.0
        found = np.concatenate(  # in slices: of all at once it takes four times the block
            [
                np.sort(np.argpartition(-each, k - 1, axis=1)[:, :k], axis=1)
                for each in np.array_split(similar, SLICES)
            ]
        )
        values = np.take_along_axis(similar, found, axis=1)
        order = np.argsort(-values, axis=1, kind="stable")
        places[start : start + rows] = np.take_along_axis(found, order, axis=1)
        distances[start : start + rows] = 1.0 - np.take_along_axis(values, order, axis=1)
    return places, np.maximum(distances, 0.0)


def below_share(
    scores: np.ndarray, right: float, share: float, count: int, barred: Sequence[int] = ()
) -> list[int]:
    """Places of the `count` best scores up to a share of the right text's, best first.

    Above the limit a text is likely right, too (the perc-to-positive limit of NV-Retriever, Moreira
    et al. 2024). Where the right text's own score is not above 0 there is none: a share of it would
    lie above it. `barred` places are left out; ties: the lower place first.
    """
    limit = share * right
    allowed = scores <= limit if limit > 0 else np.zeros(len(scores), dtype=bool)
    allowed[list(barred)] = False
    best = np.argsort(-np.where(allowed, scores, -np.inf), kind="stable")[:count]
    return [int(place) for place in best if allowed[place]]


class Best:
    """The `count` best of many candidates for each of some queries, as they come in parts.

    Candidates must score above `floor`. Ties: what came first, in a part the lower place.
    """

    def __init__(self, queries: int, count: int, floor: float = -np.inf) -> None:
        self._floor = floor
        self._scores = np.full((queries, count), floor, dtype=np.float32)
        self._keys = np.zeros((queries, count), dtype=np.int64)

    def add(self, query: int, scores: np.ndarray, keys: np.ndarray) -> None:
        """The scores of a part's candidates for a query, and what they are called by."""
        held, count = self._scores[query], self._scores.shape[1]
        better = np.flatnonzero(scores > held[-1])
        if len(better) > count:
            least = np.partition(scores[better], len(better) - count)[len(better) - count]
            better = better[scores[better] >= least]
        if not len(better):
            return
        together = np.concatenate([held, scores[better]])
        order = np.argsort(-together, kind="stable")[:count]
        self._keys[query] = np.concatenate([self._keys[query], keys[better]])[order]
        self._scores[query] = together[order]

    def of(self, query: int) -> list[tuple[int, float]]:
        """(key, score) of the query's best, best first."""
        some = self._scores[query] > self._floor
        return [
            (int(key), float(score))
            for key, score in zip(self._keys[query][some], self._scores[query][some], strict=True)
        ]
