"""Actions of the Agreement page: choose its study, read its tabs, plan and add judgments."""

from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import streamlit as st

from analysis.agreement.judgment_filter import JudgmentFilter
from app.access.session_user import action, current_user, notify, require_permission
from app.jobs_page.actions import launch_job
from app.text.numbers import counted
from curation.judging.about_run import (
    about_run,
    extend_by_plan,
    plan_for,
    plan_numbers,
    thresholds_of,
)
from curation.judging.agreement import (
    MAX_LIVE,
    Reader,
    reader_of,
    stored_agreement,
    study_report,
)
from curation.judging.consensus import study_consensus
from curation.judging.independence import validator_sentence
from curation.judging.scope import Scope, study_scope
from db.assignment.hidden import hidden_items_of_study
from db.errors import Refused
from db.events import record_event
from db.store.store import open_store
from db.study.items import ItemPlace, study_item_places
from db.study.judgments import (
    JudgmentRow,
    JudgmentState,
    items_of_two_judges,
    judgment_frame,
    judgment_state,
)
from db.study.quality import flagged_people
from db.study.run_items import estimate_state
from db.study.studies import StudySummary, get_study
from db.tables import Analysis


def read_hidden(study_id: int) -> set[int]:
    """The study's items that are hidden from the user: no list shows them."""
    with open_store().read() as session:
        return hidden_items_of_study(session, study_id, _user_name())


def read_reader(study_id: int) -> Reader:
    """The user as a reader of the study's figures: a member does not see hidden items counted.

    Who sees how a figure changes with each answer of theirs learns whether it was right.
    """
    with open_store().read() as session:
        return reader_of(session, study_id, _user_name())


def _user_name() -> str:
    user = current_user()
    if user is None:
        raise Refused("you are signed out", "sign in again", code="signed_out")
    return user.name


def read_state(study_id: int) -> JudgmentState:
    """How many judgments the figures count, and the newest of them."""
    with open_store().read() as session:
        return judgment_state(session, study_id)


def is_large(state: JudgmentState) -> bool:
    """Whether a job computes the study's figures."""
    return state.judgments > MAX_LIVE


def study_to_show(found: Sequence[StudySummary]) -> StudySummary:
    """The newest study with an item of two judges that figures may count for the user.

    Where none has one, the newest with any judgment; else the newest. found: newest first, at least
    one.
    """
    judged = []
    for study in found:
        with open_store().read() as session:
            state = judgment_state(session, study.id)
            if not state.judgments:
                continue
            if is_large(state):
                return study
            compared = items_of_two_judges(session, study.id)
        judged.append(study)
        if compared - read_reader(study.id).left_out:
            return study
    return (judged or found)[0]


class Judged(NamedTuple):
    """The judgments of a study and what they are about."""

    rows: list[JudgmentRow]
    places: dict[int, ItemPlace]
    scope: Scope
    circular: str


def read_study(study_id: int) -> Judged:
    """Every judgment of the study and the places of its items."""
    with open_store().read() as session:
        rows = judgment_frame(session, study_id)
        places = study_item_places(session, study_id)
    return Judged(rows, places, *read_scope(study_id, {row.judge for row in rows}))


def read_scope(study_id: int, judges: Collection[str]) -> tuple[Scope, str]:
    """What the study's agreement is a measure of, and which of the judges validated the run."""
    with open_store().read() as session:
        return study_scope(session, study_id), validator_sentence(session, study_id, judges)


def computed(
    study_id: int, reader: Reader, chosen: JudgmentFilter, state: JudgmentState
) -> dict[str, Any]:
    """The figures of a study, of the judgments that pass the filter."""
    with open_store().read() as session:
        flags = {} if reader.is_blind else flagged_people(session, study_id)
    version = (str(open_store().engine.url), state, tuple(flags.items()))
    return _computed(study_id, reader, chosen, version)


@st.cache_data(max_entries=8, show_spinner="Computing posterior draws …")
def _computed(
    study_id: int, reader: Reader, chosen: JudgmentFilter, version: tuple[object, ...]
) -> dict[str, Any]:
    with open_store().read() as session:
        return study_report(
            session,
            study_id,
            chosen=chosen,
            left_out=reader.left_out,
            with_flags=not reader.is_blind,
        )


def read_stored(study_id: int, reader: str) -> Analysis | None:
    """The figures of a large study as the newest job stored them."""
    with open_store().read() as session:
        return stored_agreement(session, study_id, reader)


def read_report(study_id: int) -> dict[str, Any] | None:
    """The study's report for the user; None of a large study without a stored one."""
    reader, state = read_reader(study_id), read_state(study_id)
    if not is_large(state):
        report: dict[str, Any] = computed(study_id, reader, JudgmentFilter(), state)["report"]
        return report
    stored = read_stored(study_id, reader.name)
    return None if stored is None else stored.result["report"]


@action
def compute(study_id: int, reader: str) -> None:
    """Queue the job that computes and stores the study's figures."""
    config = {"what": "agreement", "study": study_id, "reader": reader}
    st.session_state[f"agreement.job_{study_id}"] = launch_job(
        "study", config, what=f"The agreement of study {study_id}"
    )


@st.cache_data(max_entries=8, show_spinner="Reading the run …")
def _estimates(study_id: int, with_flags: bool, version: tuple[object, ...]) -> dict[str, Any]:
    with open_store().read() as session:
        return about_run(session, study_id, with_flags=with_flags)


def estimates(study_id: int, reader: Reader, state: JudgmentState) -> dict[str, Any]:
    """What the study says about its run, of all judgments whatever the filters."""
    return _estimates(study_id, not reader.is_blind, _version(study_id, state))


def _version(study_id: int, state: JudgmentState) -> tuple[object, ...]:
    """Identifies the store, the study's judgments, who of its people is flagged, and its run's
    verdicts."""
    with open_store().read() as session:
        flags = tuple(flagged_people(session, study_id).items())
        return str(open_store().engine.url), state, flags, estimate_state(session, study_id)


def read_thresholds(study_id: int, state: JudgmentState) -> dict[str, Any]:
    """Stricter filters of the study's run."""
    with_flags = not read_reader(study_id).is_blind
    return _thresholds(study_id, with_flags, _version(study_id, state))


@st.cache_data(max_entries=8, show_spinner="Reading every answer of the run's judges …")
def _thresholds(study_id: int, with_flags: bool, version: tuple[object, ...]) -> dict[str, Any]:
    with open_store().read() as session:
        return thresholds_of(session, study_id, with_flags=with_flags)


def read_consensus(study_id: int, left_out: frozenset[int], state: JudgmentState) -> dict[str, Any]:
    """What the study's judges say together, without the items left out."""
    with_flags = not read_reader(study_id).is_blind
    return _consensus(study_id, left_out, with_flags, _version(study_id, state))


@st.cache_data(max_entries=8, show_spinner=False)
def _consensus(
    study_id: int, left_out: frozenset[int], with_flags: bool, version: tuple[object, ...]
) -> dict[str, Any]:
    with open_store().read() as session:
        return study_consensus(session, study_id, without=left_out, with_flags=with_flags)


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
        record_event(session, user.name, "study.extend", study_id, items=plan.items)
        session.commit()
    st.session_state["agreement.plan_show"] = False
    notify(f"{counted(plan.items, 'item')} added. Judges of the study get them next.")
