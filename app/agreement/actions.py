"""Actions of the Agreement page, and its figures, which all users with the same view share."""

from collections.abc import Callable, Mapping
from typing import Any

import streamlit as st

from analysis.agreement.judgment_filter import JudgmentFilter
from analysis.study.design import Target
from app.access.identity import Actor
from app.access.session_user import action, notify, signed_in_user
from app.operations.acting import queued
from app.operations.judging import agreement
from app.operations.judging.agreement import Seen
from app.text.numbers import counted
from curation.judging.request import AgreementStart, PlanStudy
from db.rows import Row

Version = tuple[object, ...]
ABOUT: Mapping[str, Callable[[Actor, int], Row]] = {
    "estimates": agreement.estimates,
    "thresholds": agreement.thresholds,
    "consensus": agreement.consensus,
}


@st.cache_data(max_entries=8, show_spinner="Computing posterior draws …")
def figures(
    study_id: int, chosen: JudgmentFilter, version: Version, _actor: Actor
) -> dict[str, Any]:
    """The figures of a study, of the judgments that pass the filter.

    version: as of `agreement.version`, as of every figure here.
    """
    return agreement.figures(_actor, study_id, chosen).as_json()


@st.cache_data(max_entries=24, show_spinner="Reading the run …")
def about(what: str, study_id: int, version: Version, _actor: Actor) -> dict[str, Any]:
    """What a study says, by the operation of that name in `ABOUT`."""
    return ABOUT[what](_actor, study_id).as_json()


def read_report(actor: Actor, study_id: int, seen: Seen) -> dict[str, Any] | None:
    """The study's report for the actor; None of a large study without a stored one."""
    if not seen.is_large:
        version = agreement.version(actor, study_id, seen)
        report: dict[str, Any] = figures(study_id, JudgmentFilter(), version, actor)["report"]
        return report
    stored = agreement.stored(actor, study_id)
    return None if stored is None else stored.found.result["report"]


@action
def compute(study_id: int) -> None:
    """Queue the job that computes and stores the study's figures."""
    job_id = agreement.compute(signed_in_user(), AgreementStart(study_id=study_id), queued)
    st.session_state[f"agreement.job_{study_id}"] = job_id
    notify(f"The agreement of study {study_id} is queued as job {job_id}.")


@action
def add_planned(study_id: int, target: Target, items: int) -> None:
    """Add exactly the items shown: as many, placed by the same rule."""
    wanted = PlanStudy(study_id=study_id, target=target, items=items, add=True)
    done = agreement.plan(signed_in_user(), wanted)
    st.session_state["agreement.plan_show"] = False
    notify(f"{counted(done.items, 'item')} added. Judges of the study get them next.")
