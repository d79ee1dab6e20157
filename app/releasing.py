"""What the Releases page's button does: queue an export."""

import re

import streamlit as st

from app.actions import launch_job
from app.visit import acting, action
from db.errors import BadInput, Refused
from db.settings import home

SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")


@action
def start(run_id: int, dataset: str) -> None:
    """Queue the export that the form describes, into the folder of releases."""
    state = st.session_state
    acting("export")
    name = (state["releases.name"] or "").strip()
    if not SAFE.fullmatch(name):
        raise BadInput(
            f"release name {name!r}: letters, digits, `.`, `_` and `-`, not at the start; it is "
            "the name of the folder too"
        )
    folder = home() / "releases" / name
    if folder.exists():
        raise Refused(
            f"there is a release {name!r} already and releases do not change: choose another name"
        )
    config = {
        "dataset": dataset,
        "run_id": run_id,
        "out": str(folder),
        "format": state["releases.format"],
        "reviews": state["releases.reviews"],
        "include_dropped": bool(state["releases.include_dropped"]),
        "name": name,
    }
    state["releases.job"] = launch_job("export", config, what=f"Release {name}")
    st.query_params.pop("release", None)
    state.pop("releases.chosen", None)
