"""Jobs page: the list of jobs, and one job in detail with its log, cancel and resume."""

import json
import shlex

import streamlit as st

from app.access.session_user import failures_shown, signed_in_user
from app.jobs.processes import command_of
from app.jobs_page.actions import read_job
from app.jobs_page.card import follow_job, part_rows, spent, used
from app.kit.choice import draw_pages, page_offset
from app.kit.page import draw_empty, draw_heading, draw_table
from app.operations import jobs
from app.text.plain import plain
from app.text.remedies import in_pages
from db.jobs.jobs import LOCAL

COLUMNS = ("id", "kind", "status", "share", "outcome", "spent", "started_by", "created_at")
EVERY_SECONDS = 3.0


@st.fragment(run_every=EVERY_SECONDS)
def draw_list() -> None:
    """The newest jobs, refreshed automatically; selecting a row opens the job below."""
    with failures_shown():
        user = signed_in_user()
        counts = jobs.count(user)
        chosen = st.pills(
            "Status",
            [status for status in jobs.STATUSES if counts.get(status)],
            selection_mode="multi",
            format_func=lambda status: f"{status} {counts.get(status, 0):,}",
            key="jobs.status",
            label_visibility="collapsed",
        )
        listed = jobs.list_some(
            user, statuses=chosen or (), limit=20, offset=page_offset("jobs.page")
        )
        total, found = listed.total, listed.data
        picked = draw_table(
            [
                row.as_json() | {"spent": spent(row), "outcome": in_pages(row.summary)}
                for row in found
            ],
            on_select="rerun",
            selection_mode="single-row",
            key="jobs.table",
            column_order=COLUMNS,
            column_config={
                "id": "Job",
                "kind": "Kind",
                "status": "Status",
                "share": st.column_config.ProgressColumn(
                    "Progress", format="percent", width="small"
                ),
                "outcome": st.column_config.TextColumn("Message or outcome", width=290),
                "spent": "Time",
                "started_by": "Started by",
                "created_at": st.column_config.DatetimeColumn("Queued", format="YYYY-MM-DD HH:mm"),
            },
        )
        draw_pages(total, key="jobs.page")
        for index in picked.selection.rows:
            if index < len(found) and st.query_params.get("job") != str(found[index].id):
                st.query_params["job"] = str(found[index].id)
                st.rerun()


def draw_job(job_id: int) -> None:
    st.header(f"Job {job_id}", anchor=False)
    job = follow_job(job_id, key="jobs.one")
    if job is None:
        st.caption("Job not found.")
        return
    st.fragment(draw_log, run_every=EVERY_SECONDS if job.finished_at is None else None)(job_id)
    st.markdown("**Process**")
    is_queued = job.status == "queued"
    command = "No process yet." if is_queued else shlex.join(["python", *command_of(job)])
    st.code(command, language=None)
    about = [
        f"started by {job.started_by or 'unknown'}",
        f"attempt {job.attempt}" if job.attempt else "",
        f"Ray cluster {job.launcher}" if job.launcher != LOCAL else "",
        "" if is_queued else f"slot {job.slot}" if job.slot else "foreground command",
        f"host {job.host}" if job.host else "",
        f"process {job.pid}" if job.pid else "",
    ]
    st.caption(plain(" · ".join(filter(None, about))))
    st.fragment(draw_used, run_every=EVERY_SECONDS if job.finished_at is None else None)(job_id)
    left, right = st.columns(2)
    with left:
        st.markdown("**Config**")
        config = json.dumps(job.config, indent=1, ensure_ascii=False)
        st.code(config, language="json", wrap_lines=True)
    with right:
        st.markdown("**Result**")
        missing = "–" if job.finished_at else "No result yet."
        text = json.dumps(job.result, indent=1, ensure_ascii=False) if job.result else missing
        st.code(text[:20_000], language="json", wrap_lines=True)


def draw_used(job_id: int) -> None:
    """Resource use in total and, for several processes, of each of them."""
    with failures_shown():
        job = read_job(job_id)
        if usage := used(job):
            st.markdown("**Resources**" if job.finished_at is None else "**Resources at the end**")
            st.caption(plain(usage))
        if len(rows := part_rows(job)) > 1:
            draw_table(rows)


def draw_log(job_id: int) -> None:
    with failures_shown():
        text = jobs.log(signed_in_user(), jobs.JobLog(job_id=job_id))
        st.markdown("**Log**")
        st.code(
            text or "No output yet.",
            language=None,
            wrap_lines=True,
            height=220 if text.count("\n") > 8 else "content",
        )


draw_heading(
    "Jobs",
    "Long-running work. Jobs continue when this page or the app is closed. Tick a job to see its "
    "log, config and result.",
)
if not jobs.count(signed_in_user()):
    draw_empty(
        "No jobs yet.",
        "Start one from its page, for example a curation run, or with any command that takes "
        "`--detach`.",
        view="curate",
        link="Curate",
    )
else:
    draw_list()
    named = st.query_params.get("job", "")
    if named.isdecimal():
        draw_job(int(named))
