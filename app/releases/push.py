"""Pushes of a release to the Hub, and the form for the next one."""

from typing import Any

import streamlit as st

from app.jobs_page.card import follow_job
from app.kit.fields import draw_fields
from app.operations.releases import ReleaseRow
from app.releases import actions
from app.text.plain import plain
from curation.hub.request import PushStart
from db.tables import Job

TARGETS = {
    "new": "a new repository",
    "pull request": "a pull request",
    "branch": "a branch",
    "replace": "replace the existing files",
}


def draw_pushes(release: ReleaseRow) -> None:
    """List completed pushes, then the form."""
    for each in release.pushes:
        tag = f" · tag {each.tag}" if each.tag else ""
        st.caption(plain(f"On the Hub: {each.repo} · {each.url}{tag} · {each.at:%Y-%m-%d %H:%M}"))
    label = "Push it to the Hub again" if release.pushes else "Push it to the Hub"
    with st.expander(label, icon=":material/cloud_upload:"):
        _draw_form(release)
    job_id = st.session_state.get("releases.push_job")
    if job_id is not None:
        pushed = follow_job(job_id, key="releases.push")
        if pushed is not None and pushed.status == "done":
            _draw_difference(pushed)


def _draw_form(release: ReleaseRow) -> None:
    with st.container(horizontal=True):
        _draw("repo", placeholder="USER/NAME")
        way = st.selectbox(
            "Push as", list(TARGETS), format_func=TARGETS.__getitem__, key="releases.push_way"
        )
    if way == "branch":
        _draw("branch")
    _draw("public")
    with st.container(horizontal=True):
        st.button("Compare", key="releases.compare", on_click=actions.push, args=(release.id, True))
        st.button(
            "Push",
            type="primary",
            key="releases.push_start",
            on_click=actions.push,
            args=(release.id, False),
        )
    st.caption(
        "The token is read from the server's environment (HF_TOKEN), never entered on a page."
    )


def _draw(name: str, **more: Any) -> None:
    draw_fields(PushStart, [name], key=actions.FORM, more={name: more})


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
