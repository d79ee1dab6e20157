"""Actions of the Studies page: create, open and close a study, manage its judges."""

from dataclasses import replace

import streamlit as st

from app.access.session_user import action, notify, require_permission
from app.jobs_page.actions import launch_job
from app.text.numbers import counted
from curation.judging.sampling import Sampling
from curation.judging.studies import make_study
from db.assignment import members, places, reassigning
from db.assignment.hidden import hidden_items
from db.errors import BadInput
from db.events import record_event
from db.run.runs import list_runs
from db.store.store import open_store
from db.study import blind_adjudication, quality, studies
from db.study.blind_adjudication import BlindItem
from db.study.judgments import own_judge_id
from db.study.quality import JudgeQuality
from db.study.rules import StudyRules, rules_of
from db.study.sampled_groups import sampled_judges
from db.study.speed import FastAnswer, fast_answers
from db.tables import Guideline


def read_quality(study_id: int) -> tuple[list[JudgeQuality], StudyRules]:
    """Pace and quality of a study's judges, and the rules they are measured by.

    Without the user's own right gold answers until the study is closed: after each answer, the
    count tells whether it was gold and right.
    """
    user = require_permission("studies")
    with open_store().read() as session:
        study = studies.get_study(session, study_id)
        rules, judges = rules_of(study), quality.judge_quality(session, study_id)
        is_closed = study.status == "closed"
        own = own_judge_id(session, user.name, user.account_id)
    return [
        each if is_closed or each.judge_id != own else replace(each, gold_right=0, gold_seen=0)
        for each in judges
    ], rules


def read_fast_answers(study_id: int) -> list[FastAnswer]:
    """The answers given in less time than the study's rules allow; no choice of an item that is
    hidden from the user."""
    user = require_permission("studies")
    with open_store().read() as session:
        found = fast_answers(session, study_id)
        hidden = hidden_items(session, {one.item_id for one in found}, user.name)
    return [replace(one, choice="") if one.item_id in hidden else one for one in found]


def read_guideline(study_id: int) -> Guideline:
    """The current version of the guidelines."""
    with open_store().read() as session:
        return studies.current_guideline(session, study_id)


def read_sampled_judges(run_id: int, study_id: int | None) -> list[str]:
    """The judges whose disagreement can be sampled: of a run, or of an earlier study of it."""
    with open_store().read() as session:
        return sampled_judges(session, run_id, study_id)


@action
def create() -> None:
    """Create the study that the form describes."""
    user = require_permission("studies")
    state = st.session_state
    sampling = sampling_of_form()
    store = open_store()
    run_id = int(state["studies.run"])
    with store.read() as session:
        dataset = next(run.dataset for run in list_runs(session) if run.id == run_id)
    made = make_study(
        store,
        dataset=dataset,
        items=None if sampling.sample == "list" else int(state["studies.items"]),
        sampling=sampling,
        overlap=int(state["studies.overlap"]),
        seed=int(state["studies.seed"]),
        run_id=run_id,
        name=(state["studies.name"] or "").strip(),
        guidelines=state["studies.guidelines"],
        created_by=user.name,
    )
    st.query_params["study"] = str(made["study_id"])
    st.query_params.pop("run", None)  # it opens the form, above the study that was made
    st.session_state.pop("studies.chosen", None)
    notify(f"{made['name']} has {made['items']} items. Judges find it on the Judge page.")


def sampling_of_form() -> Sampling:
    """The sampling chosen in the form. Raises BadInput."""
    state = st.session_state
    sample = str(state["studies.sample"])
    if sample == "stratified":
        strata = state["studies.strata"]
        return Sampling(strata=tuple(strata)) if strata else Sampling("random")
    if sample == "disagreement":
        judges = tuple(state["studies.judges"])
        return Sampling(sample, of_study=state["studies.of_study"], judges=judges)
    if sample == "list":
        return Sampling(sample, lines=tuple((state["studies.list"] or "").splitlines()))
    return Sampling(sample)


@action
def set_status(study_id: int, status: str) -> None:
    """Open, pause or close a study."""
    user = require_permission("studies")
    with open_store().write() as session:
        studies.set_status(session, study_id, status)
        record_event(session, user.name, f"study.{status}", study_id)
        session.commit()
    notify(f"Study {study_id} is {status}.")


@action
def start_judge(study_id: int) -> None:
    """Queue a job in which a model or a simulated judge answers the study's items."""
    judge = (st.session_state["studies.judge"] or "").strip()
    if not judge:
        raise BadInput("choose or type the name of a judge", code="choose_type_name_judge")
    job_id = launch_job("judge", {"study_id": study_id, "judge": judge}, what=f"Judging as {judge}")
    st.session_state["studies.job"] = job_id


