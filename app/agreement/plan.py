"""The planner on the Agreement page: how many more judgments, among which items, and add them."""

from typing import Any

import streamlit as st

from analysis.study import run_text
from analysis.study.planning import TARGETS
from app.access.session_user import action, notify, require_permission
from app.text.numbers import counted
from app.text.plain import plain
from curation.judging.about_run import extend_by_plan, plan_for, plan_numbers
from db.errors import InfError
from db.people.accounts import record_audit
from db.store.store import open_store
from db.study.studies import get_study

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
                width=320,
            )
            points = st.number_input(
                "To ± percentage points", 0.5, 50.0, 5.0, 0.5, key="agreement.plan_reach", width=200
            )
            wanted = st.toggle("Show the plan", key="agreement.plan_show")
        if not wanted:
            return
        try:
            found = read_plan(study_id, target, points / 100)
        except InfError as error:
            st.info(plain(str(error)))
            return
        st.markdown(plain(run_text.plan_sentence(found)))
        if not found["items"]:
            return
        st.dataframe(
            [
                {
                    "Items": cell["items"],
                    "Among": cell["asked"],
                    **{
                        name.capitalize(): value
                        for name, value in cell.items()
                        if name not in ("items", "asked", "verdict")
                    },
                }
                for cell in found["cells"]
            ],
            hide_index=True,
        )
        st.button(
            f"Add {counted(found['items'], 'item')} to the study",
            key="agreement.plan_add",
            on_click=add_planned,
            args=(study_id, target, found["items"]),
        )


def read_plan(study_id: int, target: str, reach: float) -> dict[str, Any]:
    """The plan in numbers. Raises BadInput where the study's sample allows none."""
    with open_store().read() as session:
        overlap = get_study(session, study_id).overlap
        return plan_numbers(plan_for(session, study_id, target=target, reach=reach), overlap)


@action
def add_planned(study_id: int, target: str, items: int) -> None:
    """Add exactly the items shown: as many, placed by the same rule."""
    user = require_permission("studies")
    with open_store().write() as session:
        plan = extend_by_plan(session, study_id, target=target, reach=None, items=items)
        record_audit(session, user.name, "study.extend", str(study_id), items=plan.items)
        session.commit()
    st.session_state["agreement.plan_show"] = False
    notify(f"{counted(plan.items, 'item')} added. Judges of the study get them next.")
