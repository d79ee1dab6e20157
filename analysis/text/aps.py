"""APS: the mean cosine similarity over all unordered pairs of texts; lower is more diverse.

    APS = sum_{i<j} u_i · u_j / (n (n - 1) / 2) = (‖sum u_i‖² - n) / (n (n - 1)),  ‖u_i‖ = 1

The closed form is exact and needs one pass and one vector of memory, no n² anywhere. Computed in
float64 over blocks; vectors are normalised here whatever they come as. [1,0], [0,1], [1,1] give
(2 + 2 · 0.7071…)/… = 0.4714045. Undefined for fewer than two vectors and where a vector is zero
(it has no direction).
"""

from collections.abc import Iterable

import numpy as np

from analysis.figures.measure import Measure, undefined

BLOCK = 8192


class ApsSum:
    """APS of a stream of vectors in constant memory: add blocks, then ask."""

    def __init__(self) -> None:
        self.count = 0
        self.zeros = 0
        self._sum: np.ndarray | None = None

    def add(self, vectors: np.ndarray) -> None:
        """Add vectors, shape (texts, dimensions)."""
        for start in range(0, len(vectors), BLOCK):
            block = np.asarray(vectors[start : start + BLOCK], dtype=np.float64)
            norms = np.sqrt(np.einsum("nd,nd->n", block, block))
            self.zeros += int((norms == 0).sum())
            norms[norms == 0] = 1.0
            # sum of block / norm as one product: no second block in memory
            part = (1.0 / norms) @ block
            self._sum = part if self._sum is None else self._sum + part
            self.count += len(block)

    def measure(self) -> Measure:
        """APS of what was added."""
        if self.count < 2:
            return undefined("fewer than two texts")
        if self.zeros:
            return undefined(f"{self.zeros} texts have a vector of length zero")
        assert self._sum is not None
        squared = float(self._sum @ self._sum)
        return Measure((squared - self.count) / (self.count * (self.count - 1)))


def average_pairwise_similarity(vectors: np.ndarray | Iterable[np.ndarray]) -> Measure:
    """APS of vectors, shape (texts, dimensions), or of a stream of such blocks."""
    total = ApsSum()
    for block in [vectors] if isinstance(vectors, np.ndarray) else vectors:
        total.add(block)
    return total.measure()
