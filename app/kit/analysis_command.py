"""The `inf analyze …` command that reproduces a stored analysis or a page's figures. Pure."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

COMMANDS = {
    "diversity": "diversity",
    "coverage": "coverage",
    "near_duplicates": "near-duplicates",
    "contamination": "contamination",
}
MANY = {
    "datasets": "--dataset",
    "sources": "--source",
    "runs": "--run",
    "published": "--corpus",
    "texts": "--texts",
    "against": "--against",
    "against_datasets": "--against-dataset",
}
ONE = {
    "run": "--run",
    "model": "--model",
    "sample": "--sample",
    "repeats": "--repeats",
    "seed": "--seed",
    "onto": "--onto",
    "fit": "--fit",
    "paraphrase_threshold": "--paraphrase-threshold",
}


def analysis_command(kind: str, config: Mapping[str, Any], run_ids: Sequence[int | None]) -> str:
    """The command that reproduces an analysis of this kind and config.

    `run_ids` are the runs of its corpora: for a single dataset the command names the run, so that
    it does not pick a later one.
    """
    arguments = ["inf", "analyze", COMMANDS[kind]]
    for name, option in MANY.items():
        for value in config.get(name) or ():
            arguments += [option, str(value)]
    settings = dict(config)
    runs = {run_id for run_id in run_ids if run_id is not None}
    is_named = settings.get("run") is not None or settings.get("runs")
    if not is_named and len(config.get("datasets") or ()) == 1 and len(runs) == 1:
        settings["run"] = runs.pop()
    for name, option in ONE.items():
        if settings.get(name) is not None:
            arguments += [option, str(settings[name])]
    if config.get("pairs"):
        arguments.append("--pairs")
    if (groups := config.get("groups") or "kept") != "kept":
        arguments += ["--groups", str(groups)]
    return shlex.join([*arguments, "--json"])


def agreement_command(study_id: int, options: Sequence[str]) -> str:
    """The command that reproduces the Agreement page with these filters."""
    return shlex.join(["inf", "analyze", "agreement", "--study", str(study_id), *options, "--json"])
