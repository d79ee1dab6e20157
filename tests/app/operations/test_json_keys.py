"""The keys of what commands print as JSON: names, never labels, and a snapshot of them.

A changed key shows in review: `INF_WRITE_KEYS=1` writes the snapshot anew.
"""

import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import click
import pytest
from conftest import Ran
from full_store import fill

from app.access.identity import owner
from app.cli.main import inf as commands
from app.operations import connections
from app.operations.connections import ConnectionAdd
from app.operations.doors import tokens, webhooks
from app.operations.doors.tokens import TokenCreate
from app.operations.doors.webhooks import WebhookAdd
from db.people.accounts import add_account
from db.store.store import Store

SNAPSHOT = Path(__file__).parents[2] / "data" / "json_keys.txt"
# A name, or a measure's (`ndcg@10`, `p-mrr`); no space, capital or bracket.
NAME = re.compile(r"[a-z][a-z0-9_]*([-@:][a-z0-9_]+)*")
READING: Mapping[str, tuple[object, ...]] = {
    "analyze agreement": ("--study", 1, "--over-time", "--by-judge"),
    "analyze diversity": ("--dataset", "world"),
    "analyze leakage": ("--run", 1),
    "analyze near-duplicates": ("--dataset", "world"),
    "analyze validators": ("--dataset", "world", "--study", 1),
    "config": (),
    "connections list": (),
    "connections show": ("lab",),
    "datasets list": (),
    "datasets show": ("world",),
    "evaluations list": (),
    "evaluations show": (1,),
    "groups list": ("--run", 1),
    "groups show": (1,),
    "jobs list": (),
    "jobs logs": (1,),
    "jobs show": (1,),
    "judgments list": ("--study", 1),
    "judgments show": (1,),
    "models list": (),
    "models show": (1,),
    "people list": (),
    "people members": (),
    "people show": ("ann",),
    "recipes check": ("offline",),
    "recipes list": (),
    "recipes diff": ("offline", "promptriever"),
    "recipes show": ("offline",),
    "recipes versions": ("offline",),
    "releases diff": (1, 1),
    "releases list": (),
    "releases show": (1,),
    "runs compare-versions": (1, 1, 1),
    "runs versions": (1,),
    "reviews bulk": (1, "--approve"),
    "reviews list": (1,),
    "reviews show": (1,),
    "reviews verdicts": (1,),
    "runs estimate": ("world", "--provider", "offline"),
    "runs list": (),
    "runs show": (1,),
    "status": (),
    "store check": (),
    "studies adjudicate": (1, "--all"),
    "studies consensus": (1,),
    "studies disagreements": (1,),
    "studies estimate": (1,),
    "studies list": (),
    "studies messages": (1,),
    "studies people": (1,),
    "studies plan": (1, "--items", 3),
    "studies report": (1,),
    "studies show": (1,),
    "studies thresholds": (1,),
    "studies work": (1,),
    "tokens list": (),
    "tokens show": (1,),
    "trainings list": (),
    "trainings show": (2,),
    "webhooks deliveries": (1,),
    "webhooks list": (),
    "webhooks show": (1,),
}
# They change something, ask a model or a server, or need a file: tested with what they do.
DOING = {
    *("analyze contamination", "analyze coverage", "connections add", "connections change"),
    *("connections remove", "connections test", "datasets archive", "datasets delete"),
    *(
        "datasets mine",
        "recipes export",
        "recipes new",
        "recipes preview",
        "recipes save",
        "runs decide",
        "runs remove-version",
        "runs use-version",
    ),
    *("datasets import", "datasets pull", "datasets purge", "datasets unarchive"),
    *(
        "evaluations compare",
        "evaluations create",
        "evaluations pin",
        "evaluations trec",
        "jobs cancel",
        "jobs resume",
    ),
    *("jobs work", "models export", "models index", "models push", "models search"),
    *("models serve", "people add", "people delete", "people disable", "people email"),
    *("people invite", "people rename", "people reset-password", "people rights", "people role"),
    *("releases create", "releases push", "reviews set", "reviews validate", "runs archive"),
    *("runs create", "runs delete", "runs join", "runs purge", "runs resume", "runs unarchive"),
    *("store backup", "store copy", "store restore", "store upgrade", "studies close"),
    *("studies create", "studies gold", "studies judge", "studies qualification", "studies set"),
    "studies example",
    "studies recruit",
    "studies write",
    *(
        "studies export",
        "studies tasks",
        "studies template",
        "tokens create",
        "tokens revoke",
        "trainings create",
        "trainings search",
        "trainings sweep",
        "webhooks add",
        "webhooks enable",
        "webhooks remove",
        "webhooks test",
    ),
}
# Short and former names of the same commands, and nouns of other sessions' formats.
SAME = {"backup", "curate", "convert", "db", "evaluate", "export", "hub", "import", "restore"} | {
    *("review", "serve", "study", "train", "tune", "upgrade", "users")
}
# Maps whose keys are data: names of judges, models, roles, reasons, settings and files.
OF_DATA = {
    *(
        "answered",
        "by_review",
        "changes",
        "comparisons",
        "counts",
        "dropped",
        "environment",
        "flagged",
    ),
    *("human_model", "labels", "models", "params", "reached", "scenarios", "settings"),
    *("sources", "studies", "triplets", "verdicts", "with_models", "with_people", "within"),
    *("config", "data_files", "files", "filter", "metrics", "record", "people_of", "reviews"),
    *("prompts", "slots", "templates", "per_query", "resources", "by_model", "before", "after"),
}


