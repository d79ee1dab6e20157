"""UMAP of vectors to the plane (McInnes et al. 2018); the seed is fixed: same input, same map.

New points are placed by UMAP's own `transform`, on a fit that is kept as arrays: the vectors of the
fitted texts and their points. Nothing is pickled and nothing is fitted again.

Note: the neighbours are computed here, exactly, and handed over. That is what the
approximate search would find, and it spares the minutes in which that search compiles itself. For
`transform` a UMAP object is filled with what its fit would have left there (`restored_fit`); a test
compares it with an object that was fitted.
Loads umap (and numba) when it is called: for jobs only.
"""

import warnings
from functools import partial
from typing import Any

import numpy as np

from analysis.embed.neighbours import nearest
from analysis.parts import Keep, computed
from db.errors import BadInput

NEIGHBOURS, MIN_DIST = 15, 0.1
MIN_TEXTS, PLACED = 10, 50_000


def place(
    vectors: Any,
    fitted: np.ndarray,
    map_: np.ndarray,
    *,
    seed: int = 0,
    neighbours: int = NEIGHBOURS,
    min_dist: float = MIN_DIST,
    keep: Keep = computed,
) -> np.ndarray:
    """Points for new vectors on the map of the `fitted` ones, by UMAP's `transform`.

    Float32, shape (vectors, 2). A vector that was fitted keeps its own point; the map does not
    move. Same input and seed, same points. `keep`: of `Parts`, to go on after a kill. Raises
    BadInput for a map of fewer than ten texts.
    """
    if len(fitted) < MIN_TEXTS:
        raise BadInput(
            f"a map of {len(fitted)} texts: at least {MIN_TEXTS} are needed to place others",
            "Choose more texts, or `groups=all`",
            code="map_texts_too_few",
        )
    if not len(vectors):
        return np.zeros((0, 2), dtype=np.float32)
    if len(vectors) > PLACED:  # what UMAP holds of each is several times its vector
        parts = np.array_split(np.arange(len(vectors)), -(-len(vectors) // PLACED))
        given = partial(place, seed=seed, neighbours=neighbours, min_dist=min_dist)

        def placed(part: np.ndarray) -> np.ndarray:
            return given(vectors[part], fitted, map_)

        return np.concatenate([keep(f"placed-{part[0]}", partial(placed, part)) for part in parts])
    neighbours = min(neighbours, len(fitted) - 1)
    places, distances = nearest(vectors, fitted, neighbours)
    points: np.ndarray = map_[places[:, 0]].astype(np.float32)
    new = np.flatnonzero(distances[:, 0] > 1e-6)
    if len(new):
        fit = restored_fit(map_, neighbours, min_dist, seed)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Transforming new data with precomputed")
            points[new] = fit.transform(sparse(places[new], distances[new], len(fitted)))
    return points


def project(vectors: np.ndarray, *, seed: int = 0) -> np.ndarray:
    """The map: float32, shape (texts, 2). Vectors are of length one, each text once.

    Raises BadInput for fewer than ten texts.
    """
    if len(vectors) < MIN_TEXTS:
        raise BadInput(
            f"{len(vectors)} different texts: a map needs at least {MIN_TEXTS}",
            "Choose more texts, or `groups=all`",
            code="map_texts_too_few",
        )
    neighbours = min(NEIGHBOURS, len(vectors) - 1)
    places, distances = nearest(vectors, vectors, neighbours, themselves=True)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*not an NNDescent object")
        reducer = _umap(
            n_neighbors=neighbours,
            min_dist=MIN_DIST,
            metric="cosine",
            random_state=seed,
            n_jobs=1,
            precomputed_knn=(places, distances),
            force_approximation_algorithm=True,
        )
        return np.asarray(reducer.fit_transform(vectors), dtype=np.float32)


def _umap(**settings: Any) -> Any:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Tensorflow not installed")
        import umap

    return umap.UMAP(**settings)


def restored_fit(map_: np.ndarray, neighbours: int, min_dist: float, seed: int) -> Any:
    """A UMAP object as fitting on distances leaves it, so far as `transform` reads it."""
    fit = _umap(
        n_neighbors=neighbours,
        min_dist=min_dist,
        metric="precomputed",
        random_state=seed,
        transform_seed=seed,
        n_jobs=1,
    )
    from umap.umap_ import find_ab_params

    fit.embedding_ = map_.astype(np.float32)
    fit._raw_data = np.broadcast_to(np.float32(0), (len(map_), len(map_)))  # its shape is read
    fit._n_neighbors, fit._input_hash = neighbours, None
    fit._a, fit._b = find_ab_params(fit.spread, min_dist)
    fit._initial_alpha, fit._disconnection_distance = fit.learning_rate, np.inf
    return fit


def sparse(places: np.ndarray, distances: np.ndarray, columns: int) -> Any:
    """The distances of every row to its neighbours, where they stand; zeros are kept."""
    from scipy.sparse import csr_matrix

    rows, each = places.shape
    starts = np.arange(0, rows * each + 1, each)
    return csr_matrix((distances.ravel(), places.ravel(), starts), shape=(rows, columns))
