"""Overlaps: near-duplicates inside and between corpora, and contamination by evaluation sets."""

from collections.abc import Sequence

import streamlit as st

from app.corpora.form import draw_corpora, draw_files
from app.corpora.overlaps import draw_contamination, draw_duplicates
from app.corpora.stored_analysis import choose_analysis, draw_start, origin_of
from app.kit.menu import view_file
from app.kit.page import draw_heading
from db.corpus.datasets import list_datasets
from db.outcome.analyses import list_analyses
from db.release.releases import list_releases
from db.store.store import open_store
from db.tables import Analysis, Release

LEAD = (
    "Texts that are told twice, inside a dataset and between any two, and texts that stand in an "
    "evaluation set as well: who trains on those may not evaluate there."
)
QUESTIONS = {
    "near_duplicates": "Near-duplicates",
    "contamination": "Contamination",
}


def draw_contamination_form(names: Sequence[str], releases: Sequence[Release]) -> None:
    draw_corpora("contamination", names, releases)
    st.multiselect(
        "Evaluation sets in the store",
        names,
        key="contamination.against_datasets",
        placeholder="none chosen",
        width=300,
    )
    draw_files(
        "contamination.against_files",
        "Evaluation sets as published (queries and corpus of FollowIR, MAIR, BRIGHT) or any texts",
    )


def draw_found(question: str, found: list[Analysis]) -> None:
    if not found:
        st.caption("Nothing was compared yet. What is compared here is stored and listed.")
        return
    chosen = choose_analysis(question, found)
    if question == "near_duplicates":
        draw_duplicates(chosen.result, origin_of(chosen))
        return
    draw_contamination(chosen.result, origin_of(chosen))
    st.page_link(
        view_file("releases"),
        label="Make a release that leaves them out",
        icon=":material/inventory_2:",
    )
    st.caption(
        "The switch “Leave out what overlaps with evaluation sets” uses the newest comparison of "
        "the whole run alone: one dataset, no release and no file beside it, and the dropped "
        "groups too where they are released."
    )


with open_store().read() as session:
    names = [each.name for each in list_datasets(session)]
    releases = list_releases(session)
    found = {question: list_analyses(session, question) for question in QUESTIONS}
draw_heading("Overlaps", LEAD)
question = st.segmented_control(
    "Question",
    list(QUESTIONS),
    default="near_duplicates",
    format_func=QUESTIONS.__getitem__,
    required=True,
    key="overlaps.question",
    label_visibility="collapsed",
)
if question == "near_duplicates":
    draw_corpora("near_duplicates", names, releases)
    draw_start("near_duplicates", "Look for near-duplicates")
else:
    draw_contamination_form(names, releases)
    draw_start("contamination", "Compare")
draw_found(str(question), found[str(question)])