@pytest.fixture
def world(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Something of everything."""
    fill(sqlite_store)
    with sqlite_store.write() as session:
        add_account(session, "ann", "correct horse battery", role="admin", actor="test")
        session.commit()
    with monkeypatch.context() as patch:
        patch.setenv("INF_DATABASE_URL", sqlite_store.url)
        connections.add(owner("ada"), ConnectionAdd(name="lab", url="https://a.example/v1"))
        tokens.create(owner("ada"), TokenCreate(name="ci", rights=("curate",), person="ann"))
        webhooks.add(owner("ada"), WebhookAdd(url="https://a.example/hook"))
    return sqlite_store


def names_of(command: click.Command, above: tuple[str, ...] = ()) -> Iterator[str]:
    """Every command below this one that has `--json`."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            if above or name not in SAME:
                found = command.get_command(context, name)
                assert found is not None
                yield from names_of(found, (*above, name))
    elif any(each.name == "as_json" for each in command.params):
        yield " ".join(above)


def keys_of(value: Any, path: str = "") -> Iterator[str]:
    """The path of every key, `[]` for an element of a list and `*` for a key that is data."""
    if isinstance(value, list):
        for each in value:
            yield from keys_of(each, f"{path}[]")
    elif isinstance(value, dict):
        is_data = path.rpartition(".")[2].removesuffix("[]") in OF_DATA
        for name, each in value.items():
            here = f"{path}.{'*' if is_data else name}".removeprefix(".")
            yield here
            yield from keys_of(each, here)


def test_every_command_with_json_is_among_them() -> None:
    assert set(names_of(commands)) == set(READING) | DOING


def test_keys_are_names_and_are_those_of_the_snapshot(
    world: Store, inf: Callable[..., Ran]
) -> None:
    found: dict[str, list[str]] = {}
    failed: dict[str, str] = {}
    for command, words in READING.items():
        ran = inf(*command.split(), *words, "--json")
        if ran.code:
            failed[command] = ran.out
        else:
            found[command] = sorted(set(keys_of(ran.json)))
    assert not failed, failed
    labels = {
        f"{command}: {path}"
        for command, paths in found.items()
        for path in paths
        for name in [path.rpartition(".")[2]]
        if name != "*" and not NAME.fullmatch(name)
    }
    assert not labels, "\n".join(sorted(labels))
    text = "".join(f"{name}\n  " + "\n  ".join(paths) + "\n" for name, paths in found.items())
    if os.environ.get("INF_WRITE_KEYS"):
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert SNAPSHOT.read_text(encoding="utf-8") == text
