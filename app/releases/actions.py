"""Actions of the Releases page: queue an export."""

import streamlit as st

from app.access.session_user import action, notify, require_permission
from app.kit.fields import values_of_form
from app.operations import releases
from app.operations.acting import queued
from curation.release.request import ReleasePlan
from db.store.settings import home

FORM = "releases"


def plan_of_form(runs: tuple[int, ...]) -> ReleasePlan:
    """The release that the form describes, of these runs, in the folder of releases."""
    found = values_of_form(ReleasePlan, key=FORM)
    name = str(found.get("name", "")).strip()
    if len(runs) > 1:
        found.pop("study_id", None)
    found |= {"runs": runs, "name": name, "out": str(home() / "releases" / (name or "release"))}
    return ReleasePlan.read(found)


@action
def start(runs: tuple[int, ...]) -> None:
    """Queue the export that the form describes, into the releases folder."""
    actor, wanted = require_permission(releases.RIGHT), plan_of_form(runs)
    wanted = wanted.model_copy(update={"out": releases.new_folder(wanted.name)})
    job_id = releases.create(actor, wanted, queued)
    st.session_state["releases.job"] = job_id
    notify(f"Release {wanted.name} is queued as job {job_id}.")
    st.query_params.pop("release", None)
    st.session_state.pop("releases.chosen", None)
