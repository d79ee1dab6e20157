"""Actions of the Train page: apply a preset, check the settings, queue trainings."""

import itertools
import math
import shlex
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import streamlit as st

from app.access.identity import SessionUser
from app.access.session_user import action, require_permission
from app.jobs.launching import chosen_launcher
from app.jobs_page.actions import launch_job
from app.text.numbers import counted, duration
from app.training.estimate import Estimate, available_bytes, estimate
from db.errors import BadInput, Refused
from db.jobs import jobs
from db.jobs.jobs import LOCAL
from db.outcome.checkpoints import list_checkpoints
from db.release.releases import get_release
from db.store.store import open_store
from db.tables import Job
from trainer.settings.experiment_files import read_experiment
from trainer.settings.settings import TrainSettings, parse_settings
from trainer.settings.table import SETTINGS

MAX_SWEEP_JOBS = 200
MAX_LISTED_JOBS = 1000


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


def chosen_settings() -> TrainSettings:
    """The settings in the form. Raises BadInput naming the setting."""
    chosen_workers()
    state = st.session_state
    return parse_settings(
        {name: state[f"train.{name}"] for name in SETTINGS if f"train.{name}" in state}
    )


def as_toml(settings: TrainSettings) -> str:
    """The settings that differ from the defaults, as the TOML file `inf train` reads."""
    lines = []
    for name, value in changed(settings).items():
        if isinstance(value, str):
            text = value.replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'{name} = "{text}"')
        else:
            lines.append(f"{name} = {value}")
    return "\n".join(lines) or "# defaults"


def as_command(settings: TrainSettings, release_id: int) -> str:
    """The equivalent command, on the same cluster if one is chosen."""
    arguments = [f"{name}={value}" for name, value in changed(settings).items()]
    if (launcher := chosen_launcher()) != LOCAL:
        arguments += ["--launcher", "ray", "--address", launcher]
        arguments += ["--workers", str(chosen_workers())] if chosen_workers() > 1 else []
    return shlex.join(["inf", "train", "--release", str(release_id), "--out", "DIR", *arguments])


def read_sweep_jobs() -> list[Job]:
    """The trainings that belong to a sweep, newest first."""
    with open_store().read() as session:
        found = jobs.list_jobs(session, kind="train", limit=MAX_LISTED_JOBS)
    return [job for job in found if job.config.get("sweep")]


def read_series(job_id: int, names: Sequence[str]) -> dict[str, list[tuple[int, float]]]:
    """The named metrics of a job as (step, value) pairs."""
    with open_store().read() as session:
        return jobs.metric_series(session, [job_id], names=names).get(job_id, {})


def chosen_workers() -> int:
    """The number of processes on the cluster; 1 on this machine. Raises BadInput."""
    if chosen_launcher() == LOCAL:
        return 1
    typed = str(st.session_state.get("train.workers", "1")).strip()
    if not typed.isdecimal() or int(typed) < 1:
        raise BadInput(
            f"workers={typed!r}: a whole number of at least 1 is needed",
            code="workers_invalid",
        )
    return int(typed)


def config_of(settings: TrainSettings, release_id: int, **more: str) -> dict[str, Any]:
    """The config of the training job."""
    workers = {"workers": chosen_workers()} if chosen_workers() > 1 else {}
    return {"release": str(release_id), "settings": settings.as_dict(), **workers, **more}


def changed(settings: TrainSettings) -> dict[str, Any]:
    """The settings that differ from the defaults."""
    return {k: v for k, v in settings.as_dict().items() if v != SETTINGS[k].default}


def estimate_for(settings: TrainSettings, release_id: int) -> Estimate:
    """Steps, time and memory of the training, estimated from this store and this machine.

    The memory of a cluster is unknown here, so nothing is refused for it.
    """
    with open_store().read() as session:
        groups = int(get_release(session, release_id).counts.get("groups", 0))
        earlier = list_checkpoints(session, limit=50)
    available = available_bytes() if chosen_launcher() == LOCAL else math.inf
    return estimate(settings, groups, earlier, available)


