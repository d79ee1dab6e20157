"""Grow more like a selection of the map: a run over its pairs, the thin ones first."""

import streamlit as st

from app.access.session_user import signed_in_user
from app.groups.filters import MAX_IDS
from app.kit.page import draw_hand_off
from app.operations import analyses
from app.text.numbers import counted


def draw_growing(groups: list[int], pairs: list[int]) -> None:
    """The pairs of the selected groups and the selected pairs, and the way to a run over them."""
    with st.popover(
        "Grow more like these", icon=":material/psychiatry:", disabled=not (groups or pairs)
    ):
        found = analyses.growable(signed_in_user(), groups, pairs)
        st.markdown(
            f"{counted(len(found.without_kept), 'pair')} without a kept group, "
            f"{counted(len(found.with_kept), 'pair')} with one."
        )
        is_more = st.checkbox(
            "Also those with a kept group",
            key="coverage.grow_kept",
            value=not found.without_kept,
            disabled=not found.with_kept,
            help="A run makes one group of each pair; another run makes another one.",
        )
        chosen = [*found.without_kept, *(found.with_kept if is_more else ())]
        if found.elsewhere:
            st.caption(
                f"A run covers one dataset: {counted(found.elsewhere, 'pair')} of others left out."
            )
        if len(chosen) > MAX_IDS:
            st.caption(f"The first {MAX_IDS} of {len(chosen):,}.")
        if chosen:
            draw_hand_off(
                "curate",
                f"Choose recipe and budget for {counted(len(chosen[:MAX_IDS]), 'pair')}",
                dataset=found.dataset,
                pairs=",".join(map(str, chosen[:MAX_IDS])),
            )
