"""Actions of the Agreement page: plan more judgments, add the planned items."""

from typing import Any

import streamlit as st

from app.access.session_user import action, notify, require_permission
from app.text.numbers import counted
from curation.judging.about_run import extend_by_plan, plan_for, plan_numbers
from db.people.audit import record_audit
from db.store.store import open_store
from db.study.studies import get_study


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
