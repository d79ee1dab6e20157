"""What one does after a command, by its name: a line that ends its report."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path
from string import Formatter
from typing import Any, Final

FORMER: Final = {"study": "studies", "users": "people", "evaluate": "evaluations"}
MISSING: Final[Mapping[str, Any]] = {}
SAID: Final = re.compile(r"^next\b|; next:", re.MULTILINE)
# With fields in braces: of the result (of a list its first row's), or of what the command was
# given. A report that says its own next step, by what it found, has no second one.
NEXT: Final[Mapping[str, str]] = {
    "analyze agreement": "inf studies show {study_id}",
    "analyze contamination": "inf releases create {datasets[0]} --out FOLDER "
    "--leave-out-contaminated",
    "analyze coverage": "inf analyze diversity --dataset {datasets[0]}",
    "analyze diversity": "inf analyze coverage --dataset {datasets[0]}",
    "analyze leakage": "inf runs show {run_id}",
    "analyze near-duplicates": "inf releases create {datasets[0]} --out FOLDER",
    "analyze validators": "inf runs decide {run_id} --set validation.judges=NAMES",
    "config": "inf status",
    "connections change": "inf connections test {name}",
    "connections list": "inf connections add NAME --url URL",
    "connections remove": "inf connections list",
    "connections show": "inf connections test {name}",
    "connections test": "inf runs create DATASET --connection {name}",
    "datasets archive": "inf datasets list",
    "datasets list": "inf datasets show {name}",
    "datasets mine": "inf datasets show {dataset}",
    "datasets pull": "inf datasets show {dataset}",
    "datasets purge": "inf datasets list",
    "datasets show": "inf runs create {name} --provider NAME",
    "datasets unarchive": "inf datasets list",
    "evaluations compare": "inf evaluations show {id}",
    "evaluations list": "inf evaluations compare {id} OTHER",
    "evaluations pin": "inf evaluations create --benchmark {folder} --pin {sha256}",
    "evaluations trec": "inf evaluations create --model trec:{run_file}",
    "gpu-check": "inf trainings create",
    "groups list": "inf groups show {id}",
    "groups show": "inf reviews set {id} --approve",
    "jobs cancel": "inf jobs show {id}",
    "jobs list": "inf jobs show {id}",
    "jobs resume": "inf jobs show {id}",
    "jobs show": "inf jobs logs {id}",
    "judgments show": "inf judgments list {study_id}",
    "models export": "inf models serve {path}",
    "models index": "inf models search QUERY --dataset {dataset} --model {model}",
    "models list": "inf models show {id}",
    "models push": "inf models show {checkpoint_id}",
    "models search": "inf models list",
    "people add": "inf people list",
    "people delete": "inf people list",
    "people disable": "inf people list",
    "people email": "inf people show {name}",
    "people invite": "inf people members",
    "people list": "inf people members",
    "people rename": "inf people list",
    "people members": "inf people rights {name}",
    "people reset-password": "inf people show {name}",
    "people rights": "inf people members",
    "people role": "inf people show {name}",
    "people show": "inf people list",
    "judgments list": "inf analyze agreement --study {study_id}",
    "recipes check": "inf runs create DATASET --recipe {recipe}",
    "recipes diff": "inf recipes preview {second} --with {first} --dataset DATASET",
    "recipes export": "inf recipes check {recipe}",
    "recipes list": "inf recipes show {name}",
    "recipes new": "inf recipes check {recipe}",
    "recipes preview": "inf runs create {dataset} --recipe NAME",
    "recipes save": "inf recipes preview {name} --dataset DATASET",
    "recipes versions": "inf recipes diff {name}",
    "recipes show": "inf recipes new FOLDER --like {name}",
    "releases diff": "inf releases show {after}",
    "releases list": "inf releases show {id}",
    "releases push": "inf releases show {release_id}",
    "releases show": "inf trainings create --release {id} --out FOLDER",
    "reviews bulk": "inf reviews list {run_id}",
    "reviews list": "inf groups show {group_id}",
    "reviews set": "inf groups show {group_id}",
    "reviews show": "inf groups show {group_id}",
    "reviews validate": "inf reviews list {run_id}",
    "reviews verdicts": "inf reviews list {run_id}",
    "runs archive": "inf runs list",
    "runs compare-versions": "inf runs use-version {run_id} VERSION",
    "runs decide": "inf runs versions {run_id}",
    "runs join": "inf runs show {run_id}",
    "runs shrink": "inf runs show {run_id}",
    "runs list": "inf runs show {id}",
    "runs purge": "inf runs list",
    "runs remove-version": "inf runs versions {run_id}",
    "runs unarchive": "inf runs list",
    "runs use-version": "inf runs versions {run_id}",
    "runs versions": "inf runs compare-versions {run_id} {number} VERSION",
    "status": "inf serve",
    "store backup": "inf store restore {path}",
    "store check": "inf store backup FILE",
    "store copy": "inf store check",
    "store restore": "inf store check",
    "store upgrade": "inf status",
    "studies adjudicate": "inf analyze agreement --study {study_id}",
    "studies close": "inf analyze agreement --study {id}",
    "studies consensus": "inf analyze agreement --study {study_id}",
    "studies disagreements": "inf studies adjudicate {study_id}",
    "studies estimate": "inf studies plan {study_id}",
    "studies export": "inf import --study {study_id} --judgments FILE",
    "studies gold": "inf studies people {study_id}",
    "studies judge": "inf analyze agreement --study {study_id}",
    "studies list": "inf studies show {id}",
    "studies people": "inf analyze agreement --study {study_id}",
    "studies plan": "inf studies create",
    "studies qualification": "inf studies people {study_id}",
    "studies report": "inf studies export {study_id} --out FOLDER",
    "studies example": "inf studies show {id}",
    "studies recruit": "inf studies work {study_id}",
    "studies set": "inf studies show {id}",
    "studies template": "inf studies gold {study_id} --file FILE",
    "studies thresholds": "inf runs decide {run_id}",
    "studies work": "inf studies people {study_id}",
    "studies write": "inf studies messages {study_id}",
    "studies messages": "inf studies people {study_id}",
    "tokens list": "inf tokens revoke {id}",
    "tokens show": "inf tokens revoke {id}",
    "tokens revoke": "inf tokens list",
    "tokens create": "inf tokens show {id}",
    "trainings list": "inf trainings show {id}",
    "trainings search": "inf trainings list",
    "webhooks add": "inf webhooks test {id}",
    "webhooks deliveries": "inf webhooks test {webhook_id}",
    "webhooks enable": "inf webhooks deliveries {id}",
    "webhooks list": "inf webhooks deliveries {id}",
    "webhooks remove": "inf webhooks list",
    "webhooks show": "inf webhooks test {id}",
    "webhooks test": "inf webhooks deliveries {id}",
}

# After a list without rows.
EMPTY: Final[Mapping[str, str]] = {
    "connections list": "inf connections add NAME --url URL",
    "datasets list": "inf datasets import NAME --pairs FILE",
    "evaluations compare": "inf evaluations list",
    "evaluations list": "inf evaluations create --model MODEL",
    "evaluations trec": "inf evaluations create --model trec:{run_file}",
    "groups list": "inf runs show {run_id}",
    "jobs list": "inf status",
    "judgments list": "inf studies judge {study_id} --judge JUDGE",
    "models list": "inf trainings create --release RELEASE --out FOLDER",
    "people list": "inf people add NAME --role admin",
    "people members": "inf people rights NAME curate",
    "recipes list": "inf recipes new FOLDER",
    "recipes versions": "inf recipes new FOLDER --like {recipe}",
    "releases diff": "inf releases show {after}",
    "releases list": "inf releases create DATASET --out FOLDER",
    "reviews list": "inf groups list {run_id}",
    "runs list": "inf runs create DATASET --provider NAME",
    "runs versions": "inf runs show {run_id}",
    "studies adjudicate": "inf analyze agreement --study {study_id}",
    "studies disagreements": "inf analyze agreement --study {study_id}",
    "studies list": "inf studies create DATASET --items N --overlap 3",
    "studies people": "inf studies show {study_id}",
    "studies messages": "inf studies write {study_id} TEXT",
    "studies work": "inf studies list",
    "tokens list": "inf tokens create NAME --right curate",
    "trainings list": "inf trainings create --release RELEASE --out FOLDER",
    "webhooks deliveries": "inf webhooks test {webhook_id}",
    "webhooks list": "inf webhooks add URL --event run.finished",
}


class _Filled(Formatter):
    """Fields quoted for a shell; in capitals, as a person fills it in, what nobody has given."""

    def get_field(self, field_name: str, args: Any, kwargs: Any) -> tuple[Any, str]:
        try:
            found, _ = super().get_field(field_name, args, kwargs)
        except (KeyError, IndexError, TypeError):
            found = None
        if found in (None, ""):
            found = field_name.partition("[")[0].removesuffix("_id").removesuffix("s").upper()
        elif isinstance(found, str | Path):
            found = shlex.quote(str(found))
        return found, field_name


def filled(then: str, known: Mapping[str, Any]) -> str:
    """A next step with the values of its fields."""
    return _Filled().vformat(then, (), known)


def next_step(command: str, result: Mapping[str, Any], given: Mapping[str, Any] = MISSING) -> str:
    """The line that follows a command's report, with values of its result and else of what it was
    given; "" where it has none, as that of a queued job."""
    noun, _, verb = command.removeprefix("inf ").partition(" ")
    rows = result.get("data")
    then = (EMPTY if rows == [] else NEXT).get(f"{FORMER.get(noun, noun)} {verb}".strip(), "")
    if not then or result.keys() == {"job_id"}:
        return ""
    first = rows[0] if rows and isinstance(rows, list) else {}
    return f"next: {filled(then, {**given, **result, **first})}"
