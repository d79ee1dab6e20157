"""The Train page: choose release and settings, start a training, follow it; checkpoints."""

from contextlib import suppress
from functools import partial

import streamlit as st

from app.access.session_user import require_permission
from app.jobs_page.actions import read_job
from app.jobs_page.card import LIVE, draw_failure, follow_job
from app.jobs_page.curves import draw_curves
from app.kit.choice import choose, keep_in_url, take_from_url, take_many_from_url
from app.kit.frame.dataset import chosen_dataset
from app.kit.menu import may_open
from app.kit.page import (
    draw_drawer,
    draw_empty,
    draw_hand_off,
    draw_heading,
    draw_labels,
    draw_table,
)
from app.operations import models, trainings
from app.operations.models import ModelRow
from app.operations.trainings import TrainableRelease, TrainingRow
from app.releases.push import draw_push
from app.text.plain import plain
from app.text.reviews import reviews_words
from app.training import actions
from app.training.form import draw_form
from app.training.frontier import draw_frontier
from app.training.sweeps import draw_sweep, draw_trainings, job_name
from app.training.watched import draw_result, draw_watched
from app.training.wording import forecast_text
from db.errors import NotFound
from trainer.launch.request import TrainStart
from trainer.settings.settings import parse_settings

TRAININGS = 20


def draw_release(release: TrainableRelease) -> None:
    """Size, splits, licence and approved share of the chosen release."""
    splits = ", ".join(f"{name} {count:,}" for name, count in release.splits.items())
    share = release.approved_share
    parts = [
        f"{release.groups:,} groups",
        f"splits: {splits}" if splits else "",
        f"licence: {release.licence or 'not stated'}",
        "" if share is None else f"{share:.0%} approved by a person",
        f"groups: {reviews_words(release.reviews)}",
    ]
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(plain(" · ".join(filter(None, parts))), width="content")
        draw_labels(offline=release.offline)


def draw_new(names: dict[int, str]) -> None:
    take_from_url("train.release", "release", {str(number): number for number in names})
    chosen = st.selectbox(
        "Release",
        list(names),
        format_func=lambda number: f"release {number} · {names[number]}",
        key="train.release",
    )
    number = chosen if chosen is not None else next(iter(names))
    draw_release(trainings.release(user, number))
    wanted = draw_form(number)
    found = None if wanted is None else trainings.estimate(user, wanted)
    if found is not None and not found.fits:
        st.error("This training cannot fit into the available memory. Choose a smaller model.")
    with st.container(key="train-launch", horizontal=True, vertical_alignment="center"):
        is_impossible = found is None or not found.fits
        st.button(
            "Train",
            type="primary",
            key="train.start",
            on_click=actions.start,
            args=(number,),
            disabled=is_impossible,
        )
        st.button(
            "Measure memory and time",
            key="train.estimate",
            on_click=actions.start,
            args=(number, True),
            disabled=is_impossible,
            help=TrainStart.model_fields["estimate"].description,
        )
        if found is not None:
            st.caption(plain(forecast_text(found)), width="stretch")
    if wanted is not None:
        settings = parse_settings(wanted.settings)
        with st.expander("Equivalent file and command"):
            st.code(actions.as_toml(settings), language="toml")
            command = actions.as_command(settings, number, wanted.workers)
            st.code(command, language=None, wrap_lines=True)
        draw_drawer(
            "Sweep: several trainings",
            partial(draw_sweep, number, wanted),
            key="train.sweep_drawer",
            field="train.sweep_name",
        )


def with_linked_trainings(found: list[TrainingRow]) -> list[TrainingRow]:
    """The latest trainings and those that the URL names."""
    linked = [st.query_params.get("job", ""), *st.query_params.get("others", "").split(",")]
    found = list(found)
    for job_id in {int(name) for name in linked if name.isdecimal()} - {each.id for each in found}:
        with suppress(NotFound):
            found.append(trainings.show(user, job_id))
    return found


def first_watched(found: list[TrainingRow]) -> TrainingRow:
    """The newest training that runs, waits or ended well; the newest of all where none did."""
    return next((each for each in found if each.status in (*LIVE, "done")), found[0])


def draw_watch(found: list[TrainingRow]) -> None:
    """One training and its curves, with those of others for comparison."""
    st.header("Progress", anchor=False)
    above = st.container()
    names = {each.id: job_name(each) for each in with_linked_trainings(found)}
    left, right = st.columns(2)
    with left:
        shown = choose(
            "Training",
            list(names),
            key="train.watched",
            parameter="job",
            ident=lambda job_id: job_id,
            name=lambda job_id: names[job_id],
            default=lambda: first_watched(found).id,
        )
    if found[0].id != shown:
        with above:
            draw_failure(read_job(found[0].id))
    rest = [job_id for job_id in names if job_id != shown]
    others = []
    if rest:
        take_many_from_url("train.others", "others", {str(job_id): job_id for job_id in rest})
        others = right.multiselect(
            "Compare with other trainings",
            rest,
            format_func=lambda job_id: names[job_id],
            key="train.others",
            persist_state="session",  # also after another page
        )
        keep_in_url("others", others)
    if job := follow_job(shown, key="train.job"):
        for each in trained:
            if each.job_id == job.id:
                draw_hand_off("evaluations", "Compare with its base", checkpoint=each.id)
                if may_open(user, "releases"):
                    draw_push("checkpoint", each.id, "Push the model to the Hub", key="train.model")
        draw_result(job)
        draw_curves([shown, *others], key="train.curves", names=names)
        draw_watched(job)


def draw_checkpoints(found: list[ModelRow]) -> None:
    st.header("Checkpoints", anchor=False)
    labels = {
        **{"id": "Checkpoint", "name": "Name", "base_model": "Base", "objective": "Objective"},
        **{"release_id": "Release", "offline": "Offline data", "job_id": "Training"},
    }
    draw_table(
        [each.as_json() for each in found],
        column_order=[*labels, "created_at"],
        column_config={
            **labels,
            "created_at": st.column_config.DatetimeColumn("Created", format="YYYY-MM-DD HH:mm"),
        },
    )


user = require_permission(trainings.RIGHT)
dataset = chosen_dataset()
draw_heading(
    "Train", "Fine-tune an embedding model on a release. The job continues if this page is closed."
)
name = None if dataset is None else dataset.name
releases = trainings.releases(user, name)
trained = list(models.list_some(user, name).data)
newest = list(trainings.list_some(user, name, limit=TRAININGS).data)
if not releases:
    draw_empty(
        "No release yet.",
        "Training reads a release. Create one from the groups that were kept.",
        view="releases",
        link="Releases",
        command="inf releases create NAME --out DIR --format parquet",
    )
else:
    draw_drawer(
        "New training",
        partial(draw_new, releases),
        key="train.new",
        field="train.base_model",
        icon=":material/add:",
        is_open=not newest or "release" in st.query_params,
    )
if newest:
    draw_watch(newest)
    draw_trainings(user, newest)
draw_frontier()
if trained:
    draw_checkpoints(trained)
