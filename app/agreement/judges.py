"""Judges of a study: pace, agreement with others, gold accuracy, position bias."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.kit.figure import Origin, draw_rows
from app.text.plain import plain

MEASURES = {
    "with_people": "Kappa with people",
    "with_models": "Kappa with models",
    "position_bias": "Position bias",
}


def draw_judges(profiles: Sequence[Mapping[str, Any]], origin: Origin) -> None:
    """A row per judge; the reasons of undefined values follow the table."""
    rows = [judge_row(each) for each in profiles]
    if not rows:
        return
    st.subheader("Per judge", anchor=False)
    kappa = st.column_config.NumberColumn(format="%.3f")
    draw_rows(
        rows,
        origin,
        key="agreement.judges",
        column_config={
            "Kappa with people": kappa,
            "Kappa with models": kappa,
            "Seconds": st.column_config.NumberColumn(
                format="%.1f", help="Median time from display to decision, last 200 answers."
            ),
            "Gold accuracy": st.column_config.NumberColumn(format="percent"),
            "Positions chosen": st.column_config.BarChartColumn(
                y_min=0, y_max=1, help="Share of each screen position among the choices."
            ),
            "Bias p": st.column_config.NumberColumn(
                format="%.4f",
                help="Chi-squared test of equal shares; a small p means a position preference.",
            ),
        },
    )
    if reasons := undefined_reasons(profiles):
        st.caption(plain("\n".join(reasons)))


def judge_row(each: Mapping[str, Any]) -> dict[str, Any]:
    """A profile as a row of the table."""
    return {
        "Judge": each["judge"],
        "Kind": each["kind"],
        "Judged": each["judged"],
        "Kappa with people": each["with_people"]["kappa"],
        "Kappa with models": each["with_models"]["kappa"],
        "Seconds": each["median_seconds"],
        "Gold seen": each["gold_seen"],
        "Gold accuracy": each["gold_accuracy"],
        "Positions chosen": each["position_bias"]["shares"],
        "Bias p": each["position_bias"]["p"],
    }


def undefined_reasons(profiles: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why values are undefined: a line per reason, with the judges it applies to."""
    found: dict[str, list[str]] = {}
    for each in profiles:
        for key, label in MEASURES.items():
            if "reason" in each[key]:
                found.setdefault(f"{label} undefined: {each[key]['reason']}", []).append(
                    each["judge"]
                )
    return [f"{reason} ({', '.join(judges)})" for reason, judges in found.items()]
