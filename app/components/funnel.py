"""The funnel of a run: how many groups reached each stage, were kept, and were dropped for what."""

import streamlit as st

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
        st.dataframe(
            [
                {"Groups": count, "Dropped because": reason.replace("_", " ")}
                for reason, count in found.dropped.items()
            ],
            hide_index=True,
            column_config={"Groups": st.column_config.NumberColumn(format="localized")},
        )
        st.caption(f"{dropped:,} dropped, {found.waiting + found.in_work:,} still to do")
