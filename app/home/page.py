"""Home page: counts of the store, the next step, running jobs."""

import streamlit as st

from app.access.permissions import NEEDS
from app.access.scope import begin_page
from app.access.session_user import current_user
from app.home.own_items import draw_own_items
from app.home.path import Step, next_step, path_of
from app.jobs.card import follow_job
from app.kit.page import draw_heading, draw_link
from app.text.numbers import counted
from db.jobs import jobs
from db.outcome.overview import Overview, overview
from db.store.store import open_store


def draw_counts(found: Overview) -> None:
    numbers = (
        ("Pairs", found.pairs, f"in {counted(found.datasets, 'dataset')}"),
        ("Groups kept", found.kept, f"of {found.kept + found.dropped:,} finished"),
        ("Judgments", found.judgments, f"{found.simulated_judgments:,} simulated"),
        ("Releases", found.releases, f"{counted(found.reviews, 'group')} reviewed"),
        ("Checkpoints", found.checkpoints, counted(found.evaluations, "evaluation")),
    )
    with st.container(horizontal=True, gap="small"):
        for label, number, more in numbers:
            with st.container(border=True, width=150):
                st.metric(label, f"{number:,}")
                st.caption(more)


def draw_step(step: Step, *, is_next: bool) -> None:
    icon = ":material/check_circle:" if step.done else ":material/radio_button_unchecked:"
    colour = "green" if step.done else ("primary" if is_next else "gray")
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.markdown(f":{colour}[{icon}]", width="content")
        draw_link(step.view, label=step.title)
        st.caption(step.state if step.done else step.todo, width="stretch")


user = current_user()
assert user is not None
if not NEEDS["jobs"].is_met(user):
    draw_heading(f"Welcome, {user.name}", "Judge which passage answers an instruction best.")
    draw_link("judge", label="Go to your items", icon=":material/gavel:")
    draw_own_items()
    st.stop()

begin_page(user, "jobs")  # "any" is met by one right, and would then count everything
with open_store().read() as session:
    found = overview(session)
    running = jobs.list_jobs(session, statuses=("running", "queued"), limit=3)
    failed = jobs.list_jobs(session, statuses=("failed", "lost"), limit=1)
draw_heading(
    "Home",
    "From real query and passage pairs to trustworthy data and a model that follows instructions.",
    offline=found.offline_runs > 0,
    simulated=found.simulated_judgments > 0,
)
draw_counts(found)
draw_own_items()
steps = path_of(found)
after = next_step(steps)
with st.container(border=True):
    if after is None:
        st.markdown("**All steps are done.** See how the models perform.")
        draw_link("evaluations", label="Open", icon=":material/arrow_forward:")
    else:
        st.markdown(f"**Next: {after.title}** — {after.todo}")
        draw_link(after.view, label="Open", icon=":material/arrow_forward:")
        st.code(after.command, language=None, wrap_lines=True)
for job in running:
    follow_job(job.id, key=f"home.job-{job.id}")
if failed:
    draw_link(
        "jobs",
        label=f"Failed or lost jobs: {found.jobs_failed:,}",
        icon=":material/error:",
    )
st.subheader("The path", anchor=False)
for step in steps:
    draw_step(step, is_next=step is after)
