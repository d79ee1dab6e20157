"""Coverage: one map of the texts of several corpora, coloured, contoured, and selectable."""

import streamlit as st

from analysis.coverage import points_frame
from analysis.map_figure import MOST_DRAWN, coverage_scatter, selected_rows
from app import selecting
from app.components.corpora_form import draw_corpora
from app.components.coverage import draw_numbers
from app.components.figure import draw_figure
from app.components.map_selection import draw_selection
from app.components.page import draw_empty, draw_heading, draw_labels
from app.components.stored_analysis import choose_analysis, draw_start, origin_of
from db.analyses import get_analysis, list_analyses
from db.datasets import list_datasets
from db.releases import list_releases
from db.store import open_store
from db.tables import Analysis

LEAD = "A map in which texts that mean similar things lie close together (UMAP of embeddings)."
COLOURS = ("role", "corpus", "source", "cluster", "field", "verdict")
BUTTONS = [["toImage"], ["pan2d", "zoom2d", "select2d", "lasso2d", "resetScale2d"]]


def name_of(found: Analysis) -> str:
    names = ", ".join(corpus["corpus"] for corpus in found.result["corpora"])
    return f"{names} · {found.result['points']:,} texts · {found.created_at:%Y-%m-%d %H:%M}"


def draw_settings(found: list[Analysis]) -> None:
    with st.container(horizontal=True, vertical_alignment="bottom"):
        st.text_input(
            "Model",
            key="coverage.model",
            placeholder="all-MiniLM-L6-v2",
            width=260,
            help="A SentenceTransformer by name or path, or openai:MODEL for an embeddings server.",
        )
        st.number_input("Seed", 0, 2**31 - 1, 0, key="coverage.seed", width=120)
        by_id = {each.id: each for each in found}
        st.selectbox(
            "Place on a map",
            [None, *by_id],
            format_func=lambda n: "fit a new map" if n is None else name_of(by_id[n]),
            key="coverage.onto",
            width=320,
            help="New texts are placed among those of a stored map, which does not move.",
        )


def draw_map(found: Analysis) -> None:
    corpora = found.result["corpora"]
    with open_store().read() as session:
        points = points_frame(get_analysis(session, found.id).payload or b"")
    st.session_state["coverage.points"] = len(points)
    there = [name for name in COLOURS if name in points]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        colour = st.segmented_control(
            "Colour",
            there,
            default="corpus" if len(corpora) > 1 else "role",
            required=True,
            key="coverage.colour",
        )
        contours = st.toggle("Contours per corpus", len(corpora) > 1, key="coverage.contours")
        draw_labels(offline=any(corpus["offline"] for corpus in corpora))
    kept = selecting.shown_rows(found.id, len(points))
    shown = points.iloc[kept].reset_index(drop=True) if len(kept) < len(points) else points
    if len(kept) < len(points):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"{len(kept):,} of {len(points):,} texts are shown.", width="content")
            st.button("Show all", key="coverage.all", on_click=selecting.show_all, type="tertiary")
    if shown.empty:
        st.caption("No text is left on the map.")
        return
    origin = origin_of(found)
    picked = draw_figure(
        coverage_scatter(shown, colour or "role", contours=contours),
        lambda: shown.to_csv(index=False),
        origin,
        key=f"coverage.map{st.session_state.get('coverage.drawing', '')}",
        config={"scrollZoom": True, "modeBarButtons": BUTTONS},
        on_select="rerun",
        selection_mode=("points", "box", "lasso"),
    )
    cells = " · more than can be drawn: cells, select some to see their texts"
    st.caption(
        f"{found.result['points']:,} texts, {found.result['different']:,} different · model "
        f"{found.result['model']} · seed {found.result['seed']} · scroll to zoom, drag to move"
        f"{cells * (len(shown) > MOST_DRAWN)}"
    )
    marks = [place_of(point) for point in picked.selection.points]
    rows = selected_rows(shown, [mark for mark in marks if mark is not None])
    draw_selection(points, [kept[row] for row in rows], origin, found.id)
    draw_numbers(found.result, origin)


def place_of(point: dict[str, object]) -> int | None:
    """The mark's number that the figure gave it; contours have none."""
    given = point.get("customdata")
    given = given[0] if isinstance(given, list) and given else given
    return int(given) if isinstance(given, int | float) else None


with open_store().read() as session:
    names = [each.name for each in list_datasets(session)]
    releases = list_releases(session)
    found = list_analyses(session, "coverage")
draw_heading("Coverage", LEAD)
if not names:
    draw_empty(
        "No data set yet.",
        "The map is drawn of the groups that a curation run kept, of the pairs of a data set "
        "without a run, of releases, and of files in published formats.",
        view="datasets",
        link="Data sets",
        command="inf import --dataset NAME --pairs FILE",
    )
draw_corpora("coverage", names, releases)
draw_settings(found)
draw_start("coverage", "Draw the map")
if found:
    draw_map(choose_analysis("coverage", found, name_of))
elif names:
    draw_empty(
        "No map yet.",
        "Choose corpora above; several are drawn on one map.",
        command=f"inf analyze coverage --dataset {names[0]}",
    )
