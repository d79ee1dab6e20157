"""Each judge of a study: pace, agreement with the others, gold, preference for a place."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.kit.figure import Origin, draw_rows
from app.text.plain import plain

WHAT = {
    "with_people": "Kappa with people",
    "with_models": "Kappa with models",
    "position_bias": "Position bias",
}


def draw_judges(profiles: Sequence[Mapping[str, Any]], origin: Origin) -> None:
    """A row per judge; what is undefined has its reason beneath."""
    rows = [judge_row(each) for each in profiles]
    if not rows:
        return
    st.subheader("Judge by judge", anchor=False)
    kappa = st.column_config.NumberColumn(format="%.3f")
    draw_rows(
        rows,
        origin,
        key="agreement.judges",
        column_config={
            "Kappa with people": kappa,
            "Kappa with models": kappa,
            "Seconds": st.column_config.NumberColumn(
                format="%.1f", help="From shown to decided: the median of the last 200."
            ),
            "Gold accuracy": st.column_config.NumberColumn(format="percent"),
            "Places chosen": st.column_config.BarChartColumn(
                y_min=0, y_max=1, help="Share of each place on the screen among the choices."
            ),
            "Bias p": st.column_config.NumberColumn(
                format="%.4f",
                help="Chi-squared test of equal shares: small means a preference for some places.",
            ),
        },
    )
    if missing := missing_words(profiles):
        st.caption(plain("\n".join(missing)))


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
        "Places chosen": each["position_bias"]["shares"],
        "Bias p": each["position_bias"]["p"],
    }


def missing_words(profiles: Sequence[Mapping[str, Any]]) -> list[str]:
    """Why numbers are missing: a line per reason, with the judges it holds for."""
    found: dict[str, list[str]] = {}
    for each in profiles:
        for what, words in WHAT.items():
            if "reason" in each[what]:
                found.setdefault(f"{words} undefined: {each[what]['reason']}", []).append(
                    each["judge"]
                )
    return [f"{words} ({', '.join(judges)})" for words, judges in found.items()]
