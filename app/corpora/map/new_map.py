"""The form of a new map: corpora, runs, pairs, and the settings of the projection."""

from collections.abc import Sequence

import streamlit as st

from app.corpora.form import draw_corpora
from app.corpora.map.names import map_name
from app.corpora.stored_analysis import draw_start_button
from app.kit.choice import take_many_from_url
from app.operations.analyses import CorporaOptions
from db.tables import Analysis


def draw_new_map(
    options: CorporaOptions,
    found: Sequence[Analysis],
) -> None:
    """The form and its button; `?runs=` and `?releases=` in the URL set what is compared."""
    by_id = {each.id: each for each in options.runs}
    take_many_from_url("coverage.runs", "runs", {str(run): run for run in by_id})
    folders = {str(each.id): each.path for each in options.releases}
    take_many_from_url("coverage.releases", "releases", folders)
    is_linked = bool(
        st.session_state.get("coverage.runs") or st.session_state.get("coverage.releases")
    )
    draw_corpora("coverage", options, is_preset=not is_linked)
    st.multiselect(
        "Runs",
        list(by_id),
        format_func=lambda run: f"run {run} · {by_id[run].dataset} · {by_id[run].recipe}",
        key="coverage.runs",
        placeholder="the latest of each dataset",
        help="Each is a corpus: two of them are compared as two layers.",
    )
    st.checkbox(
        "Also the pairs without a kept group",
        key="coverage.pairs",
        value=True,
        help="They show which regions are thin although there are pairs to grow more from.",
    )
    with st.container(horizontal=True, vertical_alignment="bottom"):
        _draw_projection(found)
    draw_start_button("coverage", "Draw map")


def _draw_projection(found: Sequence[Analysis]) -> None:
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
        format_func=lambda n: "fit a new map" if n is None else map_name(by_id[n]),
        key="coverage.onto",
        width=320,
        help="Places new texts among those of a stored map, whose points stay in place.",
    )
