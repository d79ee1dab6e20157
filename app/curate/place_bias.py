"""Whether a run's judge prefers a place on its list: candidates are shuffled for every call."""

import streamlit as st

from analysis.agreement.judge_profile import place_bias
from app.text.plain import plain
from db.run.position_bias import MOST_JUDGMENTS, PlaceCount, position_bias
from db.store.store import open_store

SURE = 0.01  # below it, that places are chosen unevenly is taken for no accident


def draw_place_bias(run_id: int) -> None:
    """Every place: how often the right passage stood there, was chosen, and was found."""
    if not st.toggle("Position bias of the judge", key="curate.show_bias"):
        return
    with open_store().read() as session:
        places = position_bias(session, run_id)
    if not places:
        st.caption("The judge has answered nothing yet.")
        return
    st.dataframe(
        [
            {
                "Place": each.place,
                "Right passage there": each.expected,
                "Chosen": each.chosen,
                "Found where it stood": each.accuracy,
            }
            for each in places
        ],
        hide_index=True,
        column_config={
            "Found where it stood": st.column_config.ProgressColumn(
                format="percent", color="primary"
            )
        },
    )
    st.caption(plain(bias_in_words(places)))


def bias_in_words(places: list[PlaceCount]) -> str:
    """What the counts say: Pearson's test of equal shares of the places."""
    told = place_bias([(each.place, len(places)) for each in places for _ in range(each.chosen)])
    if told["p"] is None:
        words = f"No test: {told['reason']}."
    elif told["p"] < SURE:
        words = f"The places are not chosen equally often (p = {told['p']:.2g})."
    else:
        words = f"No sign of a preference for a place (p = {told['p']:.2f})."
    counted = sum(each.expected for each in places)
    return f"{words} Over {counted:,} answers, the newest {MOST_JUDGMENTS:,} items at most."
