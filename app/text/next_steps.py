"""What one does after a command, by its name: a line that ends its report."""

import shlex
from collections.abc import Mapping
from string import Formatter
from typing import Any, Final

# With fields of the result in braces; a command whose report says it by itself is not among them.
NEXT: Final[Mapping[str, str]] = {
    "analyze contamination": "inf releases create DATASET --out FOLDER --leave-out-contaminated",
    "analyze leakage": "inf runs show {run_id}",
    "connections list": "inf connections add NAME --url URL",
    "connections show": "inf connections test {name}",
    "connections test": "inf runs create DATASET --connection {name}",
    "datasets show": "inf runs create {name} --provider NAME",
    "groups show": "inf reviews set {id} --approve",
    "jobs cancel": "inf jobs show {id}",
    "jobs resume": "inf jobs show {id}",
    "jobs show": "inf jobs logs {id}",
    "recipes check": "inf runs create DATASET --recipe {name}",
    "releases show": "inf trainings create --release {id} --out FOLDER",
    "reviews set": "inf groups show {group_id}",
    "runs decide": "inf runs versions {run_id}",
    "studies close": "inf analyze agreement --study {id}",
    "studies gold": "inf studies people {study_id}",
    "studies people": "inf analyze agreement --study {study_id}",
    "studies qualification": "inf studies people {study_id}",
    "studies set": "inf studies show {id}",
    "tokens revoke": "inf tokens list",
}


def filled(then: str, result: Mapping[str, Any]) -> str:
    """A next step with fields of a result, quoted for a shell. Raises KeyError for one it lacks."""
    quoted = {
        name: shlex.quote(value) if isinstance(value, str) else value
        for name, value in result.items()
    }
    return then.format(**quoted)


def next_step(command: str, result: Mapping[str, Any]) -> str:
    """The line that follows a command's report; "" where it has none, as that of a queued job."""
    then = NEXT.get(command.removeprefix("inf "), "")
    if any(name not in result for _, name, _, _ in Formatter().parse(then) if name):
        return ""
    return f"\nnext: {filled(then, result)}" if then else ""
