"""Ordinary retrieval next to instruction scores: did it suffer?"""

from collections.abc import Sequence

from analysis.figures.numbers import Cells
from db.tables import Evaluation
from trainer.report.compared.conditions import unlike
from trainer.report.compared.differences import difference_rows
from trainer.report.compared.measures import model_name

MEASURE, TITLE = "ndcg@10", "nDCG@10"
NOT_MEASURED = (
    "whether ordinary retrieval suffered is not measured for these models: evaluate them on a "
    "benchmark without instructions too (`ordinary=`: any BEIR folder, or dataset:NAME for the "
    "queries and passages of a dataset)"
)


def is_ordinary(evaluation: Evaluation) -> bool:
    """Whether it is of queries without instructions, with values by query."""
    return evaluation.record.get("instructions") is False and bool(evaluation.per_query)


def ordinary_rows(evaluations: Sequence[Evaluation], ordinary: Sequence[Evaluation]) -> list[Cells]:
    """A row per model and ordinary benchmark: nDCG@10, and the difference to the first model.

    evaluations: those shown, the base first; ordinary: the newest of each model and benchmark.
    """
    wanted = [each.model for each in evaluations]
    rows: list[Cells] = []
    for benchmark in dict.fromkeys(each.benchmark for each in ordinary):
        theirs = {
            each.model: each
            for each in ordinary
            if each.benchmark == benchmark and each.model in wanted
        }
        found = [theirs[model] for model in wanted if model in theirs]
        base = found[0] if found else None
        for each in found:
            row: Cells = {
                "id": each.id,
                "name": model_name(each.model),
                "benchmark": benchmark,
                MEASURE: each.metrics.get(MEASURE),
            }
            rows.append(row | (_difference(base, each) if base and each is not base else {}))
    return rows


def _difference(base: Evaluation, other: Evaluation) -> Cells:
    """The difference in nDCG@10 with its interval and verdict, or why there is none."""
    reasons = unlike(base, [other]).get(other.id)
    if reasons:
        return {"verdict": f"not compared: {', '.join(reasons)}"}
    found = difference_rows(base, [other], {MEASURE: TITLE})
    keys = ("difference", "low", "high", "verdict")
    return {key: getattr(found[0], key) for key in keys} if found else {}
