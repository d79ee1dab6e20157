"""Actions of the Train page: apply a preset, read the form, queue trainings."""

from typing import Any

import streamlit as st

from app.access.session_user import action, notify, require_permission
from app.jobs.launching import chosen_launcher
from app.kit.fields import at_field
from app.operations import trainings
from app.operations.acting import queued
from app.text.numbers import counted
from app.training.wording import create_command
from db.jobs.jobs import LOCAL
from trainer.launch.request import TrainStart, TrainSweep
from trainer.settings.experiment_files import read_experiment
from trainer.settings.settings import TrainSettings, parse_settings
from trainer.settings.table import SETTINGS


@action
def apply_preset() -> None:
    """Fill the form with the chosen experiment, or with the defaults."""
    name = st.session_state["train.preset"]
    settings = parse_settings(read_experiment(name) if name else {})
    for field, value in settings.as_dict().items():
        st.session_state[f"train.{field}"] = as_typed(value)
    st.session_state["train.preset_applied"] = True


def as_typed(value: object) -> str:
    """A value as the text of its field: `2`, not `2.0`."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def wanted_training(release: str = "", *, estimate: bool = False) -> TrainStart:
    """The training in the form, with all its settings. Raises BadInput naming what is wrong."""
    state = st.session_state
    typed = {name: state[f"train.{name}"] for name in SETTINGS if f"train.{name}" in state}
    given = {"release": release, "settings": parse_settings(typed).as_dict(), "estimate": estimate}
    return TrainStart.read(given | ({} if estimate else _workers()))


def wanted_sweep(release_id: int) -> TrainSweep:
    """The sweep in the form. Raises BadInput."""
    state = st.session_state
    return TrainSweep.read(
        {
            "release": str(release_id),
            "name": state["train.sweep_name"] or "",
            "settings": wanted_training().settings,
            "objectives": state["train.sweep_objectives"],
            "base_models": state["train.sweep_base_models"],
            "seeds": state["train.sweep_seeds"],
            **_workers(),
        }
    )


def _workers() -> dict[str, Any]:
    """The number of processes on the cluster, as it is typed; none on this machine."""
    is_local = chosen_launcher() == LOCAL
    return {} if is_local else {"workers": st.session_state.get("train.workers", "1")}


def as_toml(settings: TrainSettings) -> str:
    """The settings that differ from the defaults, as a TOML file of `--experiment`."""
    lines = []
    for name, value in changed(settings).items():
        if isinstance(value, str):
            text = value.replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'{name} = "{text}"')
        else:
            lines.append(f"{name} = {value}")
    return "\n".join(lines) or "# defaults"


def as_command(settings: TrainSettings, release_id: int, workers: int = 1) -> str:
    """The equivalent command, on the same cluster if one is chosen."""
    more = []
    if (launcher := chosen_launcher()) != LOCAL:
        more = ["--launcher", "ray", "--address", launcher]
        more += ["--workers", str(workers)] if workers > 1 else []
    return create_command(str(release_id), changed(settings), more)


def changed(settings: TrainSettings) -> dict[str, Any]:
    """The settings that differ from the defaults."""
    return {k: v for k, v in settings.as_dict().items() if v != SETTINGS[k].default}


@action
def start(release_id: int, estimate: bool = False) -> None:
    """Queue the training in the form, or a measurement of its memory and time on a few steps."""
    user = require_permission(trainings.RIGHT)
    wanted = wanted_training(str(release_id), estimate=estimate)
    job_id = trainings.create(user, wanted, queued)
    what = "An estimate" if estimate else f"Training with {wanted.setting('objective')}"
    notify(f"{what} is queued as job {job_id}.")
    st.query_params["job"] = str(job_id)


@action
@at_field("train.sweep_{}")
def start_sweep(release_id: int) -> None:
    """Queue a training for every combination of objectives, base models and seeds."""
    user = require_permission(trainings.RIGHT)
    wanted = wanted_sweep(release_id)
    ids = trainings.sweep(user, wanted, queued).job_ids
    notify(f"{counted(len(ids), 'training')} queued as jobs {ids[0]} to {ids[-1]}.")
    st.session_state["train.sweep_chosen"] = wanted.name
