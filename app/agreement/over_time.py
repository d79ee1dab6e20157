"""Agreement over time: whether a study's judges converge or drift apart."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from analysis.agreement.judging_figures import over_time_lines
from app.kit.figure import Origin, draw_figure
from app.text.numbers import counted
from app.text.plain import plain


def draw_over_time(windows: Sequence[dict[str, Any]], origin: Origin) -> None:
    """The lines, and the number of undefined values."""
    st.subheader("Over time", anchor=False)
    if not windows:
        st.caption("Too few judged items for windows of time.")
        return
    rows = window_rows(windows)
    if not any(row["Kappa"] is not None for row in rows):
        st.caption(plain(f"Kappa is undefined in every window: {rows[0]['Reason if undefined']}."))
        return
    draw_figure(over_time_lines(windows), rows, origin, key="agreement.over_time")
    missing = sum(row["Kappa"] is None for row in rows)
    st.caption(
        f"Items in order of completion by people, in {len(windows)} windows of equal size."
        + (
            f" {counted(missing, 'undefined value')} not shown; the CSV has the reasons."
            * bool(missing)
        )
    )


def window_rows(windows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per window and series."""
    return [
        {
            "Window": window["window"],
            "From": window["from"],
            "To": window["to"],
            "Items": window["items"],
            "Judgments": window["judgments"],
            "People with": name,
            "Kappa": mean["kappa"],
            "Pairs": mean["pairs"],
            "Reason if undefined": mean.get("reason", ""),
        }
        for window in windows
        for name, mean in {"people": window["human_human"], **window["human_model"]}.items()
    ]