@action
def pause_judge(study_id: int) -> None:
    """Pause the chosen judge and return their leased items to the queue."""
    user, judge_id = require_permission("studies"), int(st.session_state["studies.quality_judge"])
    with open_store().write() as session:
        members.pause_judge(session, study_id, judge_id, st.session_state["studies.reason"] or "")
        record_event(session, user.name, "study.pause_judge", study_id, judge=judge_id)
        session.commit()
    notify("The judge is paused in this study; their items went back to the queue.")


@action
def readmit_judge(study_id: int) -> None:
    """Lift the pause of the chosen judge."""
    user, judge_id = require_permission("studies"), int(st.session_state["studies.quality_judge"])
    with open_store().write() as session:
        members.readmit_judge(session, study_id, judge_id)
        record_event(session, user.name, "study.let_in_judge", study_id, judge=judge_id)
        session.commit()
    notify("The judge may continue.")


@action
def reclaim_items(study_id: int) -> None:
    """Return the chosen judge's leased items to the queue now."""
    user, judge_id = require_permission("studies"), int(st.session_state["studies.quality_judge"])
    with open_store().write() as session:
        number = places.return_leases(session, study_id, judge_id)
        record_event(session, user.name, "study.take_back", study_id, judge=judge_id)
        session.commit()
    notify(f"{counted(number, 'item')} went back to the queue.")


@action
def extend_overlap(study_id: int) -> None:
    """Increase the number of judgments per item."""
    user, overlap = require_permission("studies"), int(st.session_state["studies.more_overlap"])
    with open_store().write() as session:
        studies.extend_overlap(session, study_id, overlap)
        record_event(session, user.name, "study.overlap", study_id, overlap=overlap)
        session.commit()
    notify(f"Every item now gets {counted(overlap, 'judgment')} by people.")


@action
def write_guideline(study_id: int) -> None:
    """Save the edited text as the next version of the guidelines."""
    user = require_permission("studies")
    with open_store().write() as session:
        body = st.session_state[f"studies.guideline_{study_id}"] or ""
        version = studies.write_guideline(session, study_id, body, created_by=user.name).version
        record_event(session, user.name, "study.guideline", study_id, version=version)
        session.commit()
    notify(f"Guidelines saved as version {version}. Judgments from now on refer to it.")


@action
def reassign(study_id: int) -> None:
    """Move the chosen judge's leased items to another person."""
    user, state = require_permission("studies"), st.session_state
    giver, receiver = int(state["studies.quality_judge"]), int(state["studies.receiver"])
    with open_store().write() as session:
        done = reassigning.reassign(session, study_id, giver, receiver)
        record_event(session, user.name, "study.reassign", study_id, judge=giver, to=receiver)
        session.commit()
    rest = f"; {done.returned} went back to the queue" if done.returned else ""
    notify(f"{counted(done.moved, 'item')} moved to the other judge{rest}.")


@action
def adjudicate(study_id: int, token: str, position: int | None) -> None:
    """Store the adjudicator's decision on a disputed item: a position, None for none of them."""
    user = require_permission("adjudicate")
    note = str(st.session_state.get(f"adjudicate.note_{token}") or "")
    with open_store().write() as session:
        made = blind_adjudication.decide(
            session, study_id, token, position, by=user.name, note=note
        )
        record_event(
            session,
            user.name,
            "study.adjudicate",
            study_id,
            item=made.item_id,
            choice=made.choice,
        )
        session.commit()


@action
def reveal(study_id: int, token: str) -> None:
    """Reveal an item's roles, names and models' choices to the adjudicator."""
    user = require_permission("adjudicate")
    with open_store().write() as session:
        blind_adjudication.reveal(session, study_id, token, user.name)
        session.commit()


def items_to_adjudicate(
    study_id: int, *, open_only: bool, include_agreed: bool, start: int, count: int
) -> tuple[list[BlindItem], int]:
    """A page of the study's disputed items as the user may see them, and how many there are."""
    user = require_permission("adjudicate")
    store = open_store()
    with store.read() as session:  # it counts all judgments of the study: nobody waits for it
        ids = blind_adjudication.ids_to_adjudicate(
            session, study_id, user.name, open_only=open_only, include_agreed=include_agreed
        )
    with store.write() as session:
        items = [
            blind_adjudication.view_item(session, study_id, item_id, user.name)
            for item_id in ids[start : start + count]
        ]
        session.commit()
    return items, len(ids)
