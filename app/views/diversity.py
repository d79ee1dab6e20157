"""Diversity: how varied the instructions, queries and passages of data sets are."""

import streamlit as st

from app import analysing
from app.components.diversity import draw_diversity
from app.components.jobs import follow_job
from app.components.page import draw_empty, draw_heading
from db.runs import list_runs
from db.store import open_store

LEAD = "Average pairwise similarity (lower is more varied), n-gram frequency, counts and lengths."
with open_store().read() as session:
    runs = [run for run in list_runs(session) if run.kept]
    found = analysing.list_results(session, "diversity")
draw_heading("Diversity", LEAD, offline=any(run.offline for run in runs))
if not runs:
    draw_empty(
        "No kept groups yet.",
        "Diversity is measured over the groups that a curation run kept.",
        view="curate",
        link="Curate",
        command="inf curate --dataset NAME --provider offline",
    )
else:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        names = list(dict.fromkeys(run.dataset for run in runs))
        st.multiselect("Data sets", names, default=names[:1], key="diversity.datasets")
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
            "Choose data sets above; two or more are compared on samples of the same size.",
            command="inf analyze diversity --dataset NAME",
        )
for each in found[:1]:
    draw_diversity(each)
