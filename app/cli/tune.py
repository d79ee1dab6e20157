"""`inf tune`: a small search over the settings of a training."""

import shlex
from typing import Any

import click

from app.access.identity import owner
from app.cli.kit.report import Result, launcher_options, me, ready_store, reporting
from app.cli.train import absolute_release, train
from app.jobs.launching import launch
from app.text.numbers import counted, score
from app.text.remedies import in_commands
from db.errors import BadInput, NotFound
from trainer.launch.tuning import Search, Trial, ranked, run_search
from trainer.settings.experiment_files import with_overrides
from trainer.settings.search import BELOW_GUARD, MEASURES, parse_space
from trainer.settings.settings import parse_settings, split_pairs


def _report(result: Result) -> str:
    names = list(result["space"])
    rows = [["trial", "job", *names, result["measure"], "status"]]
    for trial in result["trials"]:
        values = [str(trial["params"][name]) for name in names]
        value = "" if trial["value"] is None else score(trial["value"])
        status = "below the guard" if trial["below_guard"] else trial["status"]
        rows.append([str(trial["number"]), str(trial["job_id"]), *values, value, status])
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    table = "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    )
    if result["best"] is None:
        return f"{table}\n\nno trial ended with a value: `inf jobs show` gives the reasons"
    return (
        f"{table}\n\nbest: {result['best']}\nIt was selected on the groups held out of the "
        "training: report it on a benchmark that took no part in the search."
    )


@click.command()
@click.option("--release", required=True, help="A release: folder or id.")
@click.option("--name", required=True, help="Name of the search; the same name continues it.")
@click.option(
    "--search",
    "space",
    multiple=True,
    required=True,
    metavar="KEY=SPACE",
    help="A setting to vary: KEY=VALUE,VALUE or KEY=LOW..HIGH, with :log evenly in orders of "
    "magnitude; may be repeated.",
)
@click.option("--trials", type=click.IntRange(1), default=12, show_default=True, help="In all.")
@click.option(
    "--parallel",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="How many trainings may be queued or running at a time.",
)
@click.option(
    "--measure",
    type=click.Choice(MEASURES),
    default="strict",
    show_default=True,
    help="What the trained model is compared by; with guard=FOLDER, trials that fall by more than "
    "guard_drop there come after all others.",
)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True)
@click.option("--experiment", help="Settings of every trial, as for `inf train`.")
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]…")
@launcher_options
@reporting(_report)
def tune(
    release: str,
    name: str,
    space: tuple[str, ...],
    trials: int,
    parallel: int,
    measure: str,
    seed: int,
    experiment: str | None,
    settings: tuple[str, ...],
) -> Result:
    """Search training settings: each trial is a training job, on this machine or on Ray.

    Stopping the command leaves queued trainings; the same command continues the search.
    """
    try:
        fixed = with_overrides(experiment, split_pairs(settings))
        parsed = parse_settings(fixed)
        dimensions = parse_space(space)
    except (BadInput, NotFound) as error:
        raise click.UsageError(in_commands(str(error))) from error
    if both := sorted(set(fixed) & set(dimensions)):
        raise click.UsageError(f"{both[0]} is given and searched: leave one of them out")
    if measure == "guard-ndcg@10" and not parsed.guard:
        raise click.UsageError("--measure guard-ndcg@10 needs guard=FOLDER")
    store = ready_store()
    search = Search(
        name=name,
        release=absolute_release(release),
        space=dimensions,
        texts=space,
        fixed=fixed,
        measure=measure,
        seed=seed,
    )
    seen: dict[int, str] = {}

    def watch(known: list[Trial]) -> None:
        for trial in known:
            if seen.get(trial.job_id) != trial.status:
                seen[trial.job_id] = trial.status
                value = "" if trial.value is None else f", {measure} {score(trial.value)}"
                click.echo(f"trial {trial.number}: {trial.status}{value}", err=True)

    def launch_one(config: dict[str, Any]) -> int:
        return launch(store, "train", config, actor=owner(me()))

    found = ranked(
        run_search(store, search, trials=trials, parallel=parallel, launch=launch_one, watch=watch)
    )
    best = found[0] if found[0].value is not None else None
    return {
        "name": name,
        "measure": measure,
        "space": list(dimensions),
        "trials": [_row(trial) for trial in found],
        "summary": counted(len(found), "trial"),
        "best": None if best is None else _command(search, best),
        "best_settings": None if best is None else {**fixed, **best.params},
    }


def _row(trial: Trial) -> dict[str, Any]:
    is_below = trial.value is not None and trial.value < -BELOW_GUARD / 2
    value = trial.value + BELOW_GUARD if is_below and trial.value is not None else trial.value
    return {
        "number": trial.number,
        "job_id": trial.job_id,
        "status": trial.status,
        "params": trial.params,
        "value": value,
        "below_guard": is_below,
        "error": trial.error,
    }


def _command(search: Search, trial: Trial) -> str:
    pairs = [f"{name}={value}" for name, value in {**search.fixed, **trial.params}.items()]
    return shlex.join(["inf", "train", "--release", search.release, "--out", "DIR", *pairs])


@click.group()
def trainings() -> None:
    """Train models on releases, or search the settings of their trainings."""


trainings.add_command(train, "create")
trainings.add_command(tune, "search")
