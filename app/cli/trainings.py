"""`inf trainings`: fine-tune embedding models on releases, alone, in sweeps and in searches.

`inf train` and `inf tune` are short for `create` and `search`.
"""

import functools
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

import click

from app.cli.kit.doors import Noun
from app.cli.kit.options import field_options, request_of, wrong_arguments
from app.cli.kit.report import (
    Launching,
    Result,
    command_actor,
    launched,
    launcher_options,
    lines,
    reporting,
)
from app.cli.kit.table import Column, drawn, sheet
from app.operations import trainings as operations
from app.operations.acting import queued
from app.operations.trainings import TrialRow
from app.text.numbers import counted, score
from app.training.wording import create_command, measured_text
from db.modules import run_module
from trainer.evaluate.intervals import HELD_OUT_INTERVALS
from trainer.launch.request import TrainSearch, TrainStart, TrainSweep
from trainer.report.scored import interval_rows, listed_scores, score_notes, score_rows
from trainer.settings.experiment_files import list_experiments, with_overrides
from trainer.settings.setting import Setting
from trainer.settings.settings import split_pairs
from trainer.settings.table import GROUPS, settings_of

T = TypeVar("T", TrainStart, TrainSweep, TrainSearch)


trainings = Noun("trainings")


def _trained(result: Result) -> str:
    """What came of a training, from the result that its job stores."""
    if measured := result.get("estimate"):
        return f"{measured_text(measured)}\nnext: inf trainings create RELEASE"
    model, recorded = result.get("checkpoint_id"), result.get("recorded")
    of_model = [("recorded", recorded)]
    if recorded is None:
        offline = {True: "yes", False: "no", None: "unknown"}[result["offline"]]
        of_model = [("checkpoint", f"{model} in {result['path']}"), ("made offline", offline)]
    facts = lines(
        *of_model,
        ("steps", result["steps"]),
        ("seconds", f"{result['seconds']:.0f}"),
        ("loss", f"{result['loss_first']:.4f} → {result['loss_last']:.4f}"),
        ("held-out groups", result["held_out"]["groups"]),
    )
    said = [facts]
    if rows := score_rows(result):
        said += ["", sheet(map(vars, rows))]
        if intervals := interval_rows(result):
            said += [sheet(map(vars, intervals)), HELD_OUT_INTERVALS]
        said += [f"note: {note}" for note in score_notes(result)]
    then = "list" if recorded else f"show {model}"
    return "\n".join([*said, f"next: inf models {then}"])


def _score(value: float | None) -> str | None:
    return None if value is None else score(value)


