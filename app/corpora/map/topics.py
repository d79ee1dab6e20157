"""The clusters of the map by name, as the side panel lists them while nothing is selected."""

from typing import TYPE_CHECKING

import streamlit as st

from analysis.figures.numbers import Cells
from analysis.map.difference import Layers, topic_shares
from analysis.map.picture import labels_of
from app.corpora.map.actions import select_cluster
from app.kit.figure import Origin, draw_origin
from app.kit.page import draw_table

if TYPE_CHECKING:
    import pandas as pd

POINTS = 100.0  # percentage points
TOPIC_PIXELS = 150  # a long name is whole on hover: its numbers stay in sight


def draw_topics(points: "pd.DataFrame", layers: Layers | None, origin: Origin, *, key: str) -> None:
    """The topics with their texts or, of two layers, their shares; a chosen row is selected."""
    if "cluster" not in points:
        st.caption("This map is older than clusters: draw it again.")
        return
    st.markdown("**Topics**")
    names = short_names(layers.first, layers.second) if layers else ()
    rows = topic_rows(points) if layers is None else compared_rows(points, layers)
    table = f"coverage.topics.{key}.{st.session_state.get('coverage.picked', 0)}"

    def pick() -> None:
        chosen = st.session_state[table]["selection"]["rows"]
        st.session_state["coverage.picked"] = st.session_state.get("coverage.picked", 0) + 1
        if chosen:
            select_cluster(key, str(rows[chosen[0]]["Topic"]))

    share = st.column_config.NumberColumn(format="%.1f %%")
    draw_table(
        rows,
        key=table,
        on_select=pick,
        selection_mode="single-row",
        column_config={
            "Topic": st.column_config.TextColumn(width=TOPIC_PIXELS),
            "Texts": st.column_config.NumberColumn(format="localized"),
            "Kept": share,
            **dict.fromkeys(names, share),
            "Difference": st.column_config.NumberColumn(
                format="%+.1f", help="In percentage points of the layers' texts."
            ),
        },
    )
    draw_origin(rows, origin, key="coverage.topics_drawn")
    st.caption(
        "Named by the words that set a cluster apart (c-TF-IDF), or where none does by the "
        "instructions nearest to its middle. Choose one here or on the map, or "
        "select with Box, Lasso or a search."
    )


def topic_rows(points: "pd.DataFrame") -> list[Cells]:
    """A row per topic: its texts and, where dropped groups are on the map, how many are kept."""
    rows = [{"Topic": each["name"], "Texts": each["points"]} for each in labels_of(points)]
    verdicts = points["verdict"].astype(str)
    if not (verdicts == "dropped").any():
        return rows
    decided = points[verdicts.isin(("kept", "dropped"))]
    kept = (decided["verdict"].astype(str) == "kept").groupby(decided["cluster"].astype(str)).mean()
    return [
        row | {"Kept": POINTS * float(kept[row["Topic"]])} if row["Topic"] in kept else row
        for row in rows
    ]


def compared_rows(points: "pd.DataFrame", layers: Layers) -> list[Cells]:
    """A row per topic: its share of each layer, the largest difference first."""
    names = short_names(layers.first, layers.second)
    return [
        {
            "Topic": row["cluster"],
            "Difference": POINTS * row["difference"],
            names[0]: POINTS * row["first_share"],
            names[1]: POINTS * row["second_share"],
        }
        for row in topic_shares(points, layers.first, layers.second)
    ]


def short_names(first: str, second: str) -> tuple[str, str]:
    """Two layers by what comes after a beginning that both have: "run 1" of "demo, run 1"."""
    start, _, mine = first.partition(", ")
    other_start, _, other = second.partition(", ")
    return (mine, other) if mine and other and start == other_start else (first, second)
