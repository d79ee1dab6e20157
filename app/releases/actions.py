"""Actions of the Releases page: queue an export or a push."""

import re

import streamlit as st

from app.access.session_user import action, notify, require_permission
from app.kit.fields import values_of_form
from app.operations import releases
from app.operations.acting import queued
from curation.hub.request import PushStart
from curation.release.request import ReleasePlan
from db.errors import BadInput, Refused
from db.store.settings import home

FORM = "releases"
SAFE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")


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
    wanted = plan_of_form(runs)
    if not SAFE.fullmatch(wanted.name):
        raise BadInput(
            f"release name {wanted.name!r}",
            "use letters, digits, `.`, `_` and `-`, starting with a "
            "letter or digit; it is also the folder name",
            code="release_name_invalid",
        )
    actor = require_permission(releases.RIGHT)
    if (home() / "releases" / wanted.name).exists():
        raise Refused(
            f"release {wanted.name!r} already exists and releases are immutable",
            "choose another name",
            code="release_exists",
        )
    job_id = releases.create(actor, wanted, queued)
    st.session_state["releases.job"] = job_id
    notify(f"Release {wanted.name} is queued as job {job_id}.")
    st.query_params.pop("release", None)
    st.session_state.pop("releases.chosen", None)


@action
def push(release_id: int, dry_run: bool) -> None:
    """Queue the push that the form describes, or only its comparison with the Hub."""
    state = st.session_state
    way = state.get("releases.push_way")
    branch = (state.get("releases.branch") or "").strip()
    if way == "branch" and not branch:
        raise BadInput("no branch given", "enter its name, for example v2", code="branch_missing")
    wanted = PushStart(
        release_id=release_id,
        repo=(state.get("releases.repo") or "").strip(),
        public=bool(state.get("releases.public")),
        dry_run=dry_run,
        pull_request=way == "pull request",
        branch=branch if way == "branch" else None,
        replace=way == "replace",
    )
    job_id = releases.push(require_permission(releases.RIGHT), wanted, queued)
    state["releases.push_job"] = job_id
    what = f"Comparing with {wanted.repo}" if dry_run else f"The push to {wanted.repo}"
    notify(f"{what} is queued as job {job_id}.")
