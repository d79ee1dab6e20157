"""The paper's figures and tables of the data: Table 1, Figures 3 and 6."""

from functools import partial

import streamlit as st

from analysis.map.printed_map import printed_map
from analysis.paper.rows import corpus_rows
from analysis.text.diversity_tables import filter_pairs, filter_rows, table_one
from app.corpora.diversity import draw_bars
from app.corpora.stored_analysis import origin_of
from app.kit.figure import draw_origin, draw_rows, frame_as_csv
from app.kit.page import draw_empty
from app.paper import actions
from db.tables import Analysis

COUNT = st.column_config.NumberColumn(format="localized")
NAME = st.column_config.TextColumn(width=90)  # Promptriever is the longest
ROW_PIXELS = 33  # Streamlit's at our font size
NO_VALUES = "The paper prints this figure without values, so that there is no published row."


def draw_table_one(found: Analysis | None) -> None:
    """Table 1: size and lengths of our corpora next to the paper's."""
    st.subheader("Table 1: datasets for instruction-following retrieval", anchor=False)
    rows = corpus_rows(table_one(found.result["corpora"]) if found else [])
    columns = dict.fromkeys(("instructions", "queries", "passages"), COUNT)
    draw_rows(
        rows,
        origin_of(found) if found else None,
        key="paper.table_1",
        column_config=columns | {"dataset": NAME},
        row_height=ROW_PIXELS,
        height=ROW_PIXELS * (len(rows) + 1) + 2,  # known before the table's code comes
    )


def draw_coverage(found: Analysis | None) -> None:
    """Figure 3a: the newest map."""
    st.subheader("Figure 3a: semantic coverage", anchor=False)
    if found is None:
        draw_empty(
            "No map yet.",
            "Figure 3a is the newest map of this dataset, best with FollowIR and Promptriever on "
            "it as in the paper.",
            view="coverage",
            link="Draw a map",
        )
        return
    colour = "corpus" if len(found.result["corpora"]) > 1 else "role"
    shown, picture = actions.read_map(found, colour)
    # of an image of that width Streamlit makes a smaller one each time
    with st.container(width=720):
        st.image(picture, width="stretch")
    draw_origin(
        lambda: frame_as_csv(shown),
        origin_of(found),
        key="paper.figure_3a",
        picture=partial(printed_map, shown, colour),
    )
    st.caption(NO_VALUES)


def draw_diversity(found: Analysis | None) -> None:
    """Figure 3b: APS and INGF of the newest diversity analysis."""
    st.subheader("Figure 3b: diversity", anchor=False)
    if found is None:
        draw_empty(
            "No measurement yet.",
            "Figure 3b shows APS and INGF of this dataset, best next to FollowIR and Promptriever.",
            view="diversity",
            link="Measure diversity",
        )
        return
    draw_bars(found.result["corpora"], origin_of(found), key="paper.figure_3b")
    st.caption(
        "The paper prints no values: on 10,000 samples each, InF-IR has a lower APS and a higher "
        "INGF than FollowIR and Promptriever."
    )


def draw_filtering(found: Analysis | None) -> None:
    """Figure 6: the filter's effect on the data; that on a model needs two trainings."""
    st.subheader("Figure 6: effect of quality filtering", anchor=False)
    pairs = filter_pairs(found.result["corpora"]) if found else []
    if found is None or not pairs:
        draw_empty(
            "No filtered and unfiltered corpus yet.",
            "Measure the diversity of both on Diversity; train a model on a release of each for "
            "equal steps and compare them on Evaluations.",
            view="diversity",
            link="Measure diversity",
        )
        return
    for number, (filtered, unfiltered) in enumerate(pairs):
        key = f"paper.figure_6.{number}"
        draw_rows(filter_rows(filtered, unfiltered), origin_of(found), key=key)
    st.caption(NO_VALUES)
