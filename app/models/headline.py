"""Measures of instruction following, each with n, its interval and what is ranked.

On held-out groups strict accuracy and the flips come first.
"""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from analysis.figures.numbers import Cells
from analysis.figures.paired import P_MRR
from app.kit.figure import draw_rows
from app.text.plain import plain
from db.tables import Evaluation
from trainer.evaluate.following import (
    INSTRUCTION_FLIP,
    MAX_BASE_FLIP,
    ON_GROUPS,
    STABILITY,
    STABILITY_HELP,
)
from trainer.evaluate.intervals import following_means, ranked_over
from trainer.evaluate.measures.compliance import COMPLIANCE
from trainer.report.compared.conditions import marked
from trainer.report.compared.measures import NAMES, SOMETIMES, is_trained, model_name

HELP = {
    **ON_GROUPS,
    STABILITY: STABILITY_HELP,
    **COMPLIANCE,
    "p-mrr": "How far documents fall whose relevance the changed instruction takes away. Bounded "
    "by what stands between: among three passages a perfect answer has 0.5, and a better model can "
    "have a lower value.",
    "judged@10": "Share of the first ten documents that have a judgment; where it is low, other "
    "measures count documents as irrelevant that nobody looked at.",
}

MAX_ROWS_SHOWN = 30  # of more the table scrolls
CAPTION = (
    "A flip is 0 at worst: a model that ignores instructions ranks one passage first under both. A "
    "model that ranks at random flips 1 group in 4 (0.25). Strict accuracy and the flips are the "
    "headline of held-out groups; p-MRR can be lower for a better model, and is ×100 in the other "
    "tables, as in the papers. n: groups or queries. 95 % intervals over clusters of queries that "
    "belong together: Wilson's for shares, bootstrap-t or Student's t for WISE and p-MRR."
)


def headline_rows(evaluations: Sequence[Evaluation], names: Sequence[str]) -> list[Cells]:
    """A row per measure and model: the mean over groups or queries, its 95 % interval, how many,
    and what is ranked. All models of a measure stand together, a trained one below its base; p-MRR
    is on the scale of the others. names: the models', in the same order."""
    order = sorted(range(len(evaluations)), key=lambda n: bool(is_trained(evaluations[n])))
    evaluations, names = [evaluations[n] for n in order], [names[n] for n in order]
    rows: list[Cells] = []
    for model, each in zip(names, evaluations, strict=True):
        for name, found in following_means(each.per_query, each.questions).items():
            if each.metrics.get(name) is None:
                continue
            rows.append(
                {
                    "Measure": "p-MRR" if name == P_MRR else (SOMETIMES | NAMES)[name],
                    "Model": model,
                    "Mean": found.value,
                    "95 % from": found.low,
                    "to": found.high,
                    "n": found.queries,
                    "Ranked over": ranked_over(name, each.metrics, each.record),
                    "Interval by": found.method or f"none: {found.reason}",
                    "Clusters": found.clusters,
                }
            )
    measures = list(dict.fromkeys(row["Measure"] for row in rows))
    return sorted(rows, key=lambda row: measures.index(row["Measure"]))


def too_easy(evaluations: Sequence[Evaluation]) -> str:
    """A sentence where a model that is known to be untrained already follows nearly every group;
    else empty.
    """
    for each in evaluations:
        flip = each.metrics.get(INSTRUCTION_FLIP)
        if is_trained(each) is False and flip is not None and flip > MAX_BASE_FLIP:
            return (
                f"{model_name(each.model)} has instruction flip {flip:.2f} without training: these "
                "held-out groups are too easy to show an improvement."
            )
    return ""


def draw_headline(evaluations: Sequence[Evaluation]) -> None:
    """The table with its caption; nothing for a benchmark without such measures."""
    names, lines = marked(evaluations)
    rows = headline_rows(evaluations, names)
    if not rows:
        return
    number = st.column_config.NumberColumn(format="%.3f")
    columns: dict[str, Any] = dict.fromkeys(("Mean", "95 % from", "to"), number)
    columns["Ranked over"] = st.column_config.TextColumn(width=180)
    height: Any = "content" if len(rows) <= MAX_ROWS_SHOWN else "auto"
    first = ("Measure", "Mean", "Model")  # a phone shows two columns and the start of the third
    draw_rows(
        rows,
        None,
        key="evaluations.headline",
        column_config=columns,
        column_order=(*first, *(name for name in rows[0] if name not in first)),
        height=height,
    )
    for line in lines:
        st.caption(plain(line))
    st.caption(CAPTION)
