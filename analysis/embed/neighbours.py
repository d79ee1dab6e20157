"""Exact nearest neighbours by cosine, in blocks: as fast as matrix products, no index."""

from collections.abc import Sequence

import numpy as np

FLOATS_AT_ONCE = 1 << 25


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
        found = np.sort(np.argpartition(-similar, k - 1, axis=1)[:, :k], axis=1)
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
