"""What the Train page's buttons do: take a preset, check the settings, queue trainings."""

import itertools
import math
import shlex
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import streamlit as st

from app.access.identity import SessionUser
from app.access.session_user import action, require_permission
from app.jobs.actions import launch_job
from app.jobs.card import duration
from app.jobs.launching import chosen_launcher
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
def take_preset() -> None:
    """Fill the form with a row of the paper's tables, or with the defaults."""
    name = st.session_state["train.preset"]
    settings = parse_settings(read_experiment(name) if name else {})
    for field, value in settings.as_dict().items():
        st.session_state[f"train.{field}"] = as_typed(value)
    st.session_state["train.preset_taken"] = True


def as_typed(value: object) -> str:
    """A setting as it stands in its field: `2` and not `2.0`."""
    return str(value).removesuffix(".0") if isinstance(value, float) else str(value)


def chosen_settings() -> TrainSettings:
    """The settings as the form stands. Raises BadInput naming the setting."""
    chosen_workers()
    state = st.session_state
    return parse_settings(
        {name: state[f"train.{name}"] for name in SETTINGS if f"train.{name}" in state}
    )


def as_toml(settings: TrainSettings) -> str:
    """The settings that are not the defaults, as the TOML file that `inf train` reads."""
    lines = []
    for name, value in changed(settings).items():
        if isinstance(value, str):
            text = value.replace("\\", "\\\\").replace('"', '\\"')
            lines.append(f'{name} = "{text}"')
        else:
            lines.append(f"{name} = {value}")
    return "\n".join(lines) or "# the defaults"


def as_command(settings: TrainSettings, release_id: int) -> str:
    """The command that does the same, on the same cluster where there is one."""
    words = [f"{name}={value}" for name, value in changed(settings).items()]
    if (launcher := chosen_launcher()) != LOCAL:
        words += ["--launcher", "ray", "--address", launcher]
        words += ["--workers", str(chosen_workers())] if chosen_workers() > 1 else []
    return shlex.join(["inf", "train", "--release", str(release_id), "--out", "DIR", *words])


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
    """How many processes of the cluster train together; 1 on this machine. Raises BadInput."""
    if chosen_launcher() == LOCAL:
        return 1
    typed = str(st.session_state.get("train.workers", "1")).strip()
    if not typed.isdecimal() or int(typed) < 1:
        raise BadInput(f"workers={typed!r}: a whole number from 1 is needed")
    return int(typed)


def config_of(settings: TrainSettings, release_id: int, **more: str) -> dict[str, Any]:
    """The config of the job."""
    workers = {"workers": chosen_workers()} if chosen_workers() > 1 else {}
    return {"release": str(release_id), "settings": settings.as_dict(), **workers, **more}


def changed(settings: TrainSettings) -> dict[str, Any]:
    """The settings that differ from the defaults."""
    return {k: v for k, v in settings.as_dict().items() if v != SETTINGS[k].default}


def estimate_for(settings: TrainSettings, release_id: int) -> Estimate:
    """What the training will take, going by this store and this machine.

    Of a cluster's memory nothing is known here: there nothing is refused for it.
    """
    with open_store().read() as session:
        groups = int(get_release(session, release_id).counts.get("groups", 0))
        earlier = list_checkpoints(session, limit=50)
    there = available_bytes() if chosen_launcher() == LOCAL else math.inf
    return estimate(settings, groups, earlier, there)


def estimate_words(found: Estimate) -> str:
    """The estimate in a line."""
    parts = [f"about {found.steps:,} steps"]
    if found.seconds is None:
        parts.append("time unknown before the first training of this model here")
    else:
        span = duration(timedelta(seconds=found.seconds))
        parts.append(f"about {span} (by {found.trainings} earlier)")
    if found.least_bytes is not None:
        least, there = found.least_bytes / 1e9, found.available_bytes / 1e9
        known = f"there are {there:.0f} GB" if math.isfinite(there) else "in each process"
        parts.append(f"more than {least:.1f} GB of memory ({known})")
    return " · ".join(parts)


@action
def start(release_id: int) -> None:
    """Queue the training that the form describes. What cannot be never becomes a job."""
    user = require_permission("train")
    settings = chosen_settings()
    _require_trust(user, settings)
    _require_room(settings, release_id)
    config = config_of(settings, release_id)
    job_id = launch_job("train", config, what=f"Training with {settings.objective}")
    st.query_params["job"] = str(job_id)


@action
def start_sweep(release_id: int) -> None:
    """Queue a training for every combination of the chosen objectives, base models and seeds."""
    user = require_permission("train")
    name, grid = chosen_sweep()
    for settings in grid:
        _require_trust(user, settings)
        _require_room(settings, release_id)
    for settings in grid:
        config = config_of(settings, release_id, sweep=name)
        launch_job("train", config, what=f"{settings.objective}, seed {settings.seed},")


def chosen_sweep() -> tuple[str, list[TrainSettings]]:
    """Name and trainings of the sweep as the form stands. Raises BadInput."""
    state = st.session_state
    name = (state["train.sweep_name"] or "").strip()
    if not name:
        raise BadInput("the sweep has no name: give it one, the leaderboard goes by it")
    seeds = [parse_seed(text) for text in state["train.sweep_seeds"]] or [42]
    models = state["train.sweep_models"] or [chosen_settings().base_model]
    return name, combinations(chosen_settings(), state["train.sweep_objectives"], models, seeds)


def combinations(
    settings: TrainSettings, objectives: Sequence[str], models: Sequence[str], seeds: Sequence[int]
) -> list[TrainSettings]:
    """The settings for every combination. Raises BadInput where there are none, or too many."""
    found = [
        parse_settings({**settings.as_dict(), "objective": o, "base_model": m, "seed": s})
        for o, m, s in itertools.product(objectives, models, seeds)
    ]
    if not 1 <= len(found) <= MAX_SWEEP_JOBS:
        raise BadInput(f"{len(found)} trainings: choose 1 to {MAX_SWEEP_JOBS} combinations")
    return found


def parse_seed(text: object) -> int:
    """A seed as it was typed. Raises BadInput."""
    if not str(text).isdecimal():
        raise BadInput(f"seed {text!r}: a whole number is needed")
    return int(str(text))


def _require_trust(user: SessionUser, settings: TrainSettings) -> None:
    """Code of somebody else's runs on this machine only where an admin wants it."""
    if settings.remote_code != "refuse" and not user.may("admin"):
        raise Refused("code that comes with a model is run for an admin only")


def _require_room(settings: TrainSettings, release_id: int) -> None:
    found = estimate_for(settings, release_id)
    if not found.fits:
        raise Refused(
            f"{settings.base_model} needs {estimate_words(found)}: choose a smaller model"
        )
