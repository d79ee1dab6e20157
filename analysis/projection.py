"""UMAP of vectors to the plane (McInnes et al. 2018); the seed is fixed: same input, same map.

What would surprise: the neighbours are computed here, exactly, and handed over. That is what the
approximate search would find, and it spares the minutes in which that search compiles itself.
Loads umap (and numba) when it is called: for jobs only.
"""

import warnings

import numpy as np

from analysis.neighbours import nearest
from db.errors import BadInput

NEIGHBOURS, MIN_DIST = 15, 0.1
FEWEST = 10


def place(
    vectors: np.ndarray, fitted: np.ndarray, map_: np.ndarray, *, neighbours: int = NEIGHBOURS
) -> np.ndarray:
    """Points for new vectors on an existing map: float32, shape (vectors, 2).

    UMAP's transform without its last polishing: the mean of the nearest fitted points, weighted by
    exp(-(d - d_1) / s), s their mean distance beyond the nearest. A vector that was fitted gets
    its own point.
    """
    places, distances = nearest(vectors, fitted, min(neighbours, len(fitted)))
    beyond = distances - distances[:, :1]
    scale = np.maximum(beyond.mean(axis=1, keepdims=True), 1e-9)
    weights = np.exp(-beyond / scale)
    same = distances[:, :1] < 1e-6
    weights = np.where(same, distances < 1e-6, weights)
    weights /= weights.sum(axis=1, keepdims=True)
    points: np.ndarray = np.einsum("vk,vkd->vd", weights, map_[places]).astype(np.float32)
    return points


def project(
    vectors: np.ndarray, *, seed: int = 0, neighbours: int = NEIGHBOURS, min_dist: float = MIN_DIST
) -> np.ndarray:
    """The map: float32, shape (texts, 2). Vectors are of length one, each text once.

    Raises BadInput for fewer than ten texts.
    """
    if len(vectors) < FEWEST:
        raise BadInput(f"{len(vectors)} different texts: a map needs at least {FEWEST}")
    neighbours = min(neighbours, len(vectors) - 1)
    places, distances = nearest(vectors, vectors, neighbours, themselves=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Tensorflow not installed")
        warnings.filterwarnings("ignore", message=".*not an NNDescent object")
        import umap

        reducer = umap.UMAP(
            n_neighbors=neighbours,
            min_dist=min_dist,
            metric="cosine",
            random_state=seed,
            n_jobs=1,
            precomputed_knn=(places, distances),
            force_approximation_algorithm=True,
        )
        return np.asarray(reducer.fit_transform(vectors), dtype=np.float32)
