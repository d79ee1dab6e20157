"""`inf train`: fine-tune an embedding model on a release."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import click

from analysis.files.storage import place_of
from app.cli.kit.report import Result, detach_option, lines, ready_store, reporting, work
from app.jobs.launching import chosen_launcher
from app.text.numbers import score
from app.text.remedies import in_commands
from app.training.measured import measured_text
from app.training.scores import COLUMNS, interval_lines, score_notes, score_rows
from db.errors import BadInput, NotFound
from db.jobs.jobs import LOCAL
from db.modules import run_module
from trainer.settings.experiment_files import list_experiments, with_overrides
from trainer.settings.setting import Setting
from trainer.settings.settings import parse_settings, split_pairs
from trainer.settings.table import GROUPS, settings_of


def _report(result: Result) -> str:
    if measured := result.get("estimate"):
        return measured_text(measured)
    facts = lines(
        ("checkpoint", f"{result['checkpoint_id']} in {result['path']}"),
        ("made offline", {True: "yes", False: "no", None: "unknown"}[result["offline"]]),
        ("steps", result["steps"]),
        ("seconds", f"{result['seconds']:.0f}"),
        ("loss", f"{result['loss_first']:.4f} → {result['loss_last']:.4f}"),
        ("held-out groups", result["held_out"]["groups"]),
    )
    rows = score_rows(result)
    if not rows:
        return facts
    width = max(len(name) for name, *_ in rows)
    table = [
        f"{name:<{width}}" + "".join(f"{'' if v is None else score(v):>19}" for v in values)
        for name, *values in rows
    ]
    head = f"{COLUMNS[0]:<{width}}" + "".join(f"{name:>19}" for name in COLUMNS[1:])
    notes = [f"note: {note}" for note in score_notes(result)]
    return "\n".join([facts, "", head, *table, *interval_lines(result), *notes])


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


@click.command(cls=TrainCommand)
@click.option("--release", required=True, help="A release: folder or id.")
@click.option(
    "--out",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the checkpoint; must be empty or new.",
)
@click.option(
    "--estimate",
    is_flag=True,
    help="Measure memory and time on a few steps and do not train; needs no --out.",
)
@click.option(
    "--experiment",
    help="Settings from a .toml file or a built-in one (rows of Tables 2, 3 and 4); KEY=VALUE "
    "takes precedence.",
)
@click.option(
    "--nproc",
    type=click.IntRange(1),
    default=1,
    help="Number of training processes on this machine, one per GPU if there are any; they "
    "share the batch. On several machines: torchrun --no-python … inf train …",
)
@click.option(
    "--workers",
    type=click.IntRange(1),
    default=1,
    help="With --launcher ray: number of training processes on the cluster through Ray Train; each "
    "gets INF_RAY_CPUS CPU cores and INF_RAY_GPUS GPUs.",
)
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]…")
@detach_option
@reporting(_report)
def train(
    release: str,
    out: Path | None,
    estimate: bool,
    experiment: str | None,
    nproc: int,
    workers: int,
    settings: tuple[str, ...],
    detach: bool,
) -> Result:
    """Fine-tune an embedding model on a release, for example with epochs=3 max_seconds=60."""
    try:
        chosen = with_overrides(experiment, split_pairs(settings))
        parsed = parse_settings(chosen)
    except (BadInput, NotFound) as error:
        raise click.UsageError(in_commands(str(error))) from error
    if workers > 1 and (nproc > 1 or chosen_launcher() == LOCAL):
        raise click.UsageError(
            "--workers requires --launcher ray and no --nproc; on this machine use --nproc"
        )
    if os.environ.get("RANK", "0") != "0" and "MASTER_ADDR" in os.environ:
        follower = subprocess.run(
            [sys.executable, *run_module("trainer.launch.follow")], check=False
        )
        sys.exit(follower.returncode)  # started by torchrun: only rank 0 runs the job
    if out is None and not estimate:
        raise click.UsageError("give --out: the folder for the checkpoint")
    if chosen.get("guard"):
        chosen["guard"] = str(Path(chosen["guard"]).expanduser().resolve())
    if chosen.get("more_releases"):
        chosen["more_releases"] = ", ".join(
            f"{absolute_release(name)}*{weight:g}" for name, weight in parsed.extra_releases
        )
    config: dict[str, Any] = {"release": absolute_release(release), "settings": chosen}
    config |= {"out": str(out.resolve())} if out else {}
    config |= {"estimate": True} if estimate else {}
    config |= {"processes": nproc} if nproc > 1 else {}
    config |= {"workers": workers} if workers > 1 else {}
    return work(ready_store(), "train", config, detach=detach, title="train")


def absolute_release(release: str) -> str:
    """A folder as an absolute path (the job may run elsewhere); a number or URL unchanged."""
    if release.isdigit() and not Path(release).is_dir():
        return release
    place = place_of(release)
    return str(Path(release).resolve() if place.is_local else place)
