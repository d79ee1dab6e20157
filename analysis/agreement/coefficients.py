"""Agreement of any number of judges at once: Fleiss' kappa, Krippendorff's alpha, Gwet's AC1.

From how often each label was given to each item, n_ic, with n_i = sum_c n_ic judgments of it:

    p_o   = mean over items with n_i ≥ 2 of sum_c n_ic (n_ic - 1) / (n_i (n_i - 1))
    π_c   = mean over items of n_ic / n_i
    Fleiss (1971)  kappa = (p_o - sum π_c²) / (1 - sum π_c²)
    Gwet (2008)    AC1   = (p_o - e) / (1 - e),  e = sum π_c (1 - π_c) / (q - 1), q labels in use
    Krippendorff   alpha = 1 - (n - 1) sum_i (n_i² - sum_c n_ic²)/(n_i - 1) / (n² - sum n_c²),
                   nominal, over items with n_i ≥ 2 only; n_c = sum_i n_ic, n = sum n_c

With gaps, kappa and AC1 are Gwet's extensions (equal to the originals where every item has the
same number of judgments). `q` counts the labels that occur. Undefined: no item with two judgments;
one label only (0/0).

Everything is a function of weighted sums over items, so resamples are matrix products: `weights`
has a row per resample and a column per pattern of label counts.
"""

from dataclasses import dataclass

import numpy as np

NO_ITEM_TWICE = "no item was judged twice"
ONE_LABEL = "one and the same label throughout: nothing to agree beyond chance"
NAMES = ("agreement", "fleiss_kappa", "krippendorff_alpha", "gwet_ac1")


@dataclass(frozen=True)
class Coefficients:
    """A value per resample each, shape (resamples,); NaN where undefined."""

    agreement: np.ndarray
    fleiss_kappa: np.ndarray
    krippendorff_alpha: np.ndarray
    gwet_ac1: np.ndarray


def coefficients(counts: np.ndarray, weights: np.ndarray, labels_in_use: int) -> Coefficients:
    """The coefficients for each row of weights.

    `counts`: (patterns, labels), each pattern with at least one judgment; `weights`: (resamples,
    patterns), how often each pattern occurs.
    """
    n = counts.astype(np.float64)
    judged = n.sum(axis=1)
    twice = judged >= 2
    squares = (n**2).sum(axis=1)
    within = np.zeros(len(n))
    within[twice] = (squares - judged)[twice] / (judged * (judged - 1))[twice]
    weights = weights.astype(np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = (weights @ within) / (weights @ twice.astype(np.float64))
        shares = (weights @ (n / judged[:, None])) / weights.sum(axis=1, keepdims=True)
        chance = (shares**2).sum(axis=1)
        kappa = _beyond(observed, chance)
        evenly = (1 - chance) / (labels_in_use - 1) if labels_in_use > 1 else np.ones_like(chance)
        ac1 = np.where(chance >= 1 - 1e-12, np.nan, _beyond(observed, evenly))
        disagreeing = np.zeros(len(n))
        disagreeing[twice] = (judged**2 - squares)[twice] / (judged - 1)[twice]
        totals = weights @ (n * twice[:, None])
        total = totals.sum(axis=1)
        expected = total**2 - (totals**2).sum(axis=1)
        alpha = np.where(expected > 0, 1 - (total - 1) * (weights @ disagreeing) / expected, np.nan)
    return Coefficients(observed, kappa, alpha, ac1)


def _beyond(observed: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """(observed - chance) / (1 - chance), NaN where chance is certain."""
    certain = chance >= 1 - 1e-12
    value: np.ndarray = np.where(
        certain, np.nan, (observed - chance) / np.where(certain, 1, 1 - chance)
    )
    return value
