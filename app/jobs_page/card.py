"""The card of a job: status, progress and buttons, refreshed while the job runs."""

from collections.abc import Mapping
from datetime import datetime, timedelta

import streamlit as st

from analysis.figures.numbers import Cells
from app.access.session_user import current_user, failures_shown
from app.jobs import launching
from app.jobs_page import actions
from app.kit.menu import may_open
from app.kit.page import draw_hand_off, draw_status
from app.operations import jobs as jobs_of
from app.operations.jobs import JobRow
from app.text.numbers import duration
from app.text.plain import plain
from app.text.remedies import in_pages
from db.errors import NotFound
from db.jobs.resources import Part, missing_gpu_warning, parts_of, sum_of
from db.tables import Job, utc_now

LIVE = ("queued", "running")
EVERY_SECONDS = 1.5


def follow_job(job_id: int, *, key: str) -> Job | None:
    """The card of a job, refreshed while it runs; when it ends, the whole page reruns."""
    try:
        job = actions.read_job(job_id)
    except NotFound:
        return None
    every = EVERY_SECONDS if job.status in LIVE else None
    st.fragment(_draw_live, run_every=every)(job_id, job.status, key)
    return job


def _draw_live(job_id: int, status_before: str, key: str) -> None:
    with failures_shown():
        job = actions.read_job(job_id)
        if (status_before in LIVE) != (job.status in LIVE):  # a resumed job needs the refresh again
            st.rerun()
        draw_progress(job, key=key)


def draw_progress(job: Job, *, key: str) -> None:
    """Status, progress bar, message, and the buttons to cancel, resume or run again."""
    with st.container(border=True, key=f"{key}-job"):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**Job {job.id}** · {job.kind}", width="content")
            draw_status("stopping" if job.stop_requested and job.status in LIVE else job.status)
            st.caption(spent(job), width="content")
            st.space("stretch")
            if job.status in LIVE:
                st.button(
                    "Cancel",
                    key=f"{key}.cancel",
                    on_click=actions.cancel,
                    args=(job.id,),
                    disabled=job.stop_requested,
                )
            else:
                if job.status != "done":
                    st.button(
                        "Resume", key=f"{key}.resume", on_click=actions.resume, args=(job.id,)
                    )
                st.button(
                    "Run again",
                    key=f"{key}.again",
                    on_click=actions.run_again,
                    args=(job.id,),
                    help="A new job with the same config.",
                )
        if job.status in LIVE:
            share = min(1.0, job.done / job.total) if job.total else 0.0
            st.progress(share, text=plain(progress_text(job)))
        elif job.error:
            st.text(in_pages(job.error))
            remedy = remedy_of(job)
            code = f" `{job.error_code}`" if job.error_code else ""
            if remedy or code:
                st.caption(plain(remedy) + code)
        if missing := missing_gpu_warning(parts_of(job.resources)):
            st.warning(plain(missing), icon=":material/warning:")


def draw_last_failure(
    kind: str, followed: str, config: Mapping[str, str | int] | None = None
) -> None:
    """The newest job of the kind where it failed, unless the session follows it under this key.

    config: values that the job has in its config, such as its study.
    """
    user = current_user()
    if user is None or not may_open(user, "jobs"):
        return
    job = jobs_of.newest(user, kind, config)
    if job is not None and job.id != st.session_state.get(followed):
        draw_failure(job)


def draw_failure(job: Job) -> None:
    """Why the job failed, what to do, and the way to it; nothing for one that did not fail."""
    if job.status not in ("failed", "lost"):
        return
    error = in_pages(job.error or "").rstrip(".")
    st.warning(
        plain(f"Job {job.id} {job.status}{': ' * bool(error)}{error}. {remedy_of(job)}"),
        icon=":material/error:",
    )
    draw_hand_off("jobs", f"Show job {job.id}", job=job.id)


def remedy_of(job: Job) -> str:
    """What to do about a job that did not end well, in the page's words; "" for others."""
    remedy = in_pages(launching.what_to_do(job))
    return remedy[:1].upper() + remedy[1:]


def progress_text(job: Job) -> str:
    """Message, count and remaining time of a queued or running job."""
    if job.status == "queued":
        return launching.waiting_for(job) or "waiting for a slot"
    count = f"{job.done:,} of {job.total:,}" if job.total else f"{job.done:,} done"
    # training and curation report their own estimate, or that they have none yet
    rest = "" if job.message.endswith(" left") or job.kind == "curate" else remaining(job)
    parts = [job.message, count if job.done or job.total else "", rest]
    return " · ".join(part for part in parts if part) or "starting"


def remaining(job: Job, *, now: datetime | None = None) -> str:
    """The estimated remaining time; "" while there is no progress to extrapolate from."""
    if not job.total or not job.done or job.started_at is None or job.status != "running":
        return ""
    seconds = ((now or utc_now()) - job.started_at).total_seconds()
    left = seconds * max(0, job.total - job.done) / job.done
    return f"about {duration(timedelta(seconds=left))} left"


def used(job: Job) -> str:
    """CPU, memory and GPU use of all processes of the job, as last reported."""
    found = sum_of(parts_of(job.resources))
    if not found:
        return ""
    parts = []
    if job.started_at is not None:
        until = job.finished_at or utc_now()
        seconds = max(1.0, (until - job.started_at).total_seconds())
        now = (
            f"{found['cpus']:.1f} CPU cores now, " if job.status in LIVE and "cpus" in found else ""
        )
        mean = f"{found['cpu_seconds'] / seconds:.1f}"
        parts.append(f"{now}{mean} on average" if now else f"{mean} CPU cores on average")
    parts.append(f"{found['memory_mb']:,.0f} MB memory")
    if "gpus" in found:
        load = f", {found['gpu_percent']} % busy" if "gpu_percent" in found else ""
        parts.append(f"{found['gpus']} GPU, {found['gpu_mb']:,.0f} MB reserved{load}")
    if found["processes"] > 1:
        places = f" on {found['nodes']} nodes" if found["nodes"] > 1 else ""
        parts.append(f"{found['processes']} processes{places} in total")
    return " · ".join(parts)


def part_rows(job: Job) -> list[Cells]:
    """One row per process of the job, by rank; GPU columns only if a process has a GPU."""
    parts = parts_of(job.resources)
    has_gpu = any("gpu" in part or "gpu_missing" in part for part in parts)
    return [
        {
            "Process": number + 1,
            "Where": place_of(part),
            "CPU cores": part.get("cpus"),
            "CPU seconds": part["cpu_seconds"],
            "Memory, MB": part["memory_mb"],
            **(
                {
                    "GPU": part.get("gpu", "missing" if "gpu_missing" in part else "–"),
                    "GPU memory, MB": part.get("gpu_mb"),
                    "GPU busy, %": part.get("gpu_percent"),
                }
                if has_gpu
                else {}
            ),
        }
        for number, part in enumerate(parts)
    ]


def place_of(part: Part) -> str:
    """Host, cluster node and process id."""
    node = f"node {part['node']}" if part.get("node") else ""
    return ", ".join(filter(None, (part.get("host"), node, f"process {part.get('pid')}")))


def spent(job: Job | JobRow) -> str:
    """How long the job ran or has been running; "" before it starts."""
    if job.started_at is None:
        return ""
    return duration((job.finished_at or utc_now()) - job.started_at)
