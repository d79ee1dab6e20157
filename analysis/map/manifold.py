"""Coverage as numbers besides the picture.

occupied share   of the map's cells (a grid of 40 × 40 over all points) that hold any text, how
                 many hold a text of this corpus
hull share       volume of the convex hull of the corpus in the first three principal components
                 (of all corpora together), over that of all corpora together
covered share    Naeem et al. 2020: the share of one corpus's vectors whose own neighbourhood (to
                 their 5th nearest in their own corpus, cosine distance) holds a vector of the other

The covered share takes its balls around the texts that are to be covered. The recall of
Kynkäänniemi et al. 2019 takes them around the covering ones, where one outlier has a ball as wide
as the map: 4 outliers moved it from 0.081 to 0.181. Here an outlier covers only what lies beside
it. Two samples of one distribution have 1 - 2⁻⁵ = 0.97.

Undefined, with the reason, where there are too few texts or they lie in a plane.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from analysis.embed.neighbours import nearest
from analysis.figures.numbers import Measure, undefined

CELLS, COMPONENTS, NEAREST = 40, 3, 5
AT_ONCE = 50_000


def cells_of(points: np.ndarray, every: np.ndarray) -> np.ndarray:
    """The cell of each point on the grid over `every` point: whole numbers, shape (points,)."""
    low, high = every.min(axis=0), every.max(axis=0)
    extent = np.where(high > low, high - low, 1.0)
    cells = np.minimum(((points - low) / extent * CELLS).astype(np.int64), CELLS - 1)
    numbers: np.ndarray = cells[:, 0] * CELLS + cells[:, 1]
    return numbers


def occupied_share(points: np.ndarray, every: np.ndarray, grid: np.ndarray | None = None) -> float:
    """Cells with one of the points over cells with any of `every`; the grid spans `grid`."""
    grid = every if grid is None else grid
    return len(np.unique(cells_of(points, grid))) / len(np.unique(cells_of(every, grid)))


@dataclass(frozen=True)
class Components:
    """The first principal components of all vectors: where they are centred, and the axes."""

    centre: np.ndarray
    axes: np.ndarray

    def of(self, vectors: Any) -> np.ndarray:
        """Coordinates, shape (vectors, components)."""
        return np.concatenate([(each - self.centre) @ self.axes.T for each in in_parts(vectors)])


def in_parts(vectors: Any) -> Iterator[np.ndarray]:
    """Rows by rows, of an array or of what reads them when they are needed."""
    return (vectors[start : start + AT_ONCE] for start in range(0, len(vectors), AT_ONCE))


def principal_components(vectors: Any) -> Components:
    """By the eigenvectors of the covariance: exact, whatever the number of vectors."""
    centre = sum(each.astype(np.float64).sum(axis=0) for each in in_parts(vectors)) / len(vectors)
    covariance = sum((each - centre).T @ (each - centre) for each in in_parts(vectors))
    values, axes = np.linalg.eigh(covariance)
    order = np.argsort(values)[::-1][:COMPONENTS]
    return Components(centre, axes[:, order].T)


def hull_volume(coordinates: np.ndarray) -> Measure:
    """Volume of the convex hull of points, shape (points, dimensions)."""
    from scipy.spatial import ConvexHull, QhullError

    fewest = coordinates.shape[1] + 1
    if len(np.unique(coordinates, axis=0)) < fewest:
        return undefined(f"fewer than {fewest} different texts")
    try:
        return Measure(float(ConvexHull(coordinates).volume))
    except QhullError:
        return undefined("the texts lie in a plane: their hull has no volume")


def covered_share(ours: np.ndarray, theirs: np.ndarray, k: int = NEAREST) -> Measure:
    """The share of our vectors whose ball to their k-th nearest of ours holds one of theirs.

    Vectors are of length one. Compare as many of each: the ball shrinks with the number of ours.
    """
    if len(ours) <= k:
        return undefined(f"{len(ours)} texts: a neighbourhood of {k} needs more")
    if not len(theirs):
        return undefined("no texts")
    # the distance to itself is 0 and its place the first: the k-th neighbour is the last of k + 1
    radii = nearest(ours, ours, k + 1, themselves=True)[1][:, -1]
    distances = nearest(ours, theirs, 1)[1][:, 0]
    return Measure(float((distances <= radii + 1e-6).mean()))
