"""Cohen's kappa of two judges, with its analytic standard error.

    kappa = (p_o - p_e) / (1 - p_e),  p_o = sum_i p_ii,  p_e = sum_i p_i. p_.i

Cohen 1960. The standard error is that of Fleiss, Cohen and Everitt 1969 for a kappa that is not
assumed to be zero:

    se² = [ sum_i p_ii (1 - (p_i. + p_.i)(1 - kappa))²
            + (1 - kappa)² sum_{i≠j} p_ij (p_.i + p_j.)²
            - (kappa - p_e (1 - kappa))² ] / (n (1 - p_e)²)

Weighted kappa (Cohen 1968) is for labels that are numbers x, as grades: disagreement counts by how
far apart two of them are, v_ij = |x_i - x_j| (linear) or (x_i - x_j)² (quadratic):

    kappa_w = 1 - sum_ij v_ij p_ij / sum_ij v_ij p_i. p_.j

Undefined with no common item, and where both judges gave one and the same label to every item
(p_e = 1: 0/0). Raw agreement stands beside it in the second case.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

NO_ITEMS = "no items in common"
ONE_LABEL = "both gave one and the same label to every item: nothing to agree beyond chance"


@dataclass(frozen=True)
class Kappa:
    """Cohen's kappa of two judges over the `items` both judged."""

    value: float | None
    standard_error: float | None
    agreement: float | None
    items: int
    reason: str | None = None


WEIGHTS = {"linear": 1, "quadratic": 2}


def distances(labels: Sequence[float], weights: str) -> np.ndarray:
    """v_ij of each two of the labels, shape (labels, labels). `weights`: linear or quadratic."""
    place = np.asarray(labels, dtype=np.float64)
    apart: np.ndarray = np.abs(place[:, None] - place[None, :]) ** WEIGHTS[weights]
    return apart


def weighted_kappas(tables: np.ndarray, apart: np.ndarray) -> np.ndarray:
    """Weighted kappa of tables, shape (…, labels, labels), by `distances`; NaN where 0/0."""
    counts = tables.astype(np.float64)
    n = counts.sum(axis=(-2, -1))
    rows, columns = counts.sum(axis=-1), counts.sum(axis=-2)
    observed = (counts * apart).sum(axis=(-2, -1)) * n
    expected = ((rows @ apart) * columns).sum(axis=-1)
    with np.errstate(divide="ignore", invalid="ignore"):
        kappas: np.ndarray = np.where(expected > 0, 1 - observed / expected, np.nan)
    return kappas


def cohen_kappa(table: np.ndarray) -> Kappa:
    """Kappa of a square table of counts, the rows one judge's labels, the columns the other's."""
    counts = np.asarray(table, dtype=np.int64)
    n = int(counts.sum())
    if n == 0:
        return Kappa(None, None, None, 0, NO_ITEMS)
    rows, columns = counts.sum(axis=1), counts.sum(axis=0)
    same, by_chance = int(np.trace(counts)), int(rows @ columns)
    if by_chance == n * n:  # whole numbers: exact
        return Kappa(None, None, same / n, n, ONE_LABEL)
    value = (n * same - by_chance) / (n * n - by_chance)
    return Kappa(value, _standard_error(counts / n, value, n), same / n, n)


def _standard_error(p: np.ndarray, kappa: float, n: int) -> float:
    rows, columns = p.sum(axis=1), p.sum(axis=0)
    expected = float(rows @ columns)
    diagonal = np.diag(p)
    on = float(diagonal @ (1 - (rows + columns) * (1 - kappa)) ** 2)
    crossed = (columns[:, None] + rows[None, :]) ** 2
    off = (1 - kappa) ** 2 * float((p * crossed).sum() - diagonal @ np.diag(crossed))
    # Perfect agreement is a difference of equal numbers: rounding must not make it negative.
    spread = max(on + off - (kappa - expected * (1 - kappa)) ** 2, 0.0)
    return float(np.sqrt(spread / n) / (1 - expected))
