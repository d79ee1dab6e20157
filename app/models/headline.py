"""The headline of held-out groups: strict accuracy and instruction flip, with n and interval."""

from collections.abc import Sequence

import streamlit as st

from app.models.compared.measures import SOMETIMES, model_name
from app.models.trained import is_trained
from db.tables import Evaluation
from trainer.evaluate.compliance import COMPLIANCE
from trainer.evaluate.following import (
    FOLLOWING,
    INSTRUCTION_FLIP,
    MAX_BASE_FLIP,
    STABILITY,
    STABILITY_HELP,
    share_interval,
)

HEADLINE = {name: SOMETIMES[name] for name in (*FOLLOWING, STABILITY)}
HELP = {
    **FOLLOWING,
    STABILITY: STABILITY_HELP,
    **COMPLIANCE,
    "p-mrr": "How far documents fall whose relevance the changed instruction takes away. Bounded "
    "by what stands between: among three passages a perfect answer has 0.5, and a better model can "
    "have a lower value.",
    "judged@10": "Share of the first ten documents that have a judgment; where it is low, other "
    "measures count documents as irrelevant that nobody looked at.",
}


def headline_rows(evaluations: Sequence[Evaluation]) -> list[dict[str, object]]:
    """A row per model and measure: share of groups, Wilson's 95 % interval, number of groups."""
    rows: list[dict[str, object]] = []
    for each in evaluations:
        for name, title in HEADLINE.items():
            groups = sum(name in values for values in each.per_query.values())
            value = each.metrics.get(name)
            if value is None or not groups:
                continue
            low, high = share_interval(float(value), groups)
            rows.append(
                {
                    "Model": model_name(each.model),
                    "Measure": title,
                    "Share of groups": float(value),
                    "from": low,
                    "to": high,
                    "Groups": groups,
                    "Ranked over": "the group's 3 passages",
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
    """The table with its caption; nothing for a benchmark without groups."""
    rows = headline_rows(evaluations)
    if not rows:
        return
    number = st.column_config.NumberColumn(format="%.4f")
    columns = dict.fromkeys(("Share of groups", "from", "to"), number)
    st.dataframe(rows, hide_index=True, column_config=columns)
    st.caption(
        "Chance is 0.25 for a flip; a model that ignores instructions has instruction flip 0. 95 % "
        "interval by Wilson's formula over groups. p-MRR, SICR and WISE stand in the table below, "
        "ranked over BM25's best 100 passages for the query and the group's own."
    )
    if sentence := too_easy(evaluations):
        st.warning(sentence, icon=":material/warning:")
