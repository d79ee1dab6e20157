"""The planner on the Agreement page: how many more judgments, among which items, and add them."""

import streamlit as st

from analysis.study import run_text
from analysis.study.design import TARGETS
from app.access.session_user import signed_in_user
from app.agreement.actions import add_planned
from app.kit.page import draw_table
from app.operations.judging import agreement
from app.text.numbers import counted
from app.text.plain import plain
from app.text.remedies import in_pages
from curation.judging.request import PlanStudy
from db.errors import InfError

NAMES = {
    "precision": "precision (kept items confirmed)",
    "overturned": "wrongly dropped (missed items confirmed)",
    "recall": "recall",
}


def draw_plan(study_id: int) -> None:
    """Choose a figure and a half-width; show the plan and the button that adds its items."""
    with st.expander("Plan more judgments", icon=":material/add_task:"):
        with st.container(horizontal=True, vertical_alignment="bottom"):
            target = st.selectbox(
                "Figure to know better",
                TARGETS,
                format_func=NAMES.__getitem__,
                key="agreement.plan_target",
                persist_state="page",
                width=320,
            )
            points = st.number_input(
                "To ± percentage points",
                0.5,
                50.0,
                5.0,
                0.5,
                key="agreement.plan_reach",
                persist_state="page",
                width=200,
            )
            wanted = st.toggle("Show the plan", key="agreement.plan_show", persist_state="page")
        if not wanted:
            return
        try:
            request = PlanStudy(study_id=study_id, target=target, reach=points)
            found = agreement.plan(signed_in_user(), request)
        except InfError as error:
            st.info(plain(in_pages(str(error))))
            return
        st.markdown(plain(run_text.plan_sentence(found.as_json())))
        if not found.items:
            return
        draw_table(
            [
                {
                    "Items": cell.items,
                    "Among": cell.among,
                    **{name.capitalize(): value for name, value in cell.strata.items()},
                }
                for cell in found.cells
            ],
        )
        st.button(
            f"Add {counted(found.items, 'item')} to the study",
            key="agreement.plan_add",
            on_click=add_planned,
            args=(study_id, target, found.items),
        )
