"""The funnel of a run: groups that reached each stage, kept groups, and drop reasons."""

import streamlit as st

from app.kit.frame.links import page_link
from app.kit.page import draw_table
from curation.recipe.drop_reasons import reason_text
from db.run.runs import STAGES, Funnel

STAGE_TITLES = {
    "instruction": "Instruction written",
    "negatives": "Negatives written",
    "passages": "Passages written",
    "validation": "Reached validation",
}


def draw_funnel(found: Funnel) -> None:
    """Draw bars from pairs to kept groups, and the drop reasons with counts."""
    with st.container(horizontal=True, gap="large"):
        with st.container(width=450):
            draw_stages(found)
        with st.container(width=360):
            _draw_drops(found)


def draw_stages(found: Funnel) -> None:
    """Draw bars from pairs to kept groups."""
    steps = [("Pairs", found.pairs)]
    steps += [(STAGE_TITLES[stage], found.reached[stage]) for stage in STAGES]
    steps += [("Kept", found.kept)]
    draw_table(
        [
            {
                "Stage": name,
                "Groups": count,
                "Share": 100 * count / found.pairs if found.pairs else 0.0,
            }
            for name, count in steps
        ],
        column_config={
            "Share": st.column_config.ProgressColumn(
                format="%.0f%%", max_value=100, color="primary"
            ),
            "Groups": st.column_config.NumberColumn(format="localized"),
        },
    )


def _draw_drops(found: Funnel) -> None:
    """Draw every drop reason with its count, as a link to its groups."""
    dropped = sum(found.dropped.values())
    if not dropped:
        st.caption("No dropped groups yet.")
        return
    st.markdown("**Drop reasons**")
    for reason, count in found.dropped.items():
        page_link(
            "groups",
            f"{count:,} · {reason_text(reason)}",
            parameters={"run": found.run_id, "reason": reason},
        )
    st.caption(f"{dropped:,} dropped, {found.waiting + found.in_work:,} remaining")
