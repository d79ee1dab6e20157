"""The paper's figures and tables of the data: Table 1, Figures 3 and 6."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from analysis.found.texts import CoverageFound, DiversityFound, Stored
from analysis.map.printed_map import printed_map
from analysis.paper.rows import corpus_rows
from analysis.text.diversity_tables import filter_pairs, filter_rows, table_one
from app.corpora.diversity import draw_bars
from app.corpora.stored_analysis import origin_of
from app.kit.figure import draw_origin, draw_picture, draw_rows, frame_as_csv
from app.kit.page import draw_empty
from app.paper import actions
from app.text.plain import plain

COUNT = st.column_config.NumberColumn(format="localized")
# In sight first: our counts, and which texts a dataset has. The files keep the paper's order.
COUNTS = ("instructions", "queries", "passages")
WORDS = {"instruction": "words per I", "query": "words per Q", "passage": "words per P"}
TABLE_ONE_COLUMNS: dict[str, Any] = {
    "Source": st.column_config.TextColumn(),
    "dataset": st.column_config.TextColumn(width=90),  # Promptriever is the longest
    **dict.fromkeys(COUNTS, COUNT),
    **{
        f"words per {field}": st.column_config.NumberColumn(
            label, format="%.1f", help=f"Mean number of words per {field}."
        )
        for field, label in WORDS.items()
    },
    "(Q, P)+": st.column_config.TextColumn(width=58),
    **dict.fromkeys(("I+", "I-", "Q-", "P-"), st.column_config.TextColumn(width=40)),
}
TABLE_ONE_ORDER = (*TABLE_ONE_COLUMNS, "quality check", "evaluation", "training")
ROW_PIXELS = 33  # Streamlit's at our font size
NO_VALUES = "The paper prints this figure without values, so that there is no published row."


def draw_table_one(found: Stored[DiversityFound] | None) -> None:
    """Table 1: size and lengths of our corpora next to the paper's."""
    st.header("Table 1: datasets for instruction-following retrieval", anchor=False)
    ours = table_one(found.result.corpora) if found else []
    rows = corpus_rows(ours)
    draw_rows(
        rows,
        origin_of(found) if found else None,
        key="paper.table_1",
        column_config=TABLE_ONE_COLUMNS,
        column_order=TABLE_ONE_ORDER,
        row_height=ROW_PIXELS,
        height=ROW_PIXELS * (len(rows) + 1) + 2,  # known before the table's code comes
    )
    if sentence := counted_sentence(ours):
        st.caption(plain(sentence))


def counted_sentence(ours: Sequence[Mapping[str, Any]]) -> str:
    """What our rows of Table 1 count, which is not what Datasets counts; "" of no groups."""
    groups = [f"{row['groups']:,} of {row['corpus']}" for row in ours if row["groups"]]
    if not groups:
        return ""
    return (
        f"Ours counts the texts of groups ({', '.join(groups)}): a whole group has two "
        "instructions, two queries and three passages. Datasets counts every passage of a dataset "
        "once, imported or generated."
    )


def draw_coverage(found: Stored[CoverageFound] | None) -> None:
    """Figure 3a: the newest map."""
    st.header("Figure 3a: semantic coverage", anchor=False)
    if found is None:
        draw_empty(
            "No map yet.",
            "Figure 3a is the newest map of this dataset, best with FollowIR and Promptriever on "
            "it as in the paper.",
            view="coverage",
            link="Draw a map",
        )
        return
    colour = "corpus" if len(found.result.corpora) > 1 else "role"
    shown, picture = actions.read_map(found, colour)
    by = "corpora" if colour == "corpus" else "roles"
    draw_picture(picture, f"Map of the texts, coloured by {by}")
    draw_origin(
        lambda: frame_as_csv(shown),
        origin_of(found),
        key="paper.figure_3a",
        picture=partial(printed_map, shown, colour),
    )
    st.caption(NO_VALUES)


def draw_diversity(found: Stored[DiversityFound] | None) -> None:
    """Figure 3b: APS and INGF of the newest diversity analysis."""
    st.header("Figure 3b: diversity", anchor=False)
    if found is None:
        draw_empty(
            "No measurement yet.",
            "Figure 3b shows APS and INGF of this dataset, best next to FollowIR and Promptriever.",
            view="diversity",
            link="Measure diversity",
        )
        return
    draw_bars(found.result.corpora, origin_of(found), key="paper.figure_3b")
    st.caption(
        "The paper prints no values: on 10,000 samples each, InF-IR has a lower APS and a higher "
        "INGF than FollowIR and Promptriever."
    )


def draw_filtering(found: Stored[DiversityFound] | None) -> None:
    """Figure 6: the filter's effect on the data; that on a model needs two trainings."""
    st.header("Figure 6: effect of quality filtering", anchor=False)
    pairs = filter_pairs(found.result.corpora) if found else []
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
