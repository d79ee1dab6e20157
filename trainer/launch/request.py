"""What a training, a sweep and a search take: their requests, and the config of the job `train`.

Loads no torch: the app, the command line and a cluster's launcher read trainings with it.
"""

import itertools
from collections.abc import Mapping
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, field_validator, model_validator

from db.errors import BadInput
from db.requests import Request, absolute, option
from trainer.objectives.names import OBJECTIVES
from trainer.settings.search import MEASURES, Dimension, parse_space
from trainer.settings.settings import ALIASES, parse_settings
from trainer.settings.table import GUARD_MEASURE, SETTINGS

MAX_SWEEP_TRAININGS = 200
RELEASE: Any = option(..., "A release: folder or id.", path="named")
SETTINGS_OF = "Settings by name (training-settings.md); the others are as by default."


class _OfSettings(Request):
    """A request with settings, which are checked as a training reads them."""

    model_config = ConfigDict(extra="forbid", frozen=True, coerce_numbers_to_str=True)

    settings: Mapping[str, Any] = option({}, SETTINGS_OF, names=(), metavar="KEY=VALUE")

    @field_validator("settings")
    @classmethod
    def _usable(cls, given: Mapping[str, Any]) -> Mapping[str, Any]:
        """Files and folders in them as absolute paths, as the job may run elsewhere."""
        parsed, found = parse_settings(given), dict(given)
        for name in ("guard", "mined_corpus"):
            if place := getattr(parsed, name):
                found[name] = absolute(place, "place")
        if any(absolute(name, "named") != name for name, _ in parsed.extra_releases):
            found["more_releases"] = ", ".join(
                f"{absolute(name, 'named')}*{weight:g}" for name, weight in parsed.extra_releases
            )
        return found

    def setting(self, name: str) -> Any:
        """A setting, by default where it is not given; as it was given where it is unreadable."""
        given = {ALIASES.get(key, key): value for key, value in self.settings.items()}
        try:
            return SETTINGS[name].parse(given.get(name, SETTINGS[name].default))
        except BadInput:
            return given[name]


class TrialPlan(BaseModel):
    """Which trial of a search a training is: its number from 1, what it varies, what is searched.

    `identity`: what two calls must have in common to be one search.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    number: int
    params: dict[str, Any]
    identity: dict[str, Any]


class TrainStart(_OfSettings):
    """A training on a release, or a measurement of its memory and time on a few steps."""

    release: str = RELEASE
    out: str | None = option(
        None, "Folder for the checkpoint; must be empty or new.", metavar="DIRECTORY", path="path"
    )
    estimate: bool = option(
        False, "Measure memory and time on a few steps and do not train; nothing is written."
    )
    processes: int = option(
        1,
        "Number of training processes on this machine, one per GPU if there are any; they share "
        "the batch. On several machines: start `trainings create` on each by torchrun.",
        names=("--nproc",),
        ge=1,
    )
    workers: int = option(
        1,
        "Number of training processes on a Ray cluster through Ray Train; each gets INF_RAY_CPUS "
        "CPU cores and INF_RAY_GPUS GPUs.",
        ge=1,
    )
    sweep: str | None = option(None, "The sweep or search that it is part of.", names=())
    tune: TrialPlan | None = option(None, "Which trial of a search it is.", names=())

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if "://" in (self.out or ""):
            raise BadInput(
                f"`out=` is a folder of this machine, and no URL ({self.out})",
                "leave it out: where INF_FILES names a storage, the checkpoint is there, too",
                code="request_invalid",
            )
        if self.workers > 1 and self.processes > 1:
            raise BadInput(
                "`workers=` requires `launcher=ray` and no `nproc=`",
                "on this machine use `nproc=`",
                code="request_invalid",
            )
        if self.workers > 1 and self.estimate:
            raise BadInput(
                "an estimate measures one process", "leave out `workers=`", code="request_invalid"
            )
        return self

    @classmethod
    def stored(cls, config: Mapping[str, Any]) -> Self:
        """A job's config as far as it can be read, unchecked: lists show jobs of every version."""
        known = {
            name: config[name] for name in cls.model_fields if config.get(name) not in (None, "")
        }
        if tune := known.get("tune"):
            known["tune"] = TrialPlan.model_construct(**tune)
        return cls.model_construct(**{"release": "", **known})


