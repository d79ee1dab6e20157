"""Where a release went on the Hub, and the form that pushes it there."""

import streamlit as st

from app.jobs.card import follow_job
from app.releases import actions
from app.text.plain import plain
from db.tables import Job, Release

WAYS = {
    "new": "a new repository",
    "pull request": "a pull request",
    "branch": "a branch",
    "replace": "replace what is there",
}


def draw_pushes(release: Release, arrived: list[Job]) -> None:
    """Every push that arrived, then the form."""
    st.markdown("**On the Hub**")
    if not arrived:
        st.caption("Not pushed yet.")
    for job in arrived:
        told = job.result or {}
        where = told.get("pull_request") or told.get("url") or told.get("repo")
        tag = f" · tag {told['tag']}" if told.get("tag") else ""
        st.caption(plain(f"{told.get('repo')} · {where}{tag} · {job.finished_at:%Y-%m-%d %H:%M}"))
    with st.expander("Push", icon=":material/cloud_upload:"):
        _draw_form(release)
    job_id = st.session_state.get("releases.push_job")
    if job_id is not None:
        pushed = follow_job(job_id, key="releases.push")
        if pushed is not None and pushed.status == "done":
            _draw_difference(pushed)


def _draw_form(release: Release) -> None:
    first, second = st.columns(2)
    first.text_input("Repository", key="releases.repo", placeholder="USER/NAME")
    way = second.selectbox("As", list(WAYS), format_func=WAYS.__getitem__, key="releases.push_way")
    if way == "branch":
        st.text_input("Branch", key="releases.branch")
    st.checkbox("Public, where the repository is new", key="releases.public")
    with st.container(horizontal=True):
        st.button("Compare", key="releases.compare", on_click=actions.push, args=(release.id, True))
        st.button(
            "Push",
            type="primary",
            key="releases.push_start",
            on_click=actions.push,
            args=(release.id, False),
        )
    st.caption("The token comes from the environment of the server (HF_TOKEN), never from a page.")


def _draw_difference(job: Job) -> None:
    told = job.result or {}
    counts = {
        word: len(told.get(word, ())) for word in ("added", "changed", "removed", "unchanged")
    }
    st.caption(", ".join(f"{word} {count:,}" for word, count in counts.items()))
    lines = [
        f"{sign} {path}"
        for sign, word in (("+", "added"), ("~", "changed"), ("-", "removed"))
        for path in told.get(word, ())
    ]
    if lines:
        st.code("\n".join(lines), language=None, height=200)
