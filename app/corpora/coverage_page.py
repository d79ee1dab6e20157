"""The Coverage page: the map of texts fills it; what is selected stands next to it."""

from functools import partial

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from analysis.map.printed_map import printed_map
from app.access.session_user import signed_in_user
from app.corpora.coverage import draw_numbers
from app.corpora.map import actions
from app.corpora.map.bar import Drawn, draw_bar, draw_view
from app.corpora.map.canvas.card import draw_map_card, selected_rows
from app.corpora.map.new_map import draw_new_map
from app.corpora.map.points import (
    in_panels,
    picture_of,
    shown_points,
    stored_points,
    visible_rows,
)
from app.corpora.map.selection import draw_selection
from app.corpora.map.topics import draw_topics
from app.corpora.stored_analysis import draw_started, origin_of
from app.kit.figure import draw_origin, frame_as_csv
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import draw_empty, draw_heading, draw_labels
from app.operations import analyses
from app.text.numbers import counted
from app.text.plain import plain
from db.tables import Analysis

LEAD = "A map that places texts of similar meaning close together (UMAP of embeddings)."


def named_hash(result: dict[str, object]) -> str:
    """The content of the embedding model's weights, in brackets; empty where it is unknown."""
    sha256 = result.get("model_sha256")
    return f" (weights sha256 {str(sha256)[:12]})" if sha256 else ""


def draw_map(found: Analysis, bar: DeltaGenerator) -> None:
    """The map, the selection or the topics next to it, and its figures below."""
    points = stored_points(user, found.id)
    st.session_state["coverage.points"] = len(points)
    visible = visible_rows(points)
    shown, kept = shown_points(points, found.id, visible)
    by_language, panels = in_panels(shown, kept, points, found.id)
    with bar:
        drawn = draw_view(found, points, len(panels))
    if shown.empty:
        draw_filtered(len(kept), int(visible.sum()), len(points))
        st.caption("No texts left on the map.")
        return
    if drawn.by_language:
        shown = by_language
    else:
        panels = []
    key = f"coverage.card{found.id}.{st.session_state.get('coverage.drawing', 0)}"
    origin = origin_of(found)
    source = {"corpora": found.result["corpora"], "published": found.config.get("published")}
    with st.container(key="coverage-body"):
        left, right = st.columns([3.2, 1])
        with left, st.container(key="coverage.map"):
            payload = picture_of(
                shown,
                kept,
                found.id,
                drawn.colour,
                contours=drawn.contours,
                layers=drawn.layers,
                panels=panels,
            )
            draw_map_card(payload, shown, source, key=key)
            draw_origin(
                lambda: frame_as_csv(shown),
                origin,
                key="coverage.points_drawn",
                picture=partial(printed_map, shown, drawn.colour),
            )
        rows = selected_rows(shown, source, key=key)
        with right, st.container(key="coverage-side"):
            draw_labels(offline=any(corpus["offline"] for corpus in found.result["corpora"]))
            draw_filtered(len(kept), int(visible.sum()), len(points))
            if len(rows):
                draw_selection(points, [kept[row] for row in rows], origin, found.id)
            else:
                draw_topics(shown, drawn.corpora, origin, key=key)
    draw_about(found, drawn)
    draw_numbers(found.result, origin)


def draw_filtered(kept: int, visible: int, points: int) -> None:
    """How many texts are not drawn, and the way back to all."""
    if visible < points:
        st.caption(
            f"{counted(points - visible, 'text')} not shown: of groups that you may judge in "
            "a study that is not closed."
        )
    if kept < visible:
        with st.container(horizontal=True, vertical_alignment="center"):
            st.caption(f"Showing {kept:,} of {visible:,} texts.", width="content")
            st.button("Show all", key="coverage.all", on_click=actions.show_all, type="tertiary")


def draw_about(found: Analysis, drawn: Drawn) -> None:
    """What the map is of, and its warnings."""
    if circular := analyses.about_map(user, found.result):
        st.warning(plain(circular), icon=":material/sync_problem:")
    difference = (
        " · coloured ground: one layer is denser than the other, or more is kept or dropped, by "
        "more than in any of 19 shuffles of their groups" * bool(drawn.layers)
    )
    apart = " · distances between panels mean nothing" * drawn.by_language
    st.caption(
        f"{found.result['points']:,} texts, {found.result['different']:,} distinct · model "
        f"{found.result['model']}{named_hash(found.result)} · seed "
        f"{found.result['seed']} · every text is drawn: with more than 4,000 in view, texts on "
        "one pixel share it in their mean colour, more opaque with more texts · a selection "
        f"contains all texts inside it that the legend shows{difference}{apart}"
    )


dataset, user = chosen_dataset(), signed_in_user()
number = None if dataset is None else dataset.id
options = analyses.options(user, with_runs=True)
found = analyses.stored(user, "coverage", number)


def new_map() -> None:
    """The form of a new map."""
    draw_new_map(options, found)


if found:
    chosen, bar = draw_bar(found, new_map)
    draw_started("coverage")
    draw_map(chosen, bar)
else:
    draw_heading("Coverage", LEAD)
    if dataset is not None:
        new_map()
        draw_started("coverage")
        draw_empty(
            "No map yet.",
            "Choose datasets or releases above and press Draw map; several share one map.",
            command=f"inf analyze coverage --dataset {dataset.name}",
        )
    else:
        draw_empty(
            "No dataset yet.",
            "A map shows the groups that a curation run kept, the pairs of a dataset without a "
            "run, releases, and files in published formats.",
            view="datasets",
            link="Datasets",
            command="inf datasets import NAME --pairs FILE",
        )
