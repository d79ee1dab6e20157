"""`inf gpu-check`: check and measure this machine's training; one JSON and one Markdown report."""

import subprocess
import sys
from pathlib import Path

import click

from db.modules import run_module


@click.command("gpu-check")
@click.option(
    "--minutes", type=click.FloatRange(0, min_open=True), default=8.0, help="Time to use."
)
@click.option(
    "--model",
    "models",
    multiple=True,
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Folder of a model whose dtypes, texts and learning are checked too (fp16 copies also); "
    "may be repeated.",
)
@click.option(
    "--out",
    type=click.Path(dir_okay=False, path_type=Path),
    default=Path("gpu-check.json"),
    show_default=True,
    help="The JSON report; the Markdown has the same name with .md.",
)
@click.option("--part", "parts", multiple=True, help="Run this part only; may be repeated.")
@click.option("--small", is_flag=True, help="Small sizes on a GPU too.")
def gpu_check(
    minutes: float, models: tuple[Path, ...], out: Path, parts: tuple[str, ...], small: bool
) -> None:
    """Check and measure training on this machine: GPU or CPU, no network, no store.

    Where little more than PyTorch is installed: python -m trainer.check.gpu_check.
    """
    words = ["--minutes", str(minutes), "--out", str(out)]
    words += [word for model in models for word in ("--model", str(model.resolve()))]
    words += [word for part in parts for word in ("--part", part)]
    words += ["--small"] if small else []
    command = [sys.executable, *run_module("trainer.check.gpu_check"), *words]
    sys.exit(subprocess.run(command, check=False).returncode)
