"""Actions of the Agreement page: choose its study, read its tabs, plan and add judgments."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from analysis.agreement.judge_profile import judge_profiles
from app.access.session_user import action, current_user, notify, require_permission
from app.text.numbers import counted
from curation.judging.about_run import extend_by_plan, plan_for, plan_numbers, thresholds_of
from curation.judging.consensus import study_consensus
from db.assignment.hidden import hidden_items_of_study
from db.assignment.members import is_member
from db.errors import Refused
from db.people.audit import record_audit
from db.run.position_bias import study_choices
from db.store.store import open_store
from db.study.judgments import items_of_two_judges, judgment_state
from db.study.quality import judge_quality
from db.study.studies import StudySummary, get_study


def read_hidden(study_id: int) -> tuple[set[int], bool]:
    """The study's items that are hidden from the user, and whether figures leave them out, too.

    They do for members: who sees how a figure changes with each answer of theirs learns whether it
    was right.
    """
    user = current_user()
    if user is None:
        raise Refused("you are signed out: sign in again")
    with open_store().read() as session:
        items = hidden_items_of_study(session, study_id, user.name)
        return items, bool(items) and is_member(session, study_id, user.name)


def study_to_show(found: Sequence[StudySummary]) -> StudySummary:
    """The newest study with an item of two judges that figures may count for the user.

    Where none has one, the newest with any judgment; else the newest. found: newest first, at least
    one.
    """
    judged = []
    for study in found:
        with open_store().read() as session:
            if not judgment_state(session, study.id).judgments:
                continue
            compared = items_of_two_judges(session, study.id)
        judged.append(study)
        hidden, from_figures = read_hidden(study.id)
        if compared - (hidden if from_figures else set()):
            return study
    return (judged or found)[0]


def read_profiles(study_id: int, report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Each judge of a report: agreement, speed, gold items, positions chosen."""
    with open_store().read() as session:
        return judge_profiles(
            report, judge_quality(session, study_id), study_choices(session, study_id)
        )


@st.cache_data(max_entries=8, show_spinner="Reading every answer of the run's judges …")
def read_thresholds(study_id: int, version: tuple[object, ...]) -> dict[str, Any]:
    """Stricter filters of the study's run; version: of the judgments and the run's verdicts."""
    with open_store().read() as session:
        return thresholds_of(session, study_id)


@st.cache_data(max_entries=8, show_spinner=False)
def read_consensus(
    study_id: int, left_out: frozenset[int], version: tuple[object, ...]
) -> dict[str, Any]:
    """What the study's judges say together, without the items left out; version: as above."""
    with open_store().read() as session:
        return study_consensus(session, study_id, without=left_out)


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
