"""The `inf analyze …` command that reproduces a stored analysis or a page's figures. Pure."""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from analysis.request import REQUESTS
from db.requests import arguments_of


def analysis_command(kind: str, config: Mapping[str, Any], run_ids: Sequence[int | None]) -> str:
    """The command that reproduces an analysis of this kind and config, also of an earlier version.

    `run_ids` are the runs of its corpora: for a single dataset the command names the run, so that
    it does not pick a later one.
    """
    model = REQUESTS[kind]
    given = {name: config[name] for name in model.model_fields if config.get(name) is not None}
    if config.get("run") is not None:
        given.setdefault("runs", [config["run"]])
    request = model.model_construct(**given)  # as it is stored, also what would be refused today
    runs = {run_id for run_id in run_ids if run_id is not None}
    if not request.runs and len(request.datasets) == 1 and len(runs) == 1:
        request = request.model_copy(update={"runs": tuple(runs)})
    return shlex.join(["inf", "analyze", kind.replace("_", "-"), *arguments_of(request), "--json"])


def agreement_command(study_id: int, options: Sequence[str]) -> str:
    """The command that reproduces the Agreement page with these filters."""
    return shlex.join(["inf", "analyze", "agreement", "--study", str(study_id), *options, "--json"])
