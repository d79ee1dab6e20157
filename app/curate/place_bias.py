"""What could find the right passage of a run's items unread: its position, or shared words."""

import streamlit as st

from analysis.agreement.judge_profile import place_bias
from analysis.figures.means import share_of
from app.access.identity import SessionUser
from app.kit.figure import draw_rows
from app.operations.overview import run
from app.text.numbers import counted
from app.text.plain import plain
from curation.judging.text_baseline import baseline_sentence
from db.run.position_bias import MAX_JUDGMENTS, PlaceCount

SIGNIFICANCE = 0.01


def draw_place_bias(user: SessionUser, run_id: int) -> None:
    """Draw per position: how often the right passage was there, was chosen, and was found."""
    if not st.toggle("Position bias of the judge", key="curate.show_bias"):
        return
    places = run.positions(user, run_id)
    if not places:
        st.caption("No answers of the judge yet.")
        return
    draw_rows(
        [
            {
                "Position": each.place,
                "Right passage here": each.expected,
                "Chosen": each.chosen,
                "Found when here": found_text(each),
            }
            for each in places
        ],
        None,
        key="curate.place_bias",
    )
    st.caption(plain(bias_summary(places)))


def found_text(each: PlaceCount) -> str:
    """How often the passage is found at the position, with its interval over groups."""
    if each.accuracy is None:
        return ""
    return share_of(each.accuracy, each.groups, "group")


def draw_text_baseline(user: SessionUser, run_id: int) -> None:
    """How often the passage that shares most words with instruction and query is the right one."""
    if not st.toggle("Text baseline of the items", key="curate.show_baseline"):
        return
    found = run.baseline(user, run_id)
    if found is None:
        st.caption("No items yet.")
        return
    st.markdown(plain(baseline_sentence(found)))
    sample = f"A sample of {counted(found.groups, 'group')}. " if found.sampled else ""
    st.caption(
        f"{sample}Judges can agree that far without understanding a text: the card marks these "
        "words. Passages with as many shared words count for their part."
    )


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
