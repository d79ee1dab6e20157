"""The sampling part of the form for a new study.

It stands outside `st.form`, because its fields depend on the chosen method.
"""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from app.access.session_user import signed_in_user
from app.kit.fields import draw_fields
from app.operations.judging import studies
from curation.judging.request import StudyPlan
from db.run.runs import RunSummary
from db.study.studies import StudySummary

METHODS = {
    "stratified": "evenly across strata",
    "random": "at random",
    "disagreement": "highest disagreement",
    "list": "from a list",
}
CAPTIONS = {
    "stratified": "The same number of items from every stratum, as long as it has groups.",
    "random": "Any group that reached validation, in any of its scenarios.",
    "disagreement": "Items on which judges differ. Agreement on them does not describe the run "
    "as a whole.",
    "list": "One entry per line: a group (`12`), a group and a scenario (`12 query_negative`), or "
    "an item (`item 40`). `#` starts a comment.",
}


def draw_sampling(run: RunSummary, found: Sequence[StudySummary]) -> str:
    """The sampling method, one of SAMPLES, after rendering it with its options."""
    method = {"format_func": lambda name: METHODS.get(name, name), "width": 240}
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _draw("sample", **method)
        sample = str(st.session_state["studies.sample"])
        if sample == "stratified":
            _draw("strata")
        if sample == "disagreement":
            draw_judges(run, found)
    if sample == "list":
        _draw("lines", height=110, placeholder="12\n15 query_negative\nitem 40")
    st.caption(
        f"{CAPTIONS[sample]} Kept and dropped groups are eligible, so that agreement is not "
        "circular; each group gives at most one item."
    )
    return sample


def draw_judges(run: RunSummary, found: Sequence[StudySummary]) -> None:
    """Choose whose disagreement counts: models on the run, or judges of an earlier study."""
    earlier: dict[int | None, str] = {None: "model judges, including the validator"}
    earlier |= {
        study.id: f"judges of study {study.id} · {study.name}"
        for study in found
        if study.run_id == run.id
    }
    _draw("of_study", options=list(earlier), format_func=earlier.__getitem__)
    of_study = st.session_state["studies.of_study"]
    judges = studies.sampled_judges(signed_in_user(), run.id, of_study)
    _draw("judges", options=judges, placeholder="all")


def _draw(name: str, **more: Any) -> None:
    draw_fields(StudyPlan, [name], key="studies", more={name: more})
