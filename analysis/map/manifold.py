"""Coverage as numbers beside the picture.

occupied share   of the map's cells (a grid of 40 × 40 over all points) that hold any text, how
                 many hold a text of this corpus
hull share       volume of the convex hull of the corpus in the first three principal components
                 (of all corpora together), over that of all corpora together
precision,       Kynkäänniemi et al. 2019: the share of the one's vectors that lie within the
recall           k-nearest-neighbour ball of any of the other's (precision), and the other way
                 round (recall); k = 3, cosine distance. High recall of A by B: B covers A.

Undefined, with the reason, where there are too few texts or they lie in a plane.
"""

from dataclasses import dataclass

import numpy as np

from analysis.embed.neighbours import nearest
from analysis.figures.measure import Measure, undefined

CELLS, COMPONENTS, NEAREST = 40, 3, 3
BLOCK_FLOATS = 1 << 24


def cells_of(points: np.ndarray, every: np.ndarray) -> np.ndarray:
    """The cell of each point on the grid over `every` point: whole numbers, shape (points,)."""
    low, high = every.min(axis=0), every.max(axis=0)
    extent = np.where(high > low, high - low, 1.0)
    cells = np.minimum(((points - low) / extent * CELLS).astype(np.int64), CELLS - 1)
    numbers: np.ndarray = cells[:, 0] * CELLS + cells[:, 1]
    return numbers


def occupied_share(points: np.ndarray, every: np.ndarray) -> float:
    """Cells with one of the points over cells with any point."""
    return len(np.unique(cells_of(points, every))) / len(np.unique(cells_of(every, every)))


@dataclass(frozen=True)
class Components:
    """The first principal components of all vectors: where they are centred, and the axes."""

    centre: np.ndarray
    axes: np.ndarray

    def of(self, vectors: np.ndarray) -> np.ndarray:
        """Coordinates, shape (vectors, components)."""
        coordinates: np.ndarray = (vectors - self.centre) @ self.axes.T
        return coordinates


def principal_components(vectors: np.ndarray) -> Components:
    """By the eigenvectors of the covariance: exact, whatever the number of vectors."""
    whole = vectors.astype(np.float64)
    centre = whole.mean(axis=0)
    values, axes = np.linalg.eigh((whole - centre).T @ (whole - centre))
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
    """The share of our vectors within the k-nearest-neighbour ball of any of theirs.

    Vectors are of length one. Precision of ours against theirs; recall with the sides swapped.
    """
    if len(theirs) <= k:
        return undefined(f"{len(theirs)} texts: a neighbourhood of {k} needs more")
    if not len(ours):
        return undefined("no texts")
    # the distance to itself is 0 and its place the first: the k-th neighbour is the last of k + 1
    radii = nearest(theirs, theirs, k + 1, themselves=True)[1][:, -1]
    covered = 0
    rows = max(1, BLOCK_FLOATS // len(theirs))
    for start in range(0, len(ours), rows):
        distances = 1.0 - ours[start : start + rows] @ theirs.T
        covered += int((distances <= radii + 1e-6).any(axis=1).sum())
    return Measure(covered / len(ours))
