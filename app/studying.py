"""What the Studies page's buttons do: draw a study, open and close it, start judges in it."""

import streamlit as st

from app.actions import launch_job
from app.visit import acting, action, say
from curation.studies import make_study
from db import studies
from db.accounts import record_audit
from db.errors import BadInput
from db.runs import list_runs
from db.store import open_store


@action
def create() -> None:
    """Draw a study as the form says."""
    visitor = acting("studies")
    state = st.session_state
    store = open_store()
    run_id = int(state["studies.run"])
    with store.read() as session:
        dataset = next(run.dataset for run in list_runs(session) if run.id == run_id)
    made = make_study(
        store,
        dataset=dataset,
        items=int(state["studies.items"]),
        overlap=int(state["studies.overlap"]),
        seed=int(state["studies.seed"]),
        run_id=run_id,
        name=(state["studies.name"] or "").strip(),
        guidelines=state["studies.guidelines"],
        created_by=visitor.name,
    )
    with store.write() as session:
        record_audit(session, visitor.name, "study.create", str(made["study_id"]))
        session.commit()
    st.query_params["study"] = str(made["study_id"])
    st.session_state.pop("studies.chosen", None)
    say(f"{made['name']} has {made['items']} items; people find it on the page Judge.")


@action
def set_status(study_id: int, status: str) -> None:
    """Open, pause or close a study."""
    visitor = acting("studies")
    with open_store().write() as session:
        studies.set_status(session, study_id, status)
        record_audit(session, visitor.name, f"study.{status}", str(study_id))
        session.commit()
    say(f"Study {study_id} is {status}.")


@action
def start_judge(study_id: int) -> None:
    """Queue a job in which a program judges the study's items."""
    judge = (st.session_state["studies.judge"] or "").strip()
    if not judge:
        raise BadInput("no judge: offline:embedding, openai:MODEL or simulated:N")
    job_id = launch_job("judge", {"study_id": study_id, "judge": judge}, what=f"Judging as {judge}")
    st.session_state["studies.job"] = job_id
