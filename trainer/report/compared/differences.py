"""Differences of models to a base on one benchmark: intervals, p by Holm, and a verdict."""

from collections.abc import Mapping, Sequence

from analysis.figures.paired import holm, paired_difference, verdict
from db.rows import Row
from db.tables import Evaluation
from trainer.evaluate.following import INSTRUCTION_CONTROL, QUERY_CONTROL
from trainer.report.compared.conditions import unlike
from trainer.report.compared.measures import NAMES, SOMETIMES, model_name

# A flip read from one half of the text: as high as the flip itself, it is no joint reading.
CONTROLS = {
    INSTRUCTION_CONTROL: "Instruction flip, instruction alone",
    QUERY_CONTROL: "Query flip, query alone",
}
# the headline first; judged@10 is no quality
COMPARED = {name: of for name, of in (SOMETIMES | NAMES | CONTROLS).items() if name != "judged@10"}
METHOD = (
    "Paired over the same queries, averaged as the scores are (on FollowIR the original queries "
    "alone). 95 % interval and p by bootstrap-t over clusters of queries that belong together "
    "(10,000 resamples), or by Student's t where that is wider; p is adjusted by Holm for the "
    "number of models. Higher and lower: the interval excludes zero and the adjusted p is at most "
    "0.05."
)

# What tables, downloads and earlier versions' JSON call the fields of a difference.
LABELS = {
    "name": "Model",
    "measure": "Metric",
    "difference": "Difference",
    "low": "95 % from",
    "high": "to",
    "p_holm": "p (Holm)",
    "verdict": "Verdict",
    "queries": "Queries",
    "gained": "Gained",
    "lost": "Lost",
    "clusters": "Clusters",
    "method": "Interval by",
}


class Difference(Row):
    """The difference of an evaluation to its base on a measure; `name`: of its model.

    `low` to `high`: the 95 % interval; `p_holm`: adjusted for the number of models; `method`: of
    the interval.
    """

    id: int
    name: str
    benchmark: str
    measure: str
    difference: float
    low: float | None
    high: float | None
    p_holm: float | None
    verdict: str
    queries: int
    gained: int
    lost: int
    clusters: int
    method: str | None
    model: str


def difference_rows(
    base: Evaluation, others: Sequence[Evaluation], metrics: Mapping[str, str] = COMPARED
) -> list[Difference]:
    """A row per model and metric: the difference to the base, its interval, p and a verdict.

    metrics: {name: title}.

    p is adjusted by Holm for the number of models compared with the base on that metric.
    """
    found = {
        metric: [
            paired_difference(
                base.per_query, each.per_query, metric, each.questions or base.questions
            )
            for each in others
        ]
        for metric in metrics
    }
    adjusted = {metric: holm([each.p for each in row]) for metric, row in found.items()}
    rows: list[Difference] = []
    for place, each in enumerate(others):
        for metric, title in metrics.items():
            difference, p = found[metric][place], adjusted[metric][place]
            value = difference.value
            if value is None and metric in CONTROLS:  # earlier versions stored its mean alone
                first, second = (one.metrics.get(metric) for one in (base, each))
                value = None if first is None or second is None else second - first
            if value is None:
                continue
            scale = 100 if metric == "p-mrr" else 1
            low, high = difference.low, difference.high
            rows.append(
                Difference(
                    id=each.id,
                    name=model_name(each.model),
                    benchmark=each.benchmark,
                    measure=title,
                    difference=value * scale,
                    low=None if low is None else low * scale,
                    high=None if high is None else high * scale,
                    p_holm=p,
                    verdict=verdict(difference, p),
                    queries=difference.queries,
                    gained=difference.gained,
                    lost=difference.lost,
                    clusters=difference.clusters,
                    method=difference.method,
                    model=each.model,
                )
            )
    return rows


def clearly_best(evaluations: Sequence[Evaluation], metric: str) -> Evaluation | None:
    """The evaluation that a test finds higher than every other one on a metric; None without.

    Paired over clusters, p by Holm for the number of other models. None too where one of the others
    is not comparable or has no values by query: what was not tested is not called best.
    """
    scored = [each for each in evaluations if each.metrics.get(metric) is not None]
    if len(scored) < 2:
        return None
    best = max(scored, key=lambda each: float(each.metrics[metric]))
    others = [each for each in scored if each is not best]
    if unlike(best, others):
        return None
    found = [
        paired_difference(each.per_query, best.per_query, metric, best.questions) for each in others
    ]
    adjusted = holm([each.p for each in found])
    verdicts = [verdict(each, p) for each, p in zip(found, adjusted, strict=True)]
    return best if set(verdicts) == {"higher"} else None
