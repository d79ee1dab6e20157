"""Figures of agreement, as rows: values with intervals, and why one is missing.

A key that there is nothing for is left out of JSON.
"""

from collections.abc import Mapping

from db.rows import SparseRow

Interval = tuple[float, float]  # of 95 %


class Figure(SparseRow):
    """A coefficient with its interval; without a value the reason.

    `agreement`: raw; `people`: how many; `flagged`: of them who is, and why; `without_flagged`: the
    figure without these.
    """

    value: float | None = None
    coefficient: str = ""
    label: str = ""
    people: int = 0
    items: int = 0
    weights: str = ""
    interval: Interval | None = None
    interval_from: str = ""
    undefined_resamples: int = 0
    agreement: float | None = None
    standard_error: float | None = None
    reason: str = ""
    flagged: Mapping[str, str] = {}
    without_flagged: "Figure | None" = None


class Pair(SparseRow):
    """Kappa of two judges."""

    judge_a: str
    judge_b: str
    kappa: float | None
    standard_error: float | None
    interval: Interval | None
    interval_from: str = ""
    undefined_resamples: int = 0
    agreement: float | None
    items: int
    reason: str = ""
    flagged: Mapping[str, str] = {}


class PairsCounted(SparseRow):
    """All pairs of judges: how many are listed, and how many share `min_shared` items."""

    pairs: int
    listed: int
    with_enough_items: int
    with_fewer: int
    min_shared: int


class ModelDifference(SparseRow):
    """By how much two models differ in kappa with people; `differs`: clearly."""

    model_a: str
    model_b: str
    difference: float | None
    interval: Interval | None = None
    interval_from: str = ""
    undefined_resamples: int = 0
    differs: bool | None = None
    reason: str = ""
    flagged: Mapping[str, str] = {}
    without_flagged: "ModelDifference | None" = None


class JudgeCounted(SparseRow):
    """A judge and how many items they judged."""

    judge: str
    kind: str
    simulated: bool
    offline: bool
    items: int


class AgreementReport(SparseRow):
    """The agreement of judges, of `analysis.agreement.agreement.report_of`.

    `all_judges` and `people`: every measure by name; `with_people` and `with_models`: every judge
    with the others of a kind; weighted kappas of answers in an order.
    """

    items: int
    records: int
    judgments: int
    labels: tuple[str, ...]
    resamples: int
    judges: tuple[JudgeCounted, ...]
    pairs: tuple[Pair, ...]
    pairs_counted: PairsCounted
    pair_resamples: int
    human_human: Figure
    human_model: dict[str, Figure]
    differences: tuple[ModelDifference, ...]
    all_judges: dict[str, Figure]
    people: dict[str, Figure]
    with_people: dict[str, Figure]
    with_models: dict[str, Figure]
    weighted_kappa: Figure | None = None
    linear_weighted_kappa: Figure | None = None
    flagged: dict[str, str]
    simulated: bool
    simulated_left_out: int
    question: str = ""


class PositionBias(SparseRow):
    """How often each place on the screen was chosen, with the test of equal shares."""

    choices: int
    shares: tuple[float, ...]
    chi_squared: float | None = None
    p: float | None
    reason: str = ""
