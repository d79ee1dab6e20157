"""How a new study's items are drawn: the part of the Studies page's form above its form.

Outside the form, because what it asks depends on what was chosen.
"""

from collections.abc import Sequence

import streamlit as st

from app.studies import actions
from curation.judging.sampling import SAMPLES, STRATA
from db.run.runs import RunSummary
from db.study.studies import StudySummary

WAYS = {
    "stratified": "evenly over strata",
    "random": "at random",
    "disagreement": "where judges disagree most",
    "list": "from a list",
}
CAPTIONS = {
    "stratified": "Every stratum gets as many items as every other, until it has no more groups.",
    "random": "Any group that reached validation, any of its scenarios.",
    "disagreement": "Chosen because judges differ: agreement on these items says nothing about the "
    "run as a whole.",
    "list": "A line is a group (`12`), a group and a scenario (`12 query_negative`), or an item "
    "(`item 40`); `#` begins a comment.",
}


def draw_sampling(run: RunSummary, found: Sequence[StudySummary]) -> str:
    """The way and what it needs. Returns the way: one of SAMPLES."""
    with st.container(horizontal=True, vertical_alignment="bottom"):
        sample = st.selectbox(
            "Items are drawn",
            SAMPLES,
            format_func=lambda name: WAYS.get(name, name),
            key="studies.sample",
            width=240,
        )
        if sample == "stratified":
            st.multiselect("Strata", STRATA, ["scenario"], key="studies.strata")
        if sample == "disagreement":
            draw_judges(run, found)
    if sample == "list":
        st.text_area(
            "Groups and items, one to a line",
            key="studies.list",
            height=110,
            placeholder="12\n15 query_negative\nitem 40",
        )
    st.caption(
        f"{CAPTIONS[sample]} Groups are kept or dropped ones, and give one item at most: agreement "
        "must not be circular."
    )
    return sample


def draw_judges(run: RunSummary, found: Sequence[StudySummary]) -> None:
    """Whose disagreement: models on the run, or the judges of an earlier study; some or all."""
    earlier = {study.id: study.name for study in found if study.run_id == run.id}
    of_study = st.selectbox(
        "Of whom",
        [None, *earlier],
        format_func=lambda each: (
            "model judges, the validator among them"
            if each is None
            else f"judges of study {each} · {earlier.get(each, '')}"
        ),
        key="studies.of_study",
    )
    judges = actions.read_sampled_judges(run.id, of_study)
    st.multiselect("Only these judges", judges, key="studies.judges", placeholder="all of them")
