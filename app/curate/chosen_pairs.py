"""The line of the Curate form on a run over chosen pairs only."""

import streamlit as st

from app.curate import actions
from app.text.numbers import counted
from db.errors import BadInput


def draw_chosen_pairs() -> None:
    """How many pairs of the dataset are chosen, and the way back to all; nothing for all."""
    if st.session_state.get(actions.PAIRS) is None:
        return
    try:
        count = len(actions.chosen_query_ids() or ())
    except BadInput:
        count = 0
    with st.container(horizontal=True, vertical_alignment="center"):
        st.markdown(f":material/lasso_select: Only the {counted(count, 'pair')} chosen on the map")
        st.button(
            "All pairs",
            key="curate.all_pairs",
            on_click=actions.forget_pairs,
            type="tertiary",
        )
