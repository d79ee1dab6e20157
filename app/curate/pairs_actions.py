"""Actions of a run over chosen pairs only: `?pairs=` in the URL names them, as the map does."""

import streamlit as st

from app.kit.frame.dataset import require_dataset
from db.corpus.growing import query_ids_of, were_grown
from db.store.store import open_store

KEY = "curate.pairs"
MAX_ID = 2**63 - 1


def read_address() -> None:
    """Take the pairs from the address that led here; before the form is drawn.

    The same answers would give the same groups: for pairs that were grown before, new ones are
    requested.
    """
    named = st.query_params.get("pairs")
    if named is None or st.session_state.get("curate.pairs_address") == named:
        return
    st.session_state["curate.pairs_address"] = named
    ids = [int(each) for each in named.split(",") if each.isdecimal() and int(each) <= MAX_ID]
    st.session_state[KEY] = ids
    with open_store().read() as session:
        st.session_state["curate.fresh"] = were_grown(session, ids)


def chosen_query_ids() -> list[str] | None:
    """The chosen pairs of the form's dataset by their ids in its source; None for all.

    Raises BadInput where none of them is of the dataset: a run over all would be another one.
    """
    ids = st.session_state.get(KEY)
    if ids is None:
        return None
    with open_store().read() as session:
        return query_ids_of(session, require_dataset().name, ids)


def forget_pairs() -> None:
    """Take all pairs of the dataset again."""
    st.session_state.pop(KEY, None)
    st.query_params.pop("pairs", None)
