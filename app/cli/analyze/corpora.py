"""The options of `inf analyze` that select texts, and what the commands on them share."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from analysis.files.corpora import read_texts

FILE = click.Path(path_type=Path, dir_okay=False, exists=True)
PLACE = click.Path(path_type=Path, exists=True)


def corpora_options(function: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options that select texts: `--dataset`, `--corpus`, `--texts`, `--run`, …"""
    for option in (
        click.option(
            "--model",
            default=None,
            help="SentenceTransformer by name or path, or openai:MODEL for a model behind an "
            "OpenAI-compatible server (OPENAI_BASE_URL).",
        ),
        click.option(
            "--groups",
            type=click.Choice(["kept", "all", "both"]),
            default="kept",
            show_default=True,
            help="Kept groups, all groups, or both as two corpora (filtered and unfiltered).",
        ),
        click.option(
            "--run",
            type=int,
            multiple=True,
            help="A run (default: the latest of each dataset); repeatable: each is a corpus.",
        ),
        click.option("--texts", multiple=True, type=FILE, help="JSONL with a `text` column."),
        click.option(
            "--corpus",
            multiple=True,
            type=PLACE,
            help="A release's folder, or FollowIR, Promptriever, InstructIR, InF-IR, MAIR, BRIGHT "
            "as published: a file or a folder.",
        ),
        click.option(
            "--source",
            multiple=True,
            help="Only pairs of this source, a corpus each; repeatable.",
        ),
        click.option("--dataset", multiple=True, help="A dataset; repeatable."),
    ):
        function = option(function)
    return function


def corpora_config(
    dataset: tuple[str, ...],
    source: tuple[str, ...],
    corpus: tuple[Path, ...],
    texts: tuple[Path, ...],
    run: tuple[int, ...],
    groups: str,
    model: str | None,
) -> dict[str, Any]:
    if not dataset and not run and not texts and not corpus:
        raise click.UsageError("give --dataset NAME, --run N, --corpus PATH or --texts FILE")
    if source and not dataset:
        raise click.UsageError("--source needs --dataset NAME")
    for path in texts:
        read_texts(path)  # the job reads them again; here bad lines are reported at once
    return {
        "datasets": list(dataset),
        "sources": list(source),
        "published": [str(path.resolve()) for path in corpus],
        "texts": [str(path.resolve()) for path in texts],
        "runs": list(run),
        "groups": groups,
        "model": model,
    }
