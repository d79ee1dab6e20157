"""The Train page: choose release and settings, start a training, follow it; checkpoints."""

from functools import partial

import streamlit as st

from app.jobs_page.card import follow_job
from app.jobs_page.curves import draw_curves
from app.kit.choice import choose, take_from_url
from app.kit.frame.dataset import chosen_dataset
from app.kit.page import (
    draw_drawer,
    draw_empty,
    draw_hand_off,
    draw_heading,
    draw_labels,
    draw_table,
)
from app.text.plain import plain
from app.text.reviews import reviews_words
from app.training import actions
from app.training.form import draw_form
from app.training.frontier import draw_frontier
from app.training.sweeps import draw_leaderboard, draw_sweep, job_name
from app.training.watched import draw_watched
from db.errors import NotFound
from db.jobs import jobs
from db.outcome.checkpoints import list_checkpoints
from db.release.overview import licence_of_card, release_overview
from db.release.releases import list_releases
from db.store.store import open_store
from db.tables import Checkpoint, Job, Release
from trainer.report.compared.measures import model_name

TRAININGS = 20


def draw_release(release: Release) -> None:
    """Size, splits, licence and approved share of the chosen release."""
    with open_store().read() as session:
        found = release_overview(session, release)
    groups = release.counts.get("groups", 0)
    reviews = release.filter.get("reviews", "not-rejected")
    splits = ", ".join(f"{name} {count:,}" for name, count in found.splits.items())
    share = found.approved_share
    parts = [
        f"{groups:,} groups",
        f"splits: {splits}" if splits else "",
        f"licence: {licence_of_card(release.card) or 'not stated'}",
        "" if share is None else f"{share:.0%} approved by a person",
        f"groups: {reviews_words(reviews)}",
    ]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(plain(" · ".join(filter(None, parts))), width="content")
        draw_labels(offline=release.offline)


def without_trainings_on(found: list[Job], releases: list[Release]) -> list[Job]:
    """The trainings but for those on these releases; a folder may stand for a release.

    So one on a folder that is no release of the store shows whatever dataset is chosen.
    """
    names = {str(name) for each in releases for name in (each.id, each.path)}
    return [job for job in found if str(job.config.get("release")) not in names]


def without_releases(found: list[Checkpoint], releases: list[Release]) -> list[Checkpoint]:
    """The checkpoints but for those trained on these releases."""
    ids = {each.id for each in releases}
    return [each for each in found if each.release_id not in ids]


def draw_new(releases: list[Release]) -> None:
    by_id = {release.id: release for release in releases}
    take_from_url("train.release", "release", {str(number): number for number in by_id})
    chosen = st.selectbox(
        "Release",
        list(by_id),
        format_func=lambda n: f"release {n} · {by_id[n].name}",
        key="train.release",
    )
    release = by_id[chosen] if chosen is not None else releases[0]
    draw_release(release)
    settings = draw_form()
    found = None if settings is None else actions.estimate_for(settings, release.id)
    if found is not None and not found.fits:
        st.error("This training cannot fit into the available memory. Choose a smaller model.")
    with st.container(key="train-launch", horizontal=True, vertical_alignment="center"):
        st.button(
            "Train",
            type="primary",
            key="train.start",
            on_click=actions.start,
            args=(release.id,),
            disabled=found is None or not found.fits,
        )
        st.button(
            "Measure memory and time",
            key="train.estimate",
            on_click=actions.start_estimate,
            args=(release.id,),
            disabled=found is None or not found.fits,
            help="Runs a few steps as a job, without training.",
        )
        if found is not None:
            st.caption(plain(actions.estimate_text(found)), width="stretch")
    if settings is not None:
        with st.expander("Equivalent file and command"):
            st.code(actions.as_toml(settings), language="toml")
            st.code(actions.as_command(settings, release.id), language=None, wrap_lines=True)
        draw_drawer(
            "Sweep: several trainings",
            partial(draw_sweep, release.id, settings),
            key="train.sweep_drawer",
            field="train.sweep_name",
        )


def with_linked_training(trainings: list[Job]) -> list[Job]:
    """The latest trainings and the one that the URL names."""
    watched = st.query_params.get("job", "")
    if not watched.isdecimal() or int(watched) in {job.id for job in trainings}:
        return trainings
    try:
        with open_store().read() as session:
            older = jobs.get_job(session, int(watched))
    except NotFound:
        return trainings
    return [*trainings, older] if older.kind == "train" else trainings


def draw_after_training(job: Job) -> None:
    """The link to the comparison of the trained model with its base."""
    for each in checkpoints:
        if each.job_id == job.id:
            draw_hand_off("evaluations", "Compare with its base", checkpoint=each.id)


def draw_watch(trainings: list[Job]) -> None:
    """One training and its curves, with those of others for comparison."""
    st.subheader("Progress", anchor=False)
    names = {job.id: job_name(job) for job in with_linked_training(trainings)}
    left, right = st.columns(2)
    with left:
        shown = choose(
            "Training",
            list(names),
            key="train.watched",
            parameter="job",
            ident=lambda job_id: job_id,
            name=lambda job_id: names[job_id],
        )
    rest = [job_id for job_id in names if job_id != shown]
    others = []
    if rest:
        others = right.multiselect(
            "Compare with other trainings",
            rest,
            format_func=lambda job_id: names[job_id],
            key="train.others",
        )
    if job := follow_job(shown, key="train.job"):
        draw_after_training(job)
        draw_curves([shown, *others], key="train.curves", names=names)
        draw_watched(job)


def draw_checkpoints(found: list[Checkpoint]) -> None:
    st.subheader("Checkpoints", anchor=False)
    draw_table(
        [
            {
                "Checkpoint": each.id,
                "Name": model_name(each.path),
                "Base": each.base_model,
                "Objective": (each.config.get("settings") or each.config).get("objective"),
                "Release": each.release_id,
                "Offline data": bool((each.summary.get("release") or {}).get("offline")),
                "Job": each.job_id,
                "Created": each.created_at,
            }
            for each in found
        ],
        column_config={"Created": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm")},
    )


dataset = chosen_dataset()
with open_store().read() as session:
    releases = [] if dataset is None else list_releases(session, dataset.id)
    elsewhere = [each for each in list_releases(session) if each not in releases]
    checkpoints = without_releases(list_checkpoints(session), elsewhere)
    found = jobs.list_jobs(session, kind="train", limit=actions.MAX_LISTED_JOBS)
trainings = without_trainings_on(found, elsewhere)[:TRAININGS]
draw_heading(
    "Train", "Fine-tune an embedding model on a release. The job continues if this page is closed."
)
if not releases:
    draw_empty(
        "No release yet.",
        "Training reads a release. Create one from the groups that were kept.",
        view="releases",
        link="Releases",
        command="inf releases create NAME --out DIR --format parquet",
    )
else:
    is_new = not trainings or "release" in st.query_params
    draw_drawer(
        "New training",
        partial(draw_new, releases),
        key="train.new",
        field="train.base_model",
        icon=":material/add:",
        is_open=is_new,
    )
if trainings:
    draw_watch(trainings)
draw_leaderboard()
draw_frontier()
if checkpoints:
    draw_checkpoints(checkpoints)
