"""Train: choose a release and settings, start the job, watch its loss; checkpoints so far."""

import streamlit as st

from app import training
from app.components.curves import draw_curves
from app.components.jobs import follow_job
from app.components.page import draw_empty, draw_heading, draw_labels
from app.components.plain import plain
from app.components.scores import model_name
from db import jobs
from db.checkpoints import list_checkpoints
from db.releases import list_releases
from db.store import open_store
from db.tables import Checkpoint, Release
from trainer.objectives.names import OBJECTIVES
from trainer.settings import TrainSettings


def draw_release(release: Release) -> None:
    groups = release.counts.get("groups", 0)
    reviews = release.filter.get("reviews", "not-rejected")
    with st.container(horizontal=True, vertical_alignment="center"):
        st.caption(plain(f"{groups:,} groups · reviews: {reviews}"), width="content")
        draw_labels(offline=release.offline)


def draw_form(releases: list[Release]) -> None:
    default = TrainSettings()
    by_id = {release.id: release for release in releases}
    chosen = st.selectbox(
        "Release",
        list(by_id),
        format_func=lambda n: f"release {n} · {by_id[n].name}",
        key="train.release",
    )
    if chosen is not None:
        draw_release(by_id[chosen])
    first, second = st.columns(2)
    first.text_input("Base model", default.base_model, key="train.base_model")
    names = list(OBJECTIVES)
    second.selectbox(
        "Objective",
        names,
        index=names.index(default.objective),
        format_func=lambda name: OBJECTIVES[name].label,
        key="train.objective",
        help="What is contrasted: passages P, instructions I, instruction-aware queries IQ.",
    )
    columns = st.columns(4)
    columns[0].number_input("Epochs", 0.1, 1000.0, default.epochs, key="train.epochs")
    columns[1].number_input(
        "At most steps", 0, 10_000_000, 0, key="train.max_steps", help="0: as the epochs say."
    )
    columns[2].number_input(
        "At most seconds", 0.0, 1e7, 0.0, step=30.0, key="train.max_seconds", help="0: no limit."
    )
    columns[3].number_input(
        "Groups per batch", 2, 4096, default.rows_per_batch, key="train.rows_per_batch"
    )
    with st.expander("More settings"):
        columns = st.columns(3)
        columns[0].number_input(
            "Learning rate",
            0.0,
            1.0,
            default.learning_rate,
            format="%.2e",
            step=1e-5,
            key="train.learning_rate",
        )
        columns[1].number_input(
            "Temperature",
            0.001,
            10.0,
            default.temperature,
            format="%.3f",
            step=0.01,
            key="train.temperature",
        )
        columns[2].number_input(
            "Held-out share", 0.0, 0.9, default.held_out, step=0.05, key="train.held_out"
        )
        columns[0].number_input(
            "Query tokens", 1, 8192, default.query_tokens, key="train.query_tokens"
        )
        columns[1].number_input(
            "Passage tokens", 1, 32_768, default.passage_tokens, key="train.passage_tokens"
        )
        columns[2].number_input("Seed", 0, 2**31 - 1, default.seed, key="train.seed")
        st.text_input("Template", default.template, key="train.template")
    st.button("Train", type="primary", key="train.start", on_click=training.start)


def draw_checkpoints(found: list[Checkpoint]) -> None:
    st.subheader("Checkpoints", anchor=False)
    st.dataframe(
        [
            {
                "Checkpoint": each.id,
                "Name": model_name(each.path),
                "Base": each.base_model,
                "Objective": (each.config.get("settings") or each.config).get("objective"),
                "Release": each.release_id,
                "Job": each.job_id,
                "Made": each.created_at,
            }
            for each in found
        ],
        hide_index=True,
        column_config={"Made": st.column_config.DatetimeColumn(format="YYYY-MM-DD HH:mm")},
    )


with open_store().read() as session:
    releases = list_releases(session)
    checkpoints = list_checkpoints(session)
    trainings = jobs.list_jobs(session, kind="train", limit=20)
draw_heading(
    "Train", "Fine-tune an embedding model on a release; the job goes on without this page."
)
if not releases:
    draw_empty(
        "No release yet.",
        "Training reads a release: make one of the groups that were kept.",
        view="releases",
        link="Releases",
        command="inf export --dataset NAME --out DIR --format parquet",
    )
else:
    draw_form(releases)
asked = st.query_params.get("job", "")
shown = int(asked) if asked.isdecimal() else (trainings[0].id if trainings else None)
if shown is not None:
    st.subheader("Training", anchor=False)
    if follow_job(shown, key="train.job"):
        draw_curves(shown, key=f"train.curves-{shown}")
if checkpoints:
    draw_checkpoints(checkpoints)