class TrainCommand(click.Command):
    """A command whose help ends with the table of settings and the built-in experiments."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        for group in GROUPS:
            with formatter.section(f"{group} (KEY=VALUE)"):
                formatter.write_dl(
                    [(each.name, _setting_help(each)) for each in settings_of(group)]
                )
        with formatter.section("Built-in experiments"):
            formatter.write_text(", ".join(list_experiments()))


def _setting_help(setting: Setting) -> str:
    default = "" if setting.default == "" else f"default: {setting.default}"
    allowed = f"one of {setting.range_text}" if setting.choices else setting.range_text
    facts = "; ".join(filter(None, (default, allowed)))
    return f"{setting.help} [{facts}]" if facts else setting.help


def training_options(model: type[T]) -> Callable[[Callable[..., Result]], Callable[..., Any]]:
    """Add the options of a training, an experiment and KEY=VALUE; the command takes the request."""

    def decorate(command: Callable[..., Result]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapper(experiment: str | None, settings: tuple[str, ...], **given: Any) -> Result:
            values = {name: given.pop(name) for name in model.model_fields if name in given}
            with wrong_arguments():
                # KEY=VALUE over the experiment's settings
                values["settings"] = with_overrides(experiment, split_pairs(settings))
                wanted = request_of(model, values)
                if not isinstance(wanted, TrainSearch):
                    operations.require_launcher(wanted)
            return command(wanted=wanted, **given)

        experiment = click.option(
            "--experiment",
            help="Settings from a .toml file or a built-in one (rows of Tables 2, 3 and 4); "
            "KEY=VALUE takes precedence.",
        )
        settings = click.argument("settings", nargs=-1, metavar="[KEY=VALUE]…")
        return field_options(model)(experiment(settings(wrapper)))

    return decorate


@trainings.command("create", cls=TrainCommand)
@launched
@training_options(TrainStart)
@reporting(_trained)
def train(wanted: TrainStart, launch: Launching) -> Result:
    """Fine-tune an embedding model on a release, for example with epochs=3 max_seconds=60."""
    if os.environ.get("RANK", "0") != "0" and "MASTER_ADDR" in os.environ:
        command = [sys.executable, *run_module("trainer.launch.follow")]
        follower = subprocess.run(command, check=False)
        sys.exit(follower.returncode)  # started by torchrun: only rank 0 runs the job
    if wanted.out is None and not wanted.estimate:
        raise click.UsageError("give --out: the folder for the checkpoint")
    return operations.create(command_actor(), wanted, launch("train"))


def _queued(result: Result) -> str:
    count = counted(len(result["job_ids"]), "training")
    return f"{count} queued; next: inf trainings list --sweep {shlex.quote(result['name'])}"


@trainings.command("sweep")
@launcher_options
@training_options(TrainSweep)
@reporting(_queued)
def sweep(wanted: TrainSweep) -> operations.SweepStarted:
    """Queue a training for every combination of objectives, base models and seeds."""
    return operations.sweep(command_actor(), wanted, queued)


def _searched(result: Result) -> str:
    columns: list[Column] = [("trial", "number"), ("job", "job_id")]
    columns += [
        (name, lambda trial, key=name: str(trial["params"][key])) for name in result["space"]
    ]
    columns += [(result["measure"], lambda trial: _score(trial["value"]))]
    columns += [("status", lambda row: "below the guard" if row["below_guard"] else row["status"])]
    listed = drawn(columns, result["trials"], empty="no trials")
    if result["best"] is None:
        return f"{listed}\n\nno trial ended with a value: `inf jobs show` gives the reasons"
    return (
        f"{listed}\n\nbest: {result['best']}\nIt was selected on the groups held out of the "
        "training: report it on a benchmark that took no part in the search."
    )


@trainings.command("search")
@launcher_options
@training_options(TrainSearch)
@reporting(_searched)
def tune(wanted: TrainSearch) -> operations.SearchReported:
    """Search training settings: each trial is a training job, on this machine or on Ray.

    Stopping the command leaves queued trainings; the same command continues the search.
    """
    seen: dict[int, str] = {}

    def watch(known: list[TrialRow]) -> None:
        for trial in known:
            if seen.get(trial.job_id) != trial.status:
                seen[trial.job_id] = trial.status
                value = "" if trial.value is None else f", {wanted.measure} {score(trial.value)}"
                click.echo(f"trial {trial.number}: {trial.status}{value}", err=True)

    found = operations.search(command_actor(), wanted, queued, watch)
    best = found.best_settings
    return operations.SearchReported.of(
        found,
        summary=counted(len(found.trials), "trial"),
        best=None if best is None else create_command(wanted.release, best),
    )


def _columns(rows: list[Result]) -> tuple[Column, ...]:
    measures = [name for name in listed_scores({}) if any(row[name] is not None for row in rows)]
    return (
        *("id", "name", ("base", "base_model"), "release", "status"),
        *((name, lambda row, key=name: _score(row[key])) for name in measures),
        *(("model", "checkpoint_id"), ("created", lambda row: row["created_at"][:16])),
    )


trainings.listed(
    operations.list_some,
    click.option("--dataset", help="Without trainings on releases of other datasets."),
    click.option("--sweep", help="Only those of this sweep or search, best first."),
    about="List trainings, newest first, with what they reached on held-out groups.",
    columns=_columns,
    empty="no trainings yet",
)


def _shown(result: Result) -> str:
    facts = [
        (name, result[name])
        for name in ("id", "name", "status", "release", "base_model", "sweep", "error")
        if result[name] is not None
    ]
    number = result["id"]
    if result["result"]:
        return f"{lines(*facts)}\n{_trained(result['result'])}"
    then = f"resume {number}" if result["finished_at"] else f"show {number}"
    return f"{lines(*facts)}\nnext: inf jobs {then}"


trainings.door(
    operations.show,
    text=_shown,
    about="Show one training by its number, which is its job's; --json includes its settings.",
)
