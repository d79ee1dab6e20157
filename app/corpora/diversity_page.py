"""The Diversity page: how varied instructions, queries and passages of corpora are."""

from collections.abc import Mapping

import streamlit as st

from analysis.found.texts import DiversityFound
from analysis.request import DiversityStart
from app.access.session_user import signed_in_user
from app.corpora.diversity import draw_diversity
from app.corpora.form import draw_corpora
from app.corpora.stored_analysis import (
    choose_analysis,
    draw_start_button,
    draw_started,
    origin_of,
)
from app.kit.fields import draw_fields
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_empty, draw_heading
from app.operations import analyses

LEAD = (
    "Average pairwise similarity (APS: lower is more varied), inverse n-gram frequency (INGF: "
    "higher is more varied), counts and lengths."
)

SAMPLING: Mapping[str, Mapping[str, str | int]] = {
    "sample": {
        "placeholder": "half of the smallest",
        "width": 220,
        "help": "INGF grows with corpus size, so corpora are compared on samples of one size, by "
        "default that of the smallest.",
    },
    "repeats": {"width": 140},
    "seed": {"width": 140},
}


def draw_sampling() -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        draw_fields(DiversityStart, SAMPLING, key="diversity", more=SAMPLING)


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
