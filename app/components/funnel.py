"""The funnel of a run: how many groups reached each stage, were kept, and were dropped for what."""

import streamlit as st

from app.menu import view_file
from db.runs import STAGES, Funnel

STAGE_TITLES = {
    "instruction": "Instruction written",
    "negatives": "Negatives written",
    "passages": "Passages written",
    "validation": "Reached validation",
}


def draw_funnel(found: Funnel) -> None:
    """Bars from pairs to kept groups, and the drop reasons with their counts."""
    left, right = st.columns([3, 2], gap="large")
    with left:
        steps = [("Pairs", found.pairs)]
        steps += [(STAGE_TITLES[stage], found.reached[stage]) for stage in STAGES]
        steps += [("Kept", found.kept)]
        st.dataframe(
            [
                {
                    "Stage": name,
                    "Groups": count,
                    "Share": count / found.pairs if found.pairs else 0.0,
                }
                for name, count in steps
            ],
            hide_index=True,
            column_config={
                "Share": st.column_config.ProgressColumn(format="percent", color="primary"),
                "Groups": st.column_config.NumberColumn(format="localized"),
            },
        )
    with right:
        dropped = sum(found.dropped.values())
        if not dropped:
            st.caption("Nothing was dropped so far.")
            return
        st.markdown("**Dropped because**")
        for reason, count in found.dropped.items():
            with st.container(horizontal=True, vertical_alignment="center", gap="small"):
                st.page_link(
                    view_file("groups"),
                    label=reason.replace("_", " "),
                    query_params={"run": str(found.run_id), "reason": reason},
                    width="stretch",
                )
                st.markdown(f"{count:,}", width="content")
        st.caption(f"{dropped:,} dropped, {found.waiting + found.in_work:,} still to do")
