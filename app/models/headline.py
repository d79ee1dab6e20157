"""Measures of instruction following, each with n, its interval and what is ranked.

On held-out groups strict accuracy and the flips come first.
"""

from collections.abc import Sequence

import streamlit as st

from analysis.figures.paired import P_MRR
from app.kit.figure import draw_rows
from app.models.compared.conditions import marked
from app.models.compared.measures import NAMES, SOMETIMES, model_name
from app.models.compared.trained import is_trained
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

CAPTION = (
    "Chance is 0.25 for a flip; a model that ignores instructions has instruction flip 0. Strict "
    "accuracy and the flips are the headline of held-out groups; p-MRR can be lower for a better "
    "model. 95 % intervals over clusters of queries that belong together: Wilson's for shares, "
    "bootstrap-t or Student's t for WISE and p-MRR."
)


def headline_rows(
    evaluations: Sequence[Evaluation], names: Sequence[str]
) -> list[dict[str, object]]:
    """A row per model and measure: the mean over groups or queries, its 95 % interval, how many,
    and what is ranked. p-MRR times 100. names: the models', in the same order."""
    rows: list[dict[str, object]] = []
    for model, each in zip(names, evaluations, strict=True):
        for name, found in following_means(each.per_query, each.questions).items():
            if each.metrics.get(name) is None:
                continue
            scale = 100 if name == P_MRR else 1
            rows.append(
                {
                    "Model": model,
                    "Measure": (SOMETIMES | NAMES)[name],
                    "Value": found.value * scale,
                    "from": None if found.low is None else found.low * scale,
                    "to": None if found.high is None else found.high * scale,
                    "Values": found.queries,
                    "Clusters": found.clusters,
                    "Ranked over": ranked_over(name, each.metrics, each.record),
                    "Interval by": found.method or f"none: {found.reason}",
                }
            )
    return rows


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
    number = st.column_config.NumberColumn(format="%.4f")
    columns = dict.fromkeys(("Value", "from", "to"), number)
    draw_rows(rows, None, key="evaluations.headline", column_config=columns)
    for line in lines:
        st.caption(plain(line))
    st.caption(CAPTION)
    if sentence := too_easy(evaluations):
        st.warning(sentence, icon=":material/warning:")
