"""Diversity: how varied the instructions, queries and passages of data sets are."""

import streamlit as st

from app import analysing
from app.components.choice import choose
from app.components.diversity import draw_diversity
from app.components.jobs import follow_job
from app.components.page import draw_empty, draw_heading
from db.analyses import list_analyses
from db.runs import list_runs
from db.store import open_store
from db.tables import Analysis

LEAD = "Average pairwise similarity (lower is more varied), n-gram frequency, counts and lengths."


def name_of(found: Analysis) -> str:
    names = ", ".join(corpus["corpus"] for corpus in found.result["corpora"])
    return f"{names} · {found.created_at:%Y-%m-%d %H:%M}"


with open_store().read() as session:
    runs = [run for run in list_runs(session) if run.kept]
    found = list_analyses(session, "diversity")
draw_heading("Diversity", LEAD)
if not runs:
    draw_empty(
        "No kept groups yet.",
        "Diversity is measured over the groups that a curation run kept.",
        view="curate",
        link="Curate",
        command="inf curate --dataset NAME --provider offline",
    )
else:
    names = list(dict.fromkeys(run.dataset for run in runs))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.multiselect(
            "Data sets",
            names,
            default=names[:1],
            key="diversity.datasets",
            help="INGF grows with the size of a corpus: compare only data sets of the same size.",
        )
        st.button(
            "Measure",
            type="primary",
            key="diversity.start",
            on_click=analysing.start,
            args=("diversity",),
        )
    if "diversity.job" in st.session_state:
        follow_job(st.session_state["diversity.job"], key="diversity.follow")
    if not found:
        draw_empty(
            "Nothing was measured yet.",
            "Choose data sets above and press Measure.",
            command=f"inf analyze diversity --dataset {names[0]}",
        )
if found:
    chosen = choose(
        "Measured",
        found,
        key="diversity.chosen",
        parameter="analysis",
        ident=lambda each: each.id,
        name=name_of,
    )
    draw_diversity(chosen.result, key="diversity.figure")
