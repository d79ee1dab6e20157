"""What the Diversity and Coverage pages' buttons do."""

import streamlit as st

from app.actions import launch_job
from app.visit import action
from db.errors import BadInput

KINDS = {"diversity": "embed", "coverage": "project"}


@action
def start(page: str) -> None:
    """Queue the analysis of the chosen data sets; what is known already is not computed again."""
    state = st.session_state
    names = list(state[f"{page}.datasets"])
    if not names:
        raise BadInput("no data set: choose at least one")
    config = {"datasets": names, "groups": state.get(f"{page}.groups", "kept")}
    state[f"{page}.job"] = launch_job(KINDS[page], config, what=f"The {page} of {', '.join(names)}")
    st.query_params.pop("analysis", None)
    state.pop(f"{page}.chosen", None)
