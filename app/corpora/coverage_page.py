"""The Coverage page: one map of the texts of several corpora, with colours and selection."""

from typing import TYPE_CHECKING, Any

import streamlit as st

from analysis.map.coverage import points_frame
from analysis.map.picture import map_payload
from analysis.map.shapes import rows_inside
from app.access.session_user import hidden_from_user
from app.corpora.coverage import draw_numbers
from app.corpora.form import draw_corpora
from app.corpora.map import actions
from app.corpora.map.card import SHAPE, draw_map_card
from app.corpora.map.selection import draw_selection
from app.corpora.stored_analysis import choose_analysis, draw_start, origin_of
from app.kit.figure import draw_origin, frame_as_csv
from app.kit.page import draw_empty, draw_heading, draw_labels
from app.text.numbers import counted
from app.text.plain import plain
from db.corpus.datasets import list_datasets
from db.outcome.analyses import get_analysis, list_analyses
from db.release.releases import list_releases
from db.store.store import open_store
from db.tables import Analysis

if TYPE_CHECKING:
    import pandas as pd

LEAD = "A map that places texts of similar meaning close together (UMAP of embeddings)."
COLOURS = ("role", "corpus", "source", "cluster", "field", "verdict")


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
        st.number_input(
            "Seed",
            0,
            2**31 - 1,
            0,
            key="coverage.seed",
            width=120,
            help="The same vectors and seed give the same map. Vectors from different batches "
            "may differ in their last bits and give another layout.",
        )
        by_id = {each.id: each for each in found}
        st.selectbox(
            "Place on an existing map",
            [None, *by_id],
            format_func=lambda n: "fit a new map" if n is None else name_of(by_id[n]),
            key="coverage.onto",
            width=320,
            help="Places new texts among those of a stored map, whose points stay in place.",
        )


@st.cache_resource(max_entries=2, show_spinner="Loading points …")
def stored_points(store_url: str, analysis_id: int) -> "pd.DataFrame":
    """The points of a stored map; shared by all sessions, never modified."""
    with open_store(store_url).read() as session:
        return points_frame(get_analysis(session, analysis_id).payload or b"")


@st.cache_resource(max_entries=4, show_spinner=False)
def stored_picture(store_url: str, analysis_id: int, colour: str, *, contours: bool) -> bytes:
    """All points of a stored map in the format of the card."""
    return map_payload(stored_points(store_url, analysis_id), colour, contours=contours)


def named_hash(result: dict[str, Any]) -> str:
    """The content of the embedding model's weights, in brackets; empty where it is unknown."""
    sha256 = result.get("model_sha256")
    return f" (weights sha256 {sha256[:12]})" if sha256 else ""


def draw_map(found: Analysis) -> None:
    corpora = found.result["corpora"]
    store_url = open_store().url
    points = stored_points(store_url, found.id)
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
    hidden = hidden_from_user()
    visible = ~points["group_id"].isin(hidden).to_numpy()
    kept = [row for row in actions.shown_rows(found.id, len(points)) if visible[row]]
    shown = points.iloc[kept].reset_index(drop=True) if len(kept) < len(points) else points
    if not visible.all():
        st.caption(
            f"Without {counted(int((~visible).sum()), 'text')} of groups that you may judge in a "
            "study that is not closed."
        )
    if len(kept) < visible.sum():
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Showing {len(kept):,} of {visible.sum():,} texts.", width="content")
            st.button("Show all", key="coverage.all", on_click=actions.show_all, type="tertiary")
    if shown.empty:
        st.caption("No texts left on the map.")
        return
    origin = origin_of(found)
    if shown is points:
        payload = stored_picture(store_url, found.id, colour or "role", contours=contours)
    else:
        payload = map_payload(shown, colour or "role", contours=contours)
    with st.container(key="coverage.map"):
        draw_map_card(
            payload,
            shown,
            key=f"coverage.card{found.id}.{st.session_state.get('coverage.drawing', 0)}",
        )
    st.caption(
        f"{found.result['points']:,} texts, {found.result['different']:,} distinct · model "
        f"{found.result['model']}{named_hash(found.result)} · seed "
        f"{found.result['seed']} · every text is drawn: with more than 4,000 in view, texts on "
        "one pixel share it in their mean colour, more opaque with more texts · a selection "
        "contains all texts inside it that the legend shows"
    )
    if circular := actions.read_circular_map(found.result):
        st.warning(plain(circular), icon=":material/sync_problem:")
    draw_origin(lambda: frame_as_csv(shown), origin, key="coverage.points_drawn")
    rows = rows_inside(shown, st.session_state.get(SHAPE))
    draw_selection(points, [kept[row] for row in rows], origin, found.id)
    draw_numbers(found.result, origin)


with open_store().read() as session:
    names = [each.name for each in list_datasets(session)]
    releases = list_releases(session)
    found = list_analyses(session, "coverage")
draw_heading("Coverage", LEAD)
if not names:
    draw_empty(
        "No dataset yet.",
        "A map shows the groups that a curation run kept, the pairs of a dataset without a run, "
        "releases, and files in published formats.",
        view="datasets",
        link="Datasets",
        command="inf import --dataset NAME --pairs FILE",
    )
draw_corpora("coverage", names, releases)
draw_settings(found)
draw_start("coverage", "Draw map")
if found:
    draw_map(choose_analysis("coverage", found, name_of))
elif names:
    draw_empty(
        "No map yet.",
        "Choose corpora above; several corpora share one map.",
        command=f"inf analyze coverage --dataset {names[0]}",
    )
