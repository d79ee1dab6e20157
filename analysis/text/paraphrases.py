"""Questions that say the same in other words, by embedding.

The cosine of two questions alone says little: in a templated set ("Write a function to …") every
question is close to many others. So it is compared with how close each of the two is to its
neighbours among the evaluation set's questions (CSLS; Conneau et al. 2018):

    score(x, y) = 2 cos(x, y) - r(x) - r(y),   r(x) = mean cosine of x with its 10 nearest others

A pair is a paraphrase where the score is at least the threshold. Recall, precision and what the
plain cosine does at the same recall: docs/contamination.md, `bench/contamination.py paraphrases`.

Note: where the evaluation set has fewer than 10 other questions, each missing one
counts as a neighbour of cosine 0.45, the mean over real questions: else two unrelated questions of
a tiny set would look close.
"""

from collections.abc import Iterator

import numpy as np

NEIGHBOURS = 10
USUAL_COSINE = 0.45
THRESHOLD = 0.45  # nine of ten paraphrases; docs/contamination.md has what else it reports
FLOATS_AT_ONCE = 1 << 25


def paraphrase_pairs(
    ours: np.ndarray, theirs: np.ndarray, threshold: float = THRESHOLD
) -> Iterator[tuple[int, int, float]]:
    """(place in ours, place in theirs, score) of every pair at or above the threshold.

    Both are unit vectors, (n, d) and (m, d); theirs are different questions. Memory: a block of
    ours at a time.
    """
    if not len(ours) or not len(theirs):
        return
    theirs_near = np.concatenate(
        [_closeness(block, themselves=start) for start, block in _blocks(theirs, theirs)]
    )
    for start, cosines in _blocks(ours, theirs):
        scores = 2 * cosines - _closeness(cosines)[:, None] - theirs_near
        for row, column in np.argwhere(scores >= threshold).tolist():
            yield start + row, column, float(scores[row, column])


def _blocks(ours: np.ndarray, theirs: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    """Where a block of ours begins, and its cosines with theirs."""
    rows = max(1, FLOATS_AT_ONCE // len(theirs))
    for start in range(0, len(ours), rows):
        yield start, ours[start : start + rows] @ theirs.T


def _closeness(cosines: np.ndarray, themselves: int | None = None) -> np.ndarray:
    """The mean of the 10 largest cosines of each row; `themselves`: the place of the first row
    among the columns, whose cosine with itself does not count."""
    if themselves is not None:
        cosines = cosines.copy()
        here = np.arange(len(cosines))
        cosines[here, themselves + here] = -np.inf
    many = min(NEIGHBOURS, cosines.shape[1])
    largest = -np.partition(-cosines, many - 1, axis=1)[:, :many]
    largest = np.where(np.isneginf(largest), USUAL_COSINE, largest)
    missing = NEIGHBOURS - many
    mean: np.ndarray = (largest.sum(axis=1) + missing * USUAL_COSINE) / NEIGHBOURS
    return mean
