"""The form that pushes a release or a checkpoint to the Hub, and what becomes of the push."""

from typing import Any, Literal

import streamlit as st

from app.access.session_user import action, notify, require_permission
from app.jobs_page.card import draw_last_failure, follow_job
from app.kit.fields import at_field, draw_fields, values_of_form
from app.operations import releases
from app.operations.acting import queued
from curation.hub.request import PushStart
from db.errors import BadInput
from db.tables import Job

TARGETS = {
    "new": "a new repository",
    "pull request": "a pull request",
    "branch": "a branch",
    "replace": "replace the existing files",
}
What = Literal["release", "checkpoint"]


def draw_push(what: What, number: int, label: str, *, key: str) -> None:
    """Draw the form in an expander of that label, and below it the push that it started."""
    with st.expander(label, icon=":material/cloud_upload:"):
        _draw_form(what, number, key)
    draw_last_failure("push", f"{key}.push_job", {f"{what}_id": number})
    job_id = st.session_state.get(f"{key}.push_job")
    if job_id is not None:
        pushed = follow_job(job_id, key=f"{key}.push")
        if pushed is not None and pushed.status == "done":
            _draw_difference(pushed)


def _draw_form(what: What, number: int, key: str) -> None:
    def draw(name: str, **more: Any) -> None:
        draw_fields(PushStart, [name], key=key, more={name: more})

    with st.container(horizontal=True):
        draw("repo", placeholder="USER/NAME")
        way = st.selectbox(
            "Push as", list(TARGETS), format_func=TARGETS.__getitem__, key=f"{key}.push_way"
        )
    if way == "branch":
        draw("branch")
    draw("public")
    with st.container(horizontal=True):
        for name, compares in (("Compare", True), ("Push", False)):
            st.button(
                name,
                type="secondary" if compares else "primary",
                key=f"{key}.compare" if compares else f"{key}.push_start",
                on_click=push,
                args=(what, number, key),
                kwargs={"dry_run": compares},
            )
    st.caption(
        "The token is read from the server's environment (HF_TOKEN), never entered on a page."
    )


@action
def push(what: What, number: int, key: str, *, dry_run: bool) -> None:
    """Queue the push that the form describes, or only its comparison with the Hub."""
    state, given = st.session_state, values_of_form(PushStart, key=key)
    way = state.get(f"{key}.push_way")
    given |= {"pull_request": way == "pull request", "replace": way == "replace"}
    with at_field(f"{key}.{{}}"):
        if way == "branch" and not given["branch"].strip():
            raise BadInput("no branch given", "enter its name, as v2", code="branch_missing")
        wanted = PushStart.read(given | {f"{what}_id": number, "dry_run": dry_run})
        job_id = releases.push(require_permission(releases.RIGHT), wanted, queued)
        state[f"{key}.push_job"] = job_id
        doing = f"Comparing with {wanted.repo}" if dry_run else f"The push to {wanted.repo}"
        notify(f"{doing} is queued as job {job_id}.")


def _draw_difference(job: Job) -> None:
    result = job.result or {}
    counts = {
        kind: len(result.get(kind, ())) for kind in ("added", "changed", "removed", "unchanged")
    }
    st.caption(", ".join(f"{kind} {count:,}" for kind, count in counts.items()))
    lines = [
        f"{sign} {path}"
        for sign, kind in (("+", "added"), ("~", "changed"), ("-", "removed"))
        for path in result.get(kind, ())
    ]
    if lines:
        st.code("\n".join(lines), language=None, height=200)
