"""The Overlaps page: near-duplicates within and across corpora, and contamination."""

from collections.abc import Sequence

import streamlit as st

from analysis.found.texts import ContaminationFound, DuplicatesFound, Stored
from analysis.request import ContaminationStart
from app.access.session_user import hidden_from_user, signed_in_user
from app.corpora.form import draw_corpora, draw_files
from app.corpora.overlaps import (
    clusters_without,
    draw_contamination,
    draw_duplicates,
    pairs_without,
)
from app.corpora.stored_analysis import (
    choose_analysis,
    draw_start_button,
    draw_started,
    origin_of,
)
from app.kit.fields import draw_fields, draw_wrong
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_empty, draw_heading, draw_link
from app.operations import analyses
from app.operations.analyses import CorporaOptions

LEAD = (
    "Near-duplicate texts within and across datasets, and texts that also occur in an evaluation "
    "set: a model trained on those must not be evaluated on that set."
)
ANALYSES = {
    "near_duplicates": "Near-duplicates",
    "contamination": "Contamination",
}


def draw_contamination_form(options: CorporaOptions) -> None:
    draw_corpora("contamination", options)
    st.multiselect(
        "Evaluation sets among the datasets",
        options.datasets,
        key="contamination.against_datasets",
        placeholder="none selected",
        width=300,
    )
    draw_wrong("contamination.against_datasets")
    draw_files(
        "contamination.against_files",
        "Evaluation sets as published (queries and corpus of FollowIR, MAIR, BRIGHT) or texts",
    )
    more = {"paraphrase_threshold": {"step": 0.05, "width": 300}}
    draw_fields(ContaminationStart, more, key="contamination", more=more)


def draw_repeated(found: Sequence[Stored[DuplicatesFound]]) -> None:
    chosen = choose_analysis("near_duplicates", found)
    result = clusters_without(chosen.result, hidden_from_user())
    draw_duplicates(result, origin_of(chosen))


def draw_overlapping(found: Sequence[Stored[ContaminationFound]]) -> None:
    chosen = choose_analysis("contamination", found)
    result = pairs_without(chosen.result, hidden_from_user())
    draw_contamination(result, origin_of(chosen))
    draw_link(
        "releases",
        label="Create a release without these groups",
        icon=":material/inventory_2:",
    )
    st.caption(
        "“Exclude overlaps with evaluation sets” uses the latest comparison of the whole run on "
        "its own: one dataset, no other release or file, and including dropped groups if these are "
        "released."
    )


dataset, user = chosen_dataset(), signed_in_user()
number = None if dataset is None else dataset.id
options = analyses.options(user)
repeated = analyses.stored(user, DuplicatesFound, number)
overlapping = analyses.stored(user, ContaminationFound, number)
draw_heading("Overlaps", LEAD)
if dataset is None:
    draw_empty(
        "No dataset yet.",
        "Compared are the groups that a curation run kept, the pairs of a dataset without a run, "
        "releases, and files in published formats.",
        view="datasets",
        link="Datasets",
        command="inf datasets import NAME --pairs FILE",
    )
question = str(
    st.segmented_control(
        "Question",
        list(ANALYSES),
        default="near_duplicates",
        format_func=ANALYSES.__getitem__,
        required=True,
        key="overlaps.question",
        label_visibility="collapsed",
    )
)
with st.expander(
    "New comparison",
    icon=":material/add:",
    expanded=not (repeated if question == "near_duplicates" else overlapping),
    key=f"overlaps.new-{question}",
):
    if question == "near_duplicates":
        draw_corpora("near_duplicates", options)
        draw_start_button("near_duplicates", "Find near-duplicates")
    else:
        draw_contamination_form(options)
        draw_start_button("contamination", "Compare")
draw_started(question)
if question == "near_duplicates" and repeated:
    draw_repeated(repeated)
elif question == "contamination" and overlapping:
    draw_overlapping(overlapping)
else:
    st.caption("No comparison yet. Results are stored and listed here.")
