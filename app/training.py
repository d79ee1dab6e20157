"""What the Train page's buttons do: check the settings, queue the training."""

import streamlit as st

from app.actions import launch_job
from app.visit import acting, action
from db.errors import BadInput
from trainer.settings import TrainSettings, parse_settings

SHOWN = (
    "base_model",
    "objective",
    "temperature",
    "template",
    "epochs",
    "max_steps",
    "max_seconds",
    "rows_per_batch",
    "learning_rate",
    "held_out",
    "query_tokens",
    "passage_tokens",
    "seed",
)


def chosen_settings() -> TrainSettings:
    """The settings as the form stands. Raises BadInput naming the setting."""
    state = st.session_state
    given = {name: state[f"train.{name}"] for name in SHOWN if f"train.{name}" in state}
    return parse_settings({name: value for name, value in given.items() if value is not None})


@action
def start() -> None:
    """Queue the training that the form describes."""
    acting("train")
    settings = chosen_settings()
    release = st.session_state.get("train.release")
    if release is None:
        raise BadInput("no release: make one on the page Releases")
    config = {"release": str(release), "settings": settings.as_dict()}
    job_id = launch_job("train", config, what=f"Training with {settings.objective}")
    st.query_params["job"] = str(job_id)
