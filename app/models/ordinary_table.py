"""The table of ordinary retrieval under instruction scores."""

from collections.abc import Sequence

import streamlit as st

from app.kit.figure import draw_rows
from app.models import actions
from app.models.compared.ordinary import NOT_MEASURED, ordinary_rows
from app.models.compared.trained import is_trained
from db.tables import Evaluation


def draw_ordinary(evaluations: Sequence[Evaluation]) -> None:
    """Whether ordinary retrieval suffered, next to scores with instructions; else nothing."""
    if not any(each.record.get("instructions") for each in evaluations):
        return
    # untrained models first: the others are compared with the first one
    ordered = sorted(evaluations, key=lambda each: bool(is_trained(each)))
    rows = ordinary_rows(ordered, actions.read_ordinary({each.model for each in evaluations}))
    if not rows:
        st.caption(f"{NOT_MEASURED[0].upper()}{NOT_MEASURED[1:]}.")
        return
    number = st.column_config.NumberColumn(format="%+.3f")
    draw_rows(
        rows,
        None,
        key="evaluations.ordinary_table",
        column_config={
            "nDCG@10": st.column_config.NumberColumn(format="%.3f"),
            **dict.fromkeys(("Difference", "to"), number),
            "from": st.column_config.NumberColumn("95 % from", format="%+.3f"),
        },
    )
    st.caption(
        "Ordinary retrieval: queries without instructions. Differences are to the first model, "
        "untrained ones first."
    )
