"""Measures of agreement of any number of judges, registered by name: raw agreement, Fleiss' kappa,
Krippendorff's alpha, Gwet's AC1, and of labels in an order Fleiss' kappa with weights.

A measure is one entry of `MEASURES`. The report, the page, `inf analyze agreement` and the card
read it from there: a new one is a function of `LabelCounts` and its entry, nothing else.

From how often each label was given to each item, n_ic, with n_i = sum_c n_ic judgments of it:

    p_o   = mean over items with n_i ≥ 2 of sum_c n_ic (n_ic - 1) / (n_i (n_i - 1))
    π_c   = mean over items of n_ic / n_i
    Fleiss (1971)  kappa = (p_o - sum π_c²) / (1 - sum π_c²)
    Gwet (2008)    AC1   = (p_o - e) / (1 - e),  e = sum π_c (1 - π_c) / (q - 1), q labels in use
    Krippendorff   alpha = 1 - (n - 1) sum_i (n_i² - sum_c n_ic²)/(n_i - 1) / (n² - sum n_c²),
                   nominal, over items with n_i ≥ 2 only; n_c = sum_i n_ic, n = sum n_c
                   ordinal, of labels in order: every two different ones count by
                   d²_ck = (sum of n_g from c to k - (n_c + n_k) / 2)² instead of 1

    weighted kappa = 1 - D_o / D_e (Gwet 2014, 3.4), two labels counting by their values,
                   d_ck = (v_c - v_k)², linear |v_c - v_k|; D_e = sum_ck d_ck π_c π_k,
                   D_o = mean over items with n_i ≥ 2 of sum_ck d_ck n_ic n_ik / (n_i (n_i - 1))

With gaps, kappa and AC1 are Gwet's extensions (equal to the originals where every item has the
same number of judgments). `q` counts the labels that occur. Undefined: no item with two judgments;
one label only (0/0).

Everything is a function of weighted sums over items, so resamples are matrix products: `weights`
has a row per resample and a column per pattern of label counts.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np

from analysis.agreement.cohen import distances

NO_ITEM_TWICE = "no item was judged twice"
ONE_LABEL = "one and the same label throughout: nothing to agree beyond chance"


@dataclass(frozen=True)
class LabelCounts:
    """How often each label was given to each item, with the sums that measures share.

    `counts`: (patterns, labels), each pattern with at least one judgment; `weights`: (resamples,
    patterns), how often each pattern occurs; `values`: the labels' as numbers where they are some,
    else their places. Every property is computed once.
    """

    counts: np.ndarray
    weights: np.ndarray
    labels_in_use: int
    values: Sequence[float] = ()

    @cached_property
    def judged(self) -> np.ndarray:
        """Judgments of each pattern: (patterns,)."""
        judged: np.ndarray = self.counts.sum(axis=1).astype(np.float64)
        return judged

    @cached_property
    def twice(self) -> np.ndarray:
        """Which patterns have two judgments or more: (patterns,)."""
        twice: np.ndarray = self.judged >= 2
        return twice

    @cached_property
    def squares(self) -> np.ndarray:
        """sum_c n_ic² of each pattern: (patterns,)."""
        squares: np.ndarray = (self.counts.astype(np.float64) ** 2).sum(axis=1)
        return squares

    @cached_property
    def observed(self) -> np.ndarray:
        """p_o of each resample: (resamples,); NaN where no item has two judgments."""
        judged, twice = self.judged, self.twice
        within = np.zeros(len(judged))
        within[twice] = (self.squares - judged)[twice] / (judged * (judged - 1))[twice]
        with np.errstate(divide="ignore", invalid="ignore"):
            observed: np.ndarray = (self.weights @ within) / (self.weights @ twice.astype(float))
        return observed

    @cached_property
    def shares(self) -> np.ndarray:
        """π_c of each resample: (resamples, labels)."""
        with np.errstate(divide="ignore", invalid="ignore"):
            shares: np.ndarray = self.weights @ (self.counts / self.judged[:, None])
            shares /= self.weights.sum(axis=1, keepdims=True)
        return shares

    @cached_property
    def chance(self) -> np.ndarray:
        """sum π_c² of each resample: (resamples,)."""
        chance: np.ndarray = (self.shares**2).sum(axis=1)
        return chance


@dataclass(frozen=True)
class AgreementMeasure:
    """A measure as reports, pages and commands show it.

    `function` gives a value per resample, shape (resamples,), NaN where undefined; `bounds` are the
    smallest and the largest value it can have; `needs` says of which data it is defined.
    """

    name: str
    label: str
    help: str
    function: Callable[[LabelCounts], np.ndarray]
    bounds: tuple[float, float]
    needs: str
    is_ordered: bool = False


MEASURES: dict[str, AgreementMeasure] = {}


def register(measure: AgreementMeasure) -> None:
    """Add a measure under its name. Raises ValueError where the name is taken."""
    if measure.name in MEASURES:
        raise ValueError(f"the agreement measure {measure.name!r} is registered already")
    MEASURES[measure.name] = measure


def measure_names(*, is_ordered: bool = False) -> list[str]:
    """The measures of any labels; or those that need labels in the order of the columns."""
    return [name for name, one in MEASURES.items() if one.is_ordered == is_ordered]


def measure_values(
    counts: np.ndarray,
    weights: np.ndarray,
    labels_in_use: int,
    names: Sequence[str] | None = None,
    values: Sequence[float] = (),
) -> dict[str, np.ndarray]:
    """These measures by name, by default all of any labels, for each row of weights; see
    `LabelCounts`."""
    given = LabelCounts(counts, weights.astype(np.float64), labels_in_use, values)
    return {name: MEASURES[name].function(given) for name in names or measure_names()}


def raw_agreement(given: LabelCounts) -> np.ndarray:
    """p_o."""
    return given.observed


def fleiss_kappa(given: LabelCounts) -> np.ndarray:
    """(p_o - sum π_c²) / (1 - sum π_c²)."""
    return _beyond(given.observed, given.chance)


def krippendorff_alpha(given: LabelCounts) -> np.ndarray:
    """Nominal alpha: observed over expected disagreement among items judged twice."""
    judged, twice = given.judged, given.twice
    disagreeing = np.zeros(len(judged))
    disagreeing[twice] = (judged**2 - given.squares)[twice] / (judged - 1)[twice]
    totals = given.weights @ (given.counts * twice[:, None])
    total = totals.sum(axis=1)
    expected = total**2 - (totals**2).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha: np.ndarray = np.where(
            expected > 0, 1 - (total - 1) * (given.weights @ disagreeing) / expected, np.nan
        )
    return alpha


def ordinal_alpha(given: LabelCounts) -> np.ndarray:
    """Ordinal alpha, of labels in the order of the columns."""
    counts, twice = given.counts.astype(np.float64), given.twice
    pairs = np.einsum("ic,ik->ick", counts, counts)
    pairs[:, range(counts.shape[1]), range(counts.shape[1])] -= counts
    pairs[twice] /= (given.judged[twice] - 1)[:, None, None]
    pairs[~twice] = 0
    totals = given.weights @ (counts * twice[:, None])
    labels = counts.shape[1]
    observed = (given.weights @ pairs.reshape(len(counts), -1)).reshape(-1, labels, labels)
    up_to = np.cumsum(totals, axis=1)
    middle = up_to - totals / 2  # the labels before, and half of its own
    apart = (middle[:, :, None] - middle[:, None, :]) ** 2
    expected = (totals[:, :, None] * totals[:, None, :] * apart).sum(axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        alpha: np.ndarray = np.where(
            expected > 0,
            1 - (totals.sum(axis=1) - 1) * (observed * apart).sum(axis=(1, 2)) / expected,
            np.nan,
        )
    return alpha


def weighted_fleiss_kappa(given: LabelCounts, weights: str = "quadratic") -> np.ndarray:
    """1 - D_o / D_e, of labels in the order of the columns, by their values."""
    apart = distances(given.values or range(given.counts.shape[1]), weights)
    counts, judged, twice = given.counts.astype(np.float64), given.judged, given.twice
    within = np.zeros(len(judged))
    pairs = ((counts @ apart) * counts).sum(axis=1)
    within[twice] = pairs[twice] / (judged * (judged - 1))[twice]
    expected = ((given.shares @ apart) * given.shares).sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        observed = (given.weights @ within) / (given.weights @ twice.astype(float))
        kappa: np.ndarray = np.where(expected > 1e-12, 1 - observed / expected, np.nan)
    return kappa


def gwet_ac1(given: LabelCounts) -> np.ndarray:
    """(p_o - e) / (1 - e) with e = sum π_c (1 - π_c) / (q - 1)."""
    chance, labels = given.chance, given.labels_in_use
    evenly = (1 - chance) / (labels - 1) if labels > 1 else np.ones_like(chance)
    ac1: np.ndarray = np.where(chance >= 1 - 1e-12, np.nan, _beyond(given.observed, evenly))
    return ac1


def _beyond(observed: np.ndarray, chance: np.ndarray) -> np.ndarray:
    """(observed - chance) / (1 - chance), NaN where chance is certain."""
    certain = chance >= 1 - 1e-12
    value: np.ndarray = np.where(
        certain, np.nan, (observed - chance) / np.where(certain, 1, 1 - chance)
    )
    return value


TWO_JUDGMENTS = "an item with two judgments"
TWO_LABELS = f"{TWO_JUDGMENTS} and two labels in use"

register(
    AgreementMeasure(
        "agreement",
        "Raw agreement",
        "Share of pairs of judgments of one item that are equal; ignores agreement by chance.",
        raw_agreement,
        (0.0, 1.0),
        TWO_JUDGMENTS,
    )
)
register(
    AgreementMeasure(
        "fleiss_kappa",
        "Fleiss' kappa",
        "Agreement beyond chance of any number of judges, chance from the labels of all together.",
        fleiss_kappa,
        (-1.0, 1.0),
        TWO_LABELS,
    )
)
register(
    AgreementMeasure(
        "krippendorff_alpha",
        "Krippendorff's alpha",
        "One minus observed over expected disagreement (nominal); made for gaps and few items.",
        krippendorff_alpha,
        (-1.0, 1.0),
        TWO_LABELS,
    )
)
register(
    AgreementMeasure(
        "gwet_ac1",
        "Gwet's AC1",
        "Agreement beyond chance that stays high where one label is much more frequent.",
        gwet_ac1,
        (-1.0, 1.0),
        TWO_LABELS,
    )
)
register(
    AgreementMeasure(
        "ordinal_alpha",
        "Krippendorff's alpha, ordinal",
        "For grades and scores: a disagreement counts more, the more answers lie between the two.",
        ordinal_alpha,
        (-1.0, 1.0),
        TWO_LABELS,
        is_ordered=True,
    )
)
register(
    AgreementMeasure(
        "weighted_fleiss_kappa",
        "Fleiss' kappa, quadratic weights",
        "For grades and scores: as Fleiss' kappa, a disagreement counting by the square of the "
        "difference of the two answers.",
        weighted_fleiss_kappa,
        (-1.0, 1.0),
        TWO_LABELS,
        is_ordered=True,
    )
)
register(
    AgreementMeasure(
        "linear_weighted_fleiss_kappa",
        "Fleiss' kappa, linear weights",
        "For grades and scores: as Fleiss' kappa, a disagreement counting by the difference of the "
        "two answers.",
        partial(weighted_fleiss_kappa, weights="linear"),
        (-1.0, 1.0),
        TWO_LABELS,
        is_ordered=True,
    )
)
