"""Coverage: a map of the texts of data sets, coloured by role, data set, field or verdict."""

import streamlit as st

from analysis.coverage import points_frame
from analysis.figures import coverage_scatter
from app import analysing
from app.components.choice import choose
from app.components.coverage import draw_numbers
from app.components.jobs import follow_job
from app.components.page import draw_empty, draw_heading, draw_labels
from app.menu import view_file
from db.analyses import get_analysis, list_analyses
from db.runs import list_runs
from db.store import open_store
from db.tables import Analysis

LEAD = "A map in which texts that mean similar things lie close together (UMAP of embeddings)."
COLOURS = ("role", "corpus", "field", "verdict")


def name_of(found: Analysis) -> str:
    names = ", ".join(corpus["corpus"] for corpus in found.result["corpora"])
    return f"{names} · {found.result['points']:,} texts · {found.created_at:%Y-%m-%d %H:%M}"


def draw_map(found: Analysis) -> None:
    corpora = found.result["corpora"]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        colour = st.segmented_control(
            "Colour", COLOURS, default="role", required=True, key="coverage.colour"
        )
        draw_labels(offline=any(corpus["offline"] for corpus in corpora))
    with open_store().read() as session:
        payload = get_analysis(session, found.id).payload or b""
    figure = coverage_scatter(points_frame(payload), colour or "role")
    picked = st.plotly_chart(
        figure,
        key="coverage.map",
        on_select="rerun",
        selection_mode="points",
        config={"scrollZoom": True, "displaylogo": False},
    )
    st.caption(
        f"{found.result['points']:,} texts, {found.result['different']:,} different · model "
        f"{found.result['model']} · seed {found.result['seed']} · scroll to zoom, drag to move, "
        "click a point for its group"
    )
    for point in picked.selection.points[:1]:
        group_id = point.get("customdata")
        group_id = group_id[0] if isinstance(group_id, list) else group_id
        if group_id is not None:
            st.page_link(
                view_file("groups"),
                label=f"Open group {group_id}",
                query_params={"group": str(group_id)},
                icon=":material/arrow_forward:",
            )
    draw_numbers(found.result)


with open_store().read() as session:
    runs = [run for run in list_runs(session) if run.kept]
    found = list_analyses(session, "coverage")
draw_heading("Coverage", LEAD)
if not runs:
    draw_empty(
        "No kept groups yet.",
        "The map is drawn of the groups that a curation run kept.",
        view="curate",
        link="Curate",
        command="inf curate --dataset NAME --provider offline",
    )
else:
    names = list(dict.fromkeys(run.dataset for run in runs))
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.multiselect("Data sets", names, default=names[:1], key="coverage.datasets")
        st.selectbox("Groups", ("kept", "all"), key="coverage.groups", width=120)
        st.button(
            "Draw the map",
            type="primary",
            key="coverage.start",
            on_click=analysing.start,
            args=("coverage",),
        )
    if "coverage.job" in st.session_state:
        follow_job(st.session_state["coverage.job"], key="coverage.follow")
    if not found:
        draw_empty(
            "No map yet.",
            "Choose data sets above; several are drawn on one map.",
            command=f"inf analyze coverage --dataset {names[0]}",
        )
if found:
    chosen = choose(
        "Map",
        found,
        key="coverage.chosen",
        parameter="analysis",
        ident=lambda each: each.id,
        name=name_of,
    )
    draw_map(chosen)
