"""`inf trainings`: fine-tune embedding models on releases, alone, in sweeps and in searches.

`inf train` and `inf tune` are short for `create` and `search`.
"""

import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, TypeVar

import click

from analysis.files.storage import place_of
from app.cli.kit.options import field_options, request_of
from app.cli.kit.report import (
    Launching,
    Result,
    command_actor,
    launched,
    launcher_options,
    lines,
    reporting,
)
from app.cli.kit.table import paged, table
from app.operations import trainings as operations
from app.operations.acting import queued
from app.operations.trainings import TrainingRow, TrainingShown, TrialRow
from app.text.numbers import counted, score
from app.text.remedies import in_commands
from app.training.wording import create_command, measured_text
from db.errors import BadInput, NotFound
from db.modules import run_module
from db.requests import Request
from db.rows import Listed
from trainer.evaluate.intervals import HELD_OUT_INTERVALS
from trainer.launch.request import TrainSearch, TrainStart, TrainSweep
from trainer.report.scored import (
    IntervalRow,
    MeasuredRow,
    interval_rows,
    listed_scores,
    score_notes,
    score_rows,
)
from trainer.settings.experiment_files import list_experiments, with_overrides
from trainer.settings.setting import Setting
from trainer.settings.settings import parse_settings, split_pairs
from trainer.settings.table import GROUPS, settings_of

R = TypeVar("R", bound=Request)
experiment_option = click.option(
    "--experiment",
    help="Settings from a .toml file or a built-in one (rows of Tables 2, 3 and 4); KEY=VALUE "
    "takes precedence.",
)
settings_argument = click.argument("settings", nargs=-1, metavar="[KEY=VALUE]…")


@click.group()
def trainings() -> None:
    """Train models on releases, sweep or search settings; list and show trainings."""


def _trained(result: Result) -> str:
    """What came of a training, from the result that its job stores."""
    if measured := result.get("estimate"):
        return measured_text(measured)
    model = result["checkpoint_id"]
    facts = lines(
        ("checkpoint", f"{model} in {result['path']}"),
        ("made offline", {True: "yes", False: "no", None: "unknown"}[result["offline"]]),
        ("steps", result["steps"]),
        ("seconds", f"{result['seconds']:.0f}"),
        ("loss", f"{result['loss_first']:.4f} → {result['loss_last']:.4f}"),
        ("held-out groups", result["held_out"]["groups"]),
    )
    said = [facts]
    if rows := score_rows(result):
        names = list(MeasuredRow.__annotations__)
        cells = [
            [row.measure, *(None if v is None else score(v) for v in list(vars(row).values())[1:])]
            for row in rows
        ]
        head = [name.replace("_", " ") for name in names]
        said += ["", table(head, cells, empty=""), *_interval_lines(interval_rows(result))]
        said += [f"note: {note}" for note in score_notes(result)]
    return "\n".join([*said, f"next: inf models show {model}"])


def _interval_lines(rows: list[IntervalRow]) -> list[str]:
    """A line per measure, then how the intervals are made; empty where there are none."""
    found = []
    for row in rows:
        ends = [
            f"base {_with_interval(row.base, row.base_low, row.base_high)}",
            f"trained {_with_interval(row.trained, row.trained_low, row.trained_high)}",
        ]
        if row.gain is not None:
            ends.append(f"gain {_with_interval(row.gain, row.gain_low, row.gain_high)}")
        found.append(f"{row.measure}: {', '.join(ends)}")
    return [*found, HELD_OUT_INTERVALS] if found else []


def _with_interval(value: float | None, low: float | None, high: float | None) -> str:
    return score(value) if low is None else f"{score(value)} [{low:.4f}, {high:.4f}]"


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


@trainings.command("create", cls=TrainCommand)
@field_options(
    TrainStart,
    types={"out": click.Path(file_okay=False)},
)
@experiment_option
@settings_argument
@launched
@reporting(_trained)
def train(
    experiment: str | None, settings: tuple[str, ...], launch: Launching, **given: Any
) -> Result:
    """Fine-tune an embedding model on a release, for example with epochs=3 max_seconds=60."""
    with _wrong_arguments():
        wanted = _from_anywhere(_request(TrainStart, experiment, settings, given))
        if os.environ.get("RANK", "0") != "0" and "MASTER_ADDR" in os.environ:
            command = [sys.executable, *run_module("trainer.launch.follow")]
            follower = subprocess.run(command, check=False)
            sys.exit(follower.returncode)  # started by torchrun: only rank 0 runs the job
        if wanted.out is None and not wanted.estimate:
            raise click.UsageError("give --out: the folder for the checkpoint")
        operations.require_launcher(wanted)
    return operations.create(command_actor(), wanted, launch("train"))


def _queued(result: Result) -> str:
    count = counted(len(result["job_ids"]), "training")
    return f"{count} queued; next: inf trainings list --sweep {shlex.quote(result['name'])}"


@trainings.command("sweep")
@field_options(TrainSweep)
@experiment_option
@settings_argument
@launcher_options
@reporting(_queued)
def sweep(experiment: str | None, settings: tuple[str, ...], **given: Any) -> Result:
    """Queue a training for every combination of objectives, base models and seeds."""
    with _wrong_arguments():
        wanted = _from_anywhere(_request(TrainSweep, experiment, settings, given))
        operations.require_launcher(wanted)
    ids = operations.sweep(command_actor(), wanted, queued)
    return {"name": wanted.name, "job_ids": ids}


