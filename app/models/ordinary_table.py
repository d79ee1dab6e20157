"""The table of ordinary retrieval under instruction scores."""

from collections.abc import Callable, Sequence

import streamlit as st

from app.kit.figure import draw_rows
from app.models.comparison import LABELS
from db.tables import Evaluation
from trainer.report.compared.ordinary import MEASURE, NOT_MEASURED, TITLE, ordinary_rows
from trainer.report.compared.trained import is_trained


def draw_ordinary(
    evaluations: Sequence[Evaluation], ordinary: Callable[[set[str]], list[Evaluation]]
) -> None:
    """Whether ordinary retrieval suffered, next to scores with instructions; else nothing.

    ordinary: the evaluations of models on benchmarks without instructions.
    """
    if not any(each.record.get("instructions") for each in evaluations):
        return
    # untrained models first: the others are compared with the first one
    ordered = sorted(evaluations, key=lambda each: bool(is_trained(each)))
    rows = ordinary_rows(ordered, ordinary({each.model for each in evaluations}))
    if not rows:
        st.caption(f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]}.")
        return
    number = st.column_config.NumberColumn(format="%+.3f")
    draw_rows(
        rows,
        None,
        key="evaluations.ordinary_table",
        labels=LABELS | {"benchmark": "Ordinary retrieval", MEASURE: TITLE},
        column_config={
            "id": None,
            MEASURE: st.column_config.NumberColumn(format="%.3f"),
            **dict.fromkeys(("difference", "low", "high"), number),
        },
    )
    st.caption(
        "Ordinary retrieval: queries without instructions. Differences are to the first model, "
        "untrained ones first."
    )