def estimate_text(found: Estimate) -> str:
    """The estimate in one line."""
    parts = [f"about {found.steps:,} steps"]
    if found.seconds is None:
        parts.append("time unknown until this model has been trained once")
    else:
        span = duration(timedelta(seconds=found.seconds))
        parts.append(f"about {span} (from {counted(found.trainings, 'earlier training')})")
    if found.least_bytes is not None:
        least, available = found.least_bytes / 1e9, found.available_bytes / 1e9
        note = f"{available:.0f} GB available" if math.isfinite(available) else "in each process"
        parts.append(f"more than {least:.1f} GB of memory ({note})")
    return " · ".join(parts)


@action
def start(release_id: int) -> None:
    """Queue the training in the form, after every check has passed."""
    user = require_permission("train")
    settings = chosen_settings()
    _require_trust(user, settings)
    _require_memory(settings, release_id)
    config = config_of(settings, release_id)
    job_id = launch_job("train", config, what=f"Training with {settings.objective}")
    st.query_params["job"] = str(job_id)


@action
def start_estimate(release_id: int) -> None:
    """Queue a job that measures memory and time of the training in the form on a few steps."""
    user = require_permission("train")
    settings = chosen_settings()
    _require_trust(user, settings)
    _require_memory(settings, release_id)
    config = config_of(settings, release_id) | {"estimate": True}
    config.pop("workers", None)
    job_id = launch_job("train", config, what="An estimate")
    st.query_params["job"] = str(job_id)


@action
def start_sweep(release_id: int) -> None:
    """Queue a training for every combination of objectives, base models and seeds."""
    user = require_permission("train")
    name, grid = chosen_sweep()
    for settings in grid:
        _require_trust(user, settings)
        _require_memory(settings, release_id)
    for settings in grid:
        config = config_of(settings, release_id, sweep=name)
        launch_job("train", config, what=f"{settings.objective}, seed {settings.seed},")


def chosen_sweep() -> tuple[str, list[TrainSettings]]:
    """Name and trainings of the sweep in the form. Raises BadInput."""
    state = st.session_state
    name = (state["train.sweep_name"] or "").strip()
    if not name:
        raise BadInput(
            "the sweep has no name",
            "enter one, the leaderboard is grouped by it",
            code="sweep_name_missing",
        )
    seeds = [parse_seed(text) for text in state["train.sweep_seeds"]] or [42]
    models = state["train.sweep_models"] or [chosen_settings().base_model]
    return name, combinations(chosen_settings(), state["train.sweep_objectives"], models, seeds)


def combinations(
    settings: TrainSettings, objectives: Sequence[str], models: Sequence[str], seeds: Sequence[int]
) -> list[TrainSettings]:
    """The settings of every combination. Raises BadInput for none or too many."""
    found = [
        parse_settings({**settings.as_dict(), "objective": o, "base_model": m, "seed": s})
        for o, m, s in itertools.product(objectives, models, seeds)
    ]
    if not 1 <= len(found) <= MAX_SWEEP_JOBS:
        raise BadInput(
            f"{len(found)} trainings",
            f"choose 1 to {MAX_SWEEP_JOBS} combinations",
            code="combinations_too_many",
        )
    return found


def parse_seed(text: object) -> int:
    """A typed seed as a number. Raises BadInput."""
    if not str(text).isdecimal():
        raise BadInput(f"seed {text!r}: a whole number is needed", code="seed_invalid")
    return int(str(text))


def _require_trust(user: SessionUser, settings: TrainSettings) -> None:
    """Raise Refused if a user other than an admin wants to run a model's own code."""
    if settings.remote_code != "refuse" and not user.is_admin:
        raise Refused("only an admin can run code that comes with a model", code="admin_only")


def _require_memory(settings: TrainSettings, release_id: int) -> None:
    found = estimate_for(settings, release_id)
    if not found.fits:
        raise Refused(
            f"{settings.base_model} needs {estimate_text(found)}",
            "choose a smaller model",
            code="model_too_large",
        )
