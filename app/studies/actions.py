"""What the Studies page's buttons do: draw a study, open and close it, start judges in it."""

import streamlit as st

from app.access.session_user import action, notify, require_permission
from app.jobs.actions import launch_job
from curation.judging.sampling import Sampling
from curation.judging.studies import make_study
from db.errors import BadInput
from db.people.accounts import record_audit
from db.run.runs import list_runs
from db.store.store import open_store
from db.study import adjudication, quality, reassigning, studies
from db.study.quality import JudgeQuality
from db.study.rules import StudyRules, rules_of
from db.study.sampled_groups import sampled_judges
from db.study.speed import FastAnswer, fast_answers
from db.tables import Guideline


def read_quality(study_id: int) -> tuple[list[JudgeQuality], StudyRules]:
    """Pace and quality of a study's judges, and the rules they are measured by."""
    with open_store().read() as session:
        rules = rules_of(studies.get_study(session, study_id))
        return quality.judge_quality(session, study_id), rules


def read_fast_answers(study_id: int) -> list[FastAnswer]:
    """The answers given in less time than the study's rules allow."""
    with open_store().read() as session:
        return fast_answers(session, study_id)


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
    """Draw a study as the form says."""
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
    st.session_state.pop("studies.chosen", None)
    notify(f"{made['name']} has {made['items']} items; people find it on the page Judge.")


def sampling_of_form() -> Sampling:
    """How the form says that items are drawn. Raises BadInput."""
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
        record_audit(session, user.name, f"study.{status}", str(study_id))
        session.commit()
    notify(f"Study {study_id} is {status}.")


@action
def start_judge(study_id: int) -> None:
    """Queue a job in which a program judges the study's items."""
    judge = (st.session_state["studies.judge"] or "").strip()
    if not judge:
        raise BadInput("choose or type the name of a judge")
    job_id = launch_job("judge", {"study_id": study_id, "judge": judge}, what=f"Judging as {judge}")
    st.session_state["studies.job"] = job_id


@action
def pause_judge(study_id: int) -> None:
    """Give the chosen judge nothing more; what they hold goes to others."""
    user, judge_id = require_permission("studies"), int(st.session_state["studies.quality_judge"])
    with open_store().write() as session:
        quality.pause_judge(session, study_id, judge_id, st.session_state["studies.reason"] or "")
        record_audit(session, user.name, "study.pause_judge", str(study_id), judge=judge_id)
        session.commit()
    notify("The judge is paused in this study; what they held goes to others.")


@action
def let_judge_in(study_id: int) -> None:
    """Let the chosen judge go on."""
    user, judge_id = require_permission("studies"), int(st.session_state["studies.quality_judge"])
    with open_store().write() as session:
        quality.let_in(session, study_id, judge_id)
        record_audit(session, user.name, "study.let_in_judge", str(study_id), judge=judge_id)
        session.commit()
    notify("The judge may go on.")


@action
def take_back(study_id: int) -> None:
    """Give what the chosen judge holds to others now."""
    user, judge_id = require_permission("studies"), int(st.session_state["studies.quality_judge"])
    with open_store().write() as session:
        number = quality.take_back(session, study_id, judge_id)
        record_audit(session, user.name, "study.take_back", str(study_id), judge=judge_id)
        session.commit()
    notify(f"{number} item{'s' * (number != 1)} went back to the queue.")


@action
def extend_overlap(study_id: int) -> None:
    """Ask for more judgments per item."""
    user, overlap = require_permission("studies"), int(st.session_state["studies.more_overlap"])
    with open_store().write() as session:
        studies.extend_overlap(session, study_id, overlap)
        record_audit(session, user.name, "study.overlap", str(study_id), overlap=overlap)
        session.commit()
    notify(f"Every item now gets {overlap} judgments by people.")


@action
def write_guideline(study_id: int) -> None:
    """Make the edited text the next version of the guidelines."""
    user = require_permission("studies")
    with open_store().write() as session:
        body = st.session_state[f"studies.guideline_{study_id}"] or ""
        version = studies.write_guideline(session, study_id, body, created_by=user.name).version
        record_audit(session, user.name, "study.guideline", str(study_id), version=version)
        session.commit()
    notify(f"The guidelines are at version {version}; judgments from now on are made under it.")


@action
def reassign(study_id: int) -> None:
    """Give what the chosen judge holds to another person."""
    user, state = require_permission("studies"), st.session_state
    giver, receiver = int(state["studies.quality_judge"]), int(state["studies.receiver"])
    with open_store().write() as session:
        done = reassigning.reassign(session, study_id, giver, receiver)
        record_audit(session, user.name, "study.reassign", str(study_id), judge=giver, to=receiver)
        session.commit()
    queue = f", {done.returned} to the queue" if done.returned else ""
    notify(f"{done.moved} item{'s' * (done.moved != 1)} went to them{queue}.")


@action
def adjudicate(study_id: int, item_id: int, choice: str) -> None:
    """Store the user's decision on a disputed item."""
    user = require_permission("studies")
    note = str(st.session_state.get(f"adjudicate.note_{item_id}") or "")
    with open_store().write() as session:
        adjudication.adjudicate(session, study_id, item_id, choice, by=user.name, note=note)
        record_audit(
            session, user.name, "study.adjudicate", str(study_id), item=item_id, choice=choice
        )
        session.commit()
