"""The Diversity page: how varied instructions, queries and passages of corpora are."""

import streamlit as st

from analysis.found.texts import DiversityFound
from app.access.session_user import signed_in_user
from app.corpora.diversity import draw_diversity
from app.corpora.form import draw_corpora
from app.corpora.stored_analysis import (
    choose_analysis,
    draw_start_button,
    draw_started,
    origin_of,
)
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_empty, draw_heading
from app.operations import analyses

LEAD = (
    "Average pairwise similarity (APS: lower is more varied), inverse n-gram frequency (INGF: "
    "higher is more varied), counts and lengths."
)


def draw_sampling() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.number_input(
            "Sample size",
            2,
            10_000_000,
            None,
            key="diversity.sample",
            placeholder="half of the smallest",
            width=220,
            help="INGF grows with corpus size, so corpora are compared on samples of one size, "
            "by default that of the smallest.",
        )
        st.number_input("Repeats", 1, 1000, 5, key="diversity.repeats", width=140)
        st.number_input("Seed", 0, 2**31 - 1, 0, key="diversity.seed", width=140)


dataset, user = chosen_dataset(), signed_in_user()
found = analyses.stored(user, DiversityFound, None if dataset is None else dataset.id)
draw_heading("Diversity", LEAD)
if dataset is None:
    draw_empty(
        "No dataset yet.",
        "Diversity is measured on the groups that a curation run kept, the pairs of a dataset "
        "without a run, releases, and files in published formats.",
        view="datasets",
        link="Datasets",
        command="inf datasets import NAME --pairs FILE",
    )
with st.expander("New measurement", icon=":material/add:", expanded=not found):
    draw_corpora("diversity", analyses.options(user))
    draw_sampling()
    draw_start_button("diversity", "Measure")
draw_started("diversity")
if found:
    draw_diversity((chosen := choose_analysis("diversity", found)).result, origin_of(chosen))
elif dataset is not None:
    draw_empty(
        "No measurements yet.",
        "Choose datasets or releases above and press Measure.",
        command=f"inf analyze diversity --dataset {dataset.name}",
    )