class TrainSweep(_OfSettings):
    """Trainings for every combination of objectives, base models and seeds."""

    release: str = RELEASE
    name: str = option(..., "Name of the sweep: its trainings are listed by it.")
    objectives: tuple[str, ...] = option(
        tuple(OBJECTIVES), "Objectives; by default those of Table 3.", names=("--objective",)
    )
    base_models: tuple[str, ...] = option(
        (), "Base models; by default that of the settings.", names=("--base-model",)
    )
    seeds: tuple[int, ...] = option(
        (), "Seeds; by default that of the settings.", names=("--seed",)
    )
    workers: int = option(1, "Processes of each training on a Ray cluster.", ge=1)

    @field_validator("name")
    @classmethod
    def _is_named(cls, given: str) -> str:
        if not given.strip():
            raise BadInput(
                "the sweep has no name",
                "enter one, its trainings are listed by it",
                code="sweep_name_missing",
            )
        return given.strip()

    @model_validator(mode="after")
    def _is_no_crowd(self) -> Self:
        count = len(self.trainings())
        if not 1 <= count <= MAX_SWEEP_TRAININGS:
            raise BadInput(
                f"{count} trainings",
                f"choose 1 to {MAX_SWEEP_TRAININGS} combinations",
                code="combinations_too_many",
            )
        return self

    def trainings(self) -> list[TrainStart]:
        """One of every combination. Raises BadInput for settings that conflict."""
        models = self.base_models or (self.setting("base_model"),)
        seeds = self.seeds or (self.setting("seed"),)
        given = {ALIASES.get(key, key): value for key, value in self.settings.items()}
        return [
            TrainStart(
                release=self.release,
                settings={**given, "objective": objective, "base_model": model, "seed": seed},
                workers=self.workers,
                sweep=self.name,
            )
            for objective, model, seed in itertools.product(self.objectives, models, seeds)
        ]


class TrainSearch(_OfSettings):
    """A search over settings: each trial is a training with `settings` and what varies."""

    release: str = RELEASE
    name: str = option(..., "Name of the search; the same name continues it.", min_length=1)
    search: tuple[str, ...] = option(
        ...,
        "A setting to vary: KEY=VALUE,VALUE or KEY=LOW..HIGH, with :log evenly in orders of "
        "magnitude; may be repeated.",
        metavar="KEY=SPACE",
    )
    trials: int = option(12, "In all.", ge=1)
    parallel: int = option(1, "How many trainings may be queued or running at a time.", ge=1)
    measure: str = option(
        "strict",
        "What the trained model is compared by; with guard=FOLDER, trials that fall by more than "
        "guard_drop there come after all others.",
        choices=MEASURES,
    )
    seed: int = option(0, "Seed of the suggestions.", ge=0)

    @model_validator(mode="after")
    def _agree(self) -> Self:
        given = {ALIASES.get(key, key) for key in self.settings}
        if both := sorted(given & set(self.space)):
            raise BadInput(
                f"{both[0]} is given and searched", "leave one of them out", code="request_invalid"
            )
        if self.measure == GUARD_MEASURE and not self.setting("guard"):
            raise BadInput(f"`measure={GUARD_MEASURE}` needs guard=FOLDER", code="request_invalid")
        return self

    @property
    def space(self) -> dict[str, Dimension]:
        """What varies, by setting. Raises BadInput."""
        return parse_space(self.search)

    @property
    def identity(self) -> dict[str, Any]:
        """What must be equal for two calls to be one search."""
        return {
            "release": self.release,
            "space": sorted(self.search),
            "fixed": dict(sorted((name, str(value)) for name, value in self.settings.items())),
            "measure": self.measure,
        }

    def trial(self, number: int, params: Mapping[str, Any]) -> TrainStart:
        """The training of a trial."""
        plan = TrialPlan(number=number, params=dict(params), identity=self.identity)
        return TrainStart(
            release=self.release,
            settings={**self.settings, **params},
            sweep=self.name,
            tune=plan,
        )
