"""Rows of what operations on agreement find: figures with intervals, and why one is missing.

`analysis` computes them as mappings, one code for all; here is what each may hold. A key that there
is nothing for is left out of JSON.
"""

from collections.abc import Mapping

from pydantic import ConfigDict, Field

from analysis.agreement.judge_profile import JudgeProfile
from analysis.agreement.over_time import WindowRow
from analysis.found.agreement import AgreementReport, Figure, Interval
from analysis.study.balance import Imbalance
from db.rows import SparseRow


class StudyFigures(SparseRow):
    """The figures of a study as its page shows them; `report` is of one question."""

    report: AgreementReport
    over_time: tuple[WindowRow, ...] = ()
    by_judge: tuple[JudgeProfile, ...] = ()


class QuestionAgreement(AgreementReport):
    """The agreement on a question, with each coefficient of people by its own name, too."""

    model_config = ConfigDict(extra="allow")
    __pydantic_extra__: dict[str, Figure]
    type: str
    text: str
    meanings: dict[str, str]


class AuditShare(SparseRow):
    """A share of `cases` in `records` records."""

    value: float | None
    interval: Interval | None
    cases: int = Field(alias="of")
    records: int
    reason: str = ""


class AuditValidity(SparseRow):
    """Which passages hold what they were made for, by people's answers."""

    positives: AuditShare
    negatives: AuditShare
    by_kind: dict[str, AuditShare]
    strict_record_validity: AuditShare


class Audit(SparseRow):
    """The audit of a study's items over its records, by question."""

    records: int
    resamples: int
    acceptability: dict[str, AuditShare]
    validity: dict[str, AuditValidity]


class Filtered(SparseRow):
    """How a filter would keep the groups that the run has verdicts of."""

    groups: int
    kept: int
    kept_by_both: int
    only_here: int
    only_by_the_run: int
    kept_groups_in_part: int
    surely_dropped_of_them: int


class Validator(Filtered):
    """A model judge as the validator of a run, its price and its kappa with people."""

    judge: str
    items: int
    items_passed: float | None
    reason: str = ""
    usd_per_1000_items: float | None
    price_from: str | None
    price_reason: str = ""
    human_kappa: Figure | None = None


class Vote(Filtered):
    """Several judges as the validator of a run, by a policy."""

    policy: str
    judges: tuple[str, ...]


class OtherModel(SparseRow):
    """A model with a price that judged nothing here."""

    model: str
    usd_per_1000_items: float
    price_from: str


class Estimate(SparseRow):
    """A share of the run's items with its interval, from `judged` groups; `covered`: how much of
    `items` the strata with judgments are."""

    value: float | None
    interval: Interval | None
    judged: int = 0
    items: int = 0
    covered: float = 0.0
    reason: str = ""
    no_interval: str = ""
    flagged: Mapping[str, str] = {}
    without_flagged: "Estimate | None" = None


class PartEstimate(Estimate):
    """The estimate of a part of the run: a scenario, a source or a drop reason."""

    part: str
    by: str
    name: str
    without_flagged: "PartEstimate | None" = None


class Bounds(SparseRow):
    """Between which shares of whole groups; `interval`: the limits of the sample."""

    low: float | None
    high: float | None
    interval: Interval | None
    reason: str = ""
    flagged: Mapping[str, str] = {}
    without_flagged: "Bounds | None" = None


class RunGroups(SparseRow):
    """Groups of a run that reached the validator."""

    kept: int
    dropped: int


class RunEstimates(SparseRow):
    """What a study says about its run; `waiting` items of its queue have no judgment, and the
    judged ones differ from them in `imbalances`."""

    study_id: int
    run_id: int
    simulated: bool
    flagged: dict[str, str]
    strata: tuple[str, ...]
    known: tuple[str, ...]
    reason: str = ""
    judged: int
    ties: int
    groups: RunGroups
    precision: Estimate
    overturned: Estimate
    recall: Estimate
    kept_groups: Bounds
    dropped_groups: Bounds
    group_recall: Bounds
    parts: tuple[PartEstimate, ...]
    waiting: int
    imbalances: tuple[Imbalance, ...]


class Threshold(SparseRow):
    """The figures of a stricter filter; without a `threshold` the run as it is."""

    threshold: float | None
    kept_groups: int
    size: float | None
    precision: Estimate
    recall: Estimate


class Explored(SparseRow):
    """A strictness with its thresholds, or why it has none."""

    by: str
    rows: tuple[Threshold, ...]
    reason: str = ""


class ThresholdsExplored(SparseRow):
    """Every strictness of a study's run; without any the reason."""

    study_id: int
    run_id: int
    simulated: bool
    explored: tuple[Explored, ...]
    reason: str = ""


class PlanCell(SparseRow):
    """Items to add among groups of a kind, in a stratum."""

    verdict: str
    among: str
    scenario: str = ""
    source: str = ""
    items: int

    @property
    def strata(self) -> dict[str, str]:
        """The strata that the study has, by their names."""
        named = self.model_fields_set & {"scenario", "source"}
        return {name: getattr(self, name) for name in sorted(named)}


class StudyPlanned(SparseRow):
    """How many more judgments a figure needs; `now` and `expected` are half-widths, `added`: the
    items are in the study."""

    study_id: int
    added: bool
    target: str
    reach: float | None
    now: float | None
    expected: float
    is_enough: bool
    items: int
    judgments: int
    cells: tuple[PlanCell, ...]


class JudgeQuality(SparseRow):
    """How often a person is right by the consensus, next to the others on `compared` items.

    `worst`: the kind of item where they are furthest below, and what they choose there `instead`.
    """

    judge: str
    items: int
    accuracy: float | None
    others: float | None
    p: float | None
    outlier: bool
    reason: str = ""
    compared: int = 0
    worst: str = ""
    worst_items: int = 0
    worst_accuracy: float = 0.0
    worst_others: float = 0.0
    instead: str = ""
    without_flagged: "JudgeQuality | None" = None


class ModelQuality(SparseRow):
    """The mean probability of a model's labels by the consensus of people."""

    judge: str
    items: int
    accuracy: float
    without_flagged: "ModelQuality | None" = None


class ItemConsensus(SparseRow):
    """The most probable label of an item, and who voted for what."""

    item: int
    label: str
    probability: float
    votes: dict[str, int]
    scenario: str
    is_right: bool | None


class SureWithout(SparseRow):
    """How many labels are sure without flagged people."""

    sure: int


class StudyConsensus(SparseRow):
    """The consensus of a study's people; `sure`: labels of probability 0.9 or more."""

    study_id: int
    simulated: bool
    sure: int
    judges: tuple[JudgeQuality, ...]
    models: tuple[ModelQuality, ...]
    items: tuple[ItemConsensus, ...]
    flagged: dict[str, str]
    without_flagged: SureWithout | None = None
