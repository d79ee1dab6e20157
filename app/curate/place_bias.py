"""Position bias of a run's judge; candidates are shuffled for every call."""

import streamlit as st

from analysis.agreement.judge_profile import place_bias
from app.curate import actions
from app.kit.figure import draw_rows
from app.text.plain import plain
from db.run.position_bias import MAX_JUDGMENTS, PlaceCount

SIGNIFICANCE = 0.01


def draw_place_bias(run_id: int) -> None:
    """Draw per position: how often the right passage was there, was chosen, and was found."""
    if not st.toggle("Position bias of the judge", key="curate.show_bias"):
        return
    places = actions.position_counts(run_id)
    if not places:
        st.caption("No answers of the judge yet.")
        return
    draw_rows(
        [
            {
                "Position": each.place,
                "Right passage here": each.expected,
                "Chosen": each.chosen,
                "Found when here": each.accuracy,
            }
            for each in places
        ],
        None,
        key="curate.place_bias",
        column_config={
            "Found when here": st.column_config.ProgressColumn(format="percent", color="primary")
        },
    )
    st.caption(plain(bias_summary(places)))


def bias_summary(places: list[PlaceCount]) -> str:
    """The result of Pearson's chi-squared test for equal shares of the positions."""
    test = place_bias([(each.place, len(places)) for each in places for _ in range(each.chosen)])
    if test["p"] is None:
        result = f"No test: {test['reason']}."
    elif test["p"] < SIGNIFICANCE:
        result = f"Positions are not chosen equally often (p = {test['p']:.2g})."
    else:
        result = f"No evidence of position bias (p = {test['p']:.2f})."
    counted = sum(each.expected for each in places)
    return f"{result} Based on {counted:,} answers (at most the newest {MAX_JUDGMENTS:,} items)."