def _searched(result: Result) -> str:
    names = result["space"]
    rows = [
        [
            trial["number"],
            trial["job_id"],
            *(str(trial["params"][name]) for name in names),
            None if trial["value"] is None else score(trial["value"]),
            "below the guard" if trial["below_guard"] else trial["status"],
        ]
        for trial in result["trials"]
    ]
    head = ["trial", "job", *names, result["measure"], "status"]
    drawn = table(head, rows, empty="no trials")
    if result["best"] is None:
        return f"{drawn}\n\nno trial ended with a value: `inf jobs show` gives the reasons"
    return (
        f"{drawn}\n\nbest: {result['best']}\nIt was selected on the groups held out of the "
        "training: report it on a benchmark that took no part in the search."
    )


@trainings.command("search")
@field_options(TrainSearch)
@experiment_option
@settings_argument
@launcher_options
@reporting(_searched)
def tune(experiment: str | None, settings: tuple[str, ...], **given: Any) -> Result:
    """Search training settings: each trial is a training job, on this machine or on Ray.

    Stopping the command leaves queued trainings; the same command continues the search.
    """
    with _wrong_arguments():
        wanted = _from_anywhere(_request(TrainSearch, experiment, settings, given))
    seen: dict[int, str] = {}

    def watch(known: list[TrialRow]) -> None:
        for trial in known:
            if seen.get(trial.job_id) != trial.status:
                seen[trial.job_id] = trial.status
                value = "" if trial.value is None else f", {wanted.measure} {score(trial.value)}"
                click.echo(f"trial {trial.number}: {trial.status}{value}", err=True)

    found = operations.search(command_actor(), wanted, queued, watch)
    best = found.best_settings
    return {
        **found.as_json(),
        "summary": counted(len(found.trials), "trial"),
        "best": None if best is None else create_command(wanted.release, best),
    }


def _listed(result: Result) -> str:
    data = result["data"]
    measures = [name for name in listed_scores({}) if any(row[name] is not None for row in data)]
    rows = [
        [
            *(row[name] for name in ("id", "name", "base_model", "release", "status")),
            *(None if row[name] is None else score(row[name]) for name in measures),
            row["checkpoint_id"],
            row["created_at"][:16],
        ]
        for row in data
    ]
    if not rows:
        return "no trainings yet: inf trainings create --release RELEASE --out FOLDER"
    head = ("id", "name", "base", "release", "status", *measures, "model", "created")
    return f"{table(head, rows, empty='')}\nnext: inf trainings show {rows[0][0]}"


@trainings.command("list")
@click.option("--dataset", help="Without trainings on releases of other datasets.")
@click.option("--sweep", help="Only those of this sweep or search, best first.")
@paged()
@reporting(_listed)
def list_(dataset: str | None, sweep: str | None, **page: Any) -> Listed[TrainingRow]:
    """List trainings, newest first, with what they reached on held-out groups."""
    actor = command_actor()
    if sweep is not None:
        return operations.list_sweep(actor, sweep).part(**page)
    return operations.list_some(actor, dataset, **page)


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


@trainings.command("show")
@click.argument("training_id", type=int, metavar="TRAINING")
@reporting(_shown)
def show(training_id: int) -> TrainingShown:
    """Show one training by its number, which is its job's; --json includes its settings."""
    return operations.show(command_actor(), training_id)


@contextmanager
def _wrong_arguments() -> Iterator[None]:
    """What a request refuses is a wrong argument: exit status 2."""
    try:
        yield
    except (BadInput, NotFound) as error:
        raise click.UsageError(in_commands(str(error))) from error


def _request(
    model: type[R], experiment: str | None, settings: tuple[str, ...], given: dict[str, Any]
) -> R:
    """The request of a command's values, with KEY=VALUE over the experiment's settings."""
    chosen = with_overrides(experiment, split_pairs(settings))
    return request_of(model, {**given, "settings": chosen})


T = TypeVar("T", TrainStart, TrainSweep, TrainSearch)


def _from_anywhere(wanted: T) -> T:
    """The request with folders as absolute paths: the job may run elsewhere."""
    settings, parsed = dict(wanted.settings), parse_settings(wanted.settings)
    if parsed.guard:
        settings["guard"] = str(Path(parsed.guard).expanduser().resolve())
    if parsed.more_releases:
        settings["more_releases"] = ", ".join(
            f"{_absolute(name)}*{weight:g}" for name, weight in parsed.extra_releases
        )
    found: dict[str, Any] = {"release": _absolute(wanted.release), "settings": settings}
    if isinstance(wanted, TrainStart) and wanted.out:
        found["out"] = str(Path(wanted.out).resolve())
    return wanted.model_copy(update=found)


def _absolute(release: str) -> str:
    """A folder as an absolute path; a number or URL unchanged."""
    if release.isdigit() and not Path(release).is_dir():
        return release
    place = place_of(release)
    return str(Path(release).resolve() if place.is_local else place)
