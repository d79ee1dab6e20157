"""What the Evaluations page's button does."""

import streamlit as st

from app.access.session_user import action, require_permission
from app.jobs.actions import launch_job
from db.errors import BadInput, Refused


@action
def start() -> None:
    """Queue the evaluation that the form describes."""
    state = st.session_state
    user = require_permission("evaluate")
    models = list(state["evaluations.models"])
    if not models:
        raise BadInput("no model: choose at least one")
    benchmark = (state["evaluations.benchmark"] or "").strip()
    if benchmark and not user.may("admin"):
        raise Refused("folders on the server are read for an admin only")
    subset = state["evaluations.subset"]
    if subset and not benchmark:
        raise BadInput("tasks are chosen of a benchmark: give its folder or name")
    release = state["evaluations.release"]
    if not benchmark and release is None:
        raise BadInput("nothing to score on: there is no release yet, so give a benchmark")
    config = {
        "models": models,
        "release": None if benchmark else str(release),
        "benchmark": benchmark or None,
        "subset": subset,
        "template": None,
        "query_prefix": "",
        "passage_prefix": "",
        "with_base": True,
    }
    state["evaluations.job"] = launch_job("evaluate", config, what="The evaluation")
