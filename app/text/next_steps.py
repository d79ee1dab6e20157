"""What one does after a command, by its name: a line that ends its report."""

import re
import shlex
from collections.abc import Mapping
from string import Formatter
from typing import Any, Final

FORMER: Final = {"study": "studies", "users": "people", "evaluate": "evaluations"}
SAID: Final = re.compile(r"^next\b|; next:", re.MULTILINE)
# With fields of the result in braces, of a list its first row's. A report that says its own next
# step, by what it found, has no second one.
NEXT: Final[Mapping[str, str]] = {
    "analyze agreement": "inf studies show STUDY",
    "analyze contamination": "inf releases create DATASET --out FOLDER --leave-out-contaminated",
    "analyze coverage": "inf analyze diversity DATASET",
    "analyze diversity": "inf analyze coverage DATASET",
    "analyze leakage": "inf runs show {run_id}",
    "analyze near-duplicates": "inf releases create DATASET --out FOLDER",
    "analyze validators": "inf runs decide RUN --set validation.judges=NAMES",
    "config": "inf status",
    "connections list": "inf connections add NAME --url URL",
    "connections remove": "inf connections list",
    "connections show": "inf connections test {name}",
    "connections test": "inf runs create DATASET --connection {name}",
    "datasets archive": "inf datasets list",
    "datasets list": "inf datasets show {name}",
    "datasets mine": "inf datasets show DATASET",
    "datasets pull": "inf datasets show NAME",
    "datasets purge": "inf datasets list",
    "datasets show": "inf runs create {name} --provider NAME",
    "datasets unarchive": "inf datasets list",
    "evaluations compare": "inf evaluations show EVALUATION",
    "evaluations list": "inf evaluations compare ID ID",
    "evaluations pin": "inf evaluations create --pin SHA256",
    "evaluations trec": "inf evaluations show EVALUATION",
    "gpu-check": "inf trainings create",
    "groups list": "inf groups show {id}",
    "groups show": "inf reviews set {id} --approve",
    "jobs cancel": "inf jobs show {id}",
    "jobs list": "inf jobs show {id}",
    "jobs resume": "inf jobs show {id}",
    "jobs show": "inf jobs logs {id}",
    "judgments show": "inf judgments list STUDY",
    "models export": "inf models serve MODEL",
    "models index": "inf models search QUERY",
    "models list": "inf models show {id}",
    "models push": "inf models show MODEL",
    "models search": "inf models show MODEL",
    "people add": "inf people list",
    "people delete": "inf people list",
    "people disable": "inf people list",
    "people email": "inf people show NAME",
    "people invite": "inf people members",
    "people list": "inf people members",
    "people rename": "inf people list",
    "people members": "inf people rights NAME",
    "people reset-password": "inf people show NAME",
    "people rights": "inf people members",
    "people role": "inf people show NAME",
    "people show": "inf people list",
    "recipes check": "inf runs create DATASET --recipe {name}",
    "recipes list": "inf recipes show {name}",
    "recipes new": "inf recipes check FOLDER",
    "recipes show": "inf recipes new FOLDER --like NAME",
    "releases diff": "inf releases show RELEASE",
    "releases list": "inf releases show {id}",
    "releases push": "inf releases show RELEASE",
    "releases show": "inf trainings create --release {id} --out FOLDER",
    "reviews bulk": "inf reviews list DATASET",
    "reviews list": "inf groups show {group_id}",
    "reviews set": "inf groups show {group_id}",
    "reviews show": "inf groups show GROUP",
    "reviews validate": "inf reviews list DATASET",
    "reviews verdicts": "inf reviews list DATASET",
    "runs archive": "inf runs list",
    "runs compare-versions": "inf runs use-version RUN VERSION",
    "runs decide": "inf runs versions {run_id}",
    "runs join": "inf runs show RUN",
    "runs list": "inf runs show {id}",
    "runs purge": "inf runs list",
    "runs remove-version": "inf runs versions RUN",
    "runs unarchive": "inf runs list",
    "runs use-version": "inf runs versions RUN",
    "runs versions": "inf runs compare-versions RUN VERSION VERSION",
    "status": "inf serve",
    "store backup": "inf store restore FILE",
    "store check": "inf store backup FILE",
    "store copy": "inf store check",
    "store restore": "inf store check",
    "studies adjudicate": "inf analyze agreement --study STUDY",
    "studies close": "inf analyze agreement --study {id}",
    "studies consensus": "inf analyze agreement --study STUDY",
    "studies estimate": "inf studies plan STUDY",
    "studies export": "inf import --study STUDY --judgments FILE",
    "studies gold": "inf studies people {study_id}",
    "studies judge": "inf analyze agreement --study STUDY",
    "studies list": "inf studies show {id}",
    "studies people": "inf analyze agreement --study {study_id}",
    "studies plan": "inf studies create",
    "studies qualification": "inf studies people {study_id}",
    "studies set": "inf studies show {id}",
    "studies template": "inf studies gold STUDY --file FILE",
    "studies thresholds": "inf runs decide RUN",
    "studies work": "inf studies people STUDY",
    "tokens list": "inf tokens revoke {id}",
    "tokens revoke": "inf tokens list",
    "trainings list": "inf trainings show {id}",
    "trainings search": "inf trainings list",
    "webhooks add": "inf webhooks test {id}",
    "webhooks deliveries": "inf webhooks test WEBHOOK",
    "webhooks enable": "inf webhooks deliveries {id}",
    "webhooks list": "inf webhooks deliveries {id}",
    "webhooks remove": "inf webhooks list",
    "webhooks show": "inf webhooks test {id}",
    "webhooks test": "inf webhooks deliveries {id}",
}


def filled(then: str, result: Mapping[str, Any]) -> str:
    """A next step with fields of a result, quoted for a shell. Raises KeyError for one it lacks."""
    quoted = {
        name: shlex.quote(value) if isinstance(value, str) else value
        for name, value in result.items()
    }
    return then.format(**quoted)


def next_step(command: str, result: Mapping[str, Any]) -> str:
    """The line that follows a command's report; "" where it has none, as that of a queued job or
    of a list without rows."""
    noun, _, verb = command.removeprefix("inf ").partition(" ")
    then, rows = NEXT.get(f"{FORMER.get(noun, noun)} {verb}".strip(), ""), result.get("data")
    known = result if rows is None else rows[0] if rows else None
    if known is None or any(name not in known for _, name, _, _ in Formatter().parse(then) if name):
        return ""
    return f"\nnext: {filled(then, known)}" if then else ""
