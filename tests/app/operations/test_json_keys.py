"""The keys of what commands print as JSON: names, never labels, and a snapshot of them.

A changed key shows in review: `INF_WRITE_KEYS=1` writes the snapshot anew. Every command runs, in
one store: first those that change something, each of which has to leave an event, then those that
read what they made.
"""

import io
import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import click
import pytest
from conftest import Ran, run_job_here
from full_store import fill
from openai_server import Server
from pydantic import BaseModel
from sqlalchemy import select

from analysis.embed.model_source import DEFAULT_MODEL
from analysis.found.texts import CoverageFound
from app.access.identity import owner
from app.cli.main import inf as commands
from app.jobs import supervisors
from app.operations import connections
from app.operations.connections import ConnectionAdd
from app.operations.doors import tokens, webhooks
from app.operations.doors.tokens import TokenCreate
from app.operations.doors.webhooks import WebhookAdd
from app.operations.runs import RunShrunk
from app.operations.try_it import Searched
from curation.hub.push import Pushed
from curation.sources.converting import Conversion
from curation.sources.registry import SOURCES
from db.jobs import jobs
from db.people.accounts import add_account
from db.rows import Listed, Row
from db.servers.webhooks import queue_events
from db.store.store import Store
from db.tables import Event, Review, StudyJudge, Webhook

SNAPSHOT = Path(__file__).parents[2] / "data" / "json_keys.txt"
PAUSED = 3  # the exit status
PASSWORD = "correct horse battery"
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
    "groups list": (1,),
    "groups show": (1,),
    "jobs list": (),
    "jobs logs": (1,),
    "jobs show": (1,),
    "judgments list": (1,),
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
    "recipes versions": ("own",),
    "releases diff": (1, 2),
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
    "studies messages": (2,),
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
# They change something: in this order, in one store; `{}` is a folder with the files of `_files`.
SMALL = ("max_steps=1", "natural_probe=off", "precision=fp32")
DOING: Sequence[tuple[str, tuple[object, ...]]] = (
    ("connections add", ("own", "--url", "SERVER", "--private", "--price", "small=1/2")),
    ("connections change", ("own", "--price", "small=1/3")),
    ("connections test", ("own",)),
    ("datasets import", ("new", "--pairs", "{}/pairs.jsonl")),
    ("datasets mine", ("new", "--out", "{}/mined.jsonl", "--depth", 2)),
    ("datasets pull", ("{}/pulled", "--dataset", "pulled", "--licence", "mit")),
    ("datasets archive", ("pulled",)),
    ("datasets unarchive", ("pulled",)),
    ("datasets delete", ("pulled",)),
    ("datasets purge", ("pulled", "--admin", "ann")),
    ("recipes export", ("offline", "{}/exported")),
    ("recipes new", ("{}/recipe",)),
    ("recipes save", ("{}/own/own.toml", "--note", "first")),
    ("recipes preview", ("offline", "--dataset", "new", "--with", "own")),
    (
        "runs create",
        ("new", "--connection", "own", "--set", "model=small", "--budget-usd", 0.000001),
    ),
    ("runs resume", (4, "--budget-usd", 5)),
    ("runs join", (4,)),
    ("runs decide", (4, "--set", "validation.agree=1")),
    ("runs use-version", (4, 1)),
    ("runs remove-version", (4, 2)),
    ("runs archive", (4,)),
    ("runs unarchive", (4,)),
    ("runs delete", (4,)),
    ("runs purge", (4, "--admin", "ann")),
    ("connections remove", ("own",)),
    ("reviews set", (3, "--edit", "instruction_positive=another one")),
    ("reviews validate", (1,)),
    ("studies create", ("world", "--items", 4, "--overlap", 1, "--run", 1)),
    (
        "studies create",
        ("--items-file", "{}/items.jsonl", "--template", "relevance", "--overlap", 1),
    ),
    ("studies judge", (2, "--judge", "simulated:3")),
    ("studies judge", (3, "--judge", "simulated:3")),
    ("studies set", (2, "--overlap", 2)),
    ("studies gold", (2, "--sample", 1)),
    ("studies qualification", (2, "--sample", 1)),
    ("studies template", (2, "--out", "{}/gold.jsonl")),
    ("studies example", (2, "--item", 40, "--answer", "positive", "--why", "it fits")),
    (
        "studies recruit",
        (2, "--from", "prolific", "--complete", "C1", "--screened-out", "S1", "--people", 3),
    ),
    ("studies write", (2, "hello")),
    ("studies tasks", (2, "--for", "doccano", "--out", "{}/tasks")),
    ("studies export", (3, "--out", "{}/study")),
    ("studies close", (2,)),
    ("releases create", ("world", "--out", "{}/release")),
    ("evaluations create", ("--model", "bm25", "--release", "{}/release")),
    ("evaluations create", ("--model", DEFAULT_MODEL, "--release", "{}/release")),
    ("evaluations compare", (3, 4)),
    ("evaluations pin", ("{}/beir",)),
    ("evaluations trec", ("--run", "{}/run.trec", "--qrels", "{}/beir/qrels.trec")),
    ("jobs cancel", (6,)),
    ("jobs work", ("--idle-seconds", 0)),
    ("jobs resume", (6,)),
    ("people add", ("bob", "--role", "annotator")),
    ("people email", ("bob", "bob@a.example")),
    ("people invite", ("--role", "annotator")),
    ("people rename", ("bob", "rob")),
    ("people rights", ("rob", "judge", "--study", 1)),
    ("people role", ("rob", "curator")),
    ("people reset-password", ("rob",)),
    ("people reset-password", ("rob", "--link")),
    ("people disable", ("rob",)),
    ("people add", ("eve", "--role", "annotator")),
    ("people delete", ("eve", "--yes")),
    ("tokens create", ("next", "--right", "curate", "--person", "ann")),
    ("tokens revoke", (2,)),
    ("webhooks add", ("SERVER", "--event", "run.finished", "--private")),
    ("webhooks test", (2,)),
    ("webhooks enable", (2,)),
    ("webhooks remove", (2,)),
    ("trainings create", ("--release", "{}/release", "--estimate", *SMALL)),
    ("trainings create", ("--release", "{}/release", "--out", "{}/model", *SMALL)),
    (
        "trainings sweep",
        ("--release", "{}/release", "--name", "one", "--objective", "P", *SMALL),
    ),
    (
        "trainings search",
        (
            *("--release", "{}/release", "--name", "two", "--search", "learning_rate=1e-5..1e-4"),
            "--trials",
            1,
            *SMALL,
        ),
    ),
    ("models export", ("{}/model", "--out", "{}/onnx")),
    ("models index", ("{}/model", "--dataset", "world")),
    ("analyze contamination", ("--texts", "{}/texts.jsonl", "--against", "{}/beir")),
    ("store upgrade", ("--no-copy",)),
    ("store backup", ("{}/all.zip",)),
    ("store restore", ("{}/all.zip", "--replace")),
    ("store copy", ("STORE",)),
)


class OfJob(Row):
    """What a command adds to the result of its job."""

    job_id: int


# They take a process or half a minute: what their operation or job declares (`test_stored_results`
# compares the keys of the kinds with what they print).
DECLARED: Mapping[str, tuple[type[BaseModel], ...]] = {
    "analyze coverage": (CoverageFound, OfJob),
    **dict.fromkeys((f"convert {name}" for name in SOURCES.names()), (Conversion,)),
    "models push": (Pushed, OfJob),
    "models search": (Listed[Searched],),
    "releases push": (Pushed, OfJob),
    "runs shrink": (RunShrunk,),  # two workers have to work on it
}
SERVING = {"models serve"}  # until it is stopped: then it says what it served
# They write files, or nothing that is new.
WITHOUT_EVENT = {
    *("recipes export", "recipes new", "studies template", "studies tasks", "studies export"),
    *("evaluations compare", "evaluations pin", "evaluations trec", "jobs work"),
    *("models export", "models index", "store upgrade", "store copy"),
}
# Rows of what is measured, with the ids and names of what it is of; others are of the store.
OF_REPORTS = {"config", "evaluations trec", "models search", "releases diff", "studies work"}
FORMER = "differences[]."  # of `evaluations compare`, with the labels of an earlier version
# Short and former names of the same commands, and nouns of other sessions' formats.
SAME = {"backup", "curate", "db", "evaluate", "export", "hub", "import", "restore"} | {
    *("review", "serve", "study", "train", "tune", "upgrade", "users")
}
# Maps whose keys are data: names of judges, models, roles, reasons, settings and files.
BY_TABLE = "rows"  # that a purge deleted
OF_DATA = {
    "tables",
    *(
        "answered",
        "by_review",
        "changes",
        "comparisons",
        "counts",
        "dropped",
        "environment",
        "flagged",
        "grades",
        "libraries",
        "networks",
    ),
    *("human_model", "labels", "models", "params", "reached", "scenarios", "settings"),
    *("sources", "studies", "triplets", "verdicts", "with_models", "with_people", "within"),
    *("config", "data_files", "files", "filter", "metrics", "record", "people_of", "reviews"),
    *(
        "meanings",
        "prompts",
        "slots",
        "templates",
        "per_query",
        "resources",
        "by_model",
        "before",
        "after",
    ),
}


@pytest.fixture
def world(sqlite_store: Store, monkeypatch: pytest.MonkeyPatch) -> Store:
    """Something of everything."""
    fill(sqlite_store)
    with sqlite_store.write() as session:
        add_account(session, "ann", PASSWORD, role="admin", actor="test")
        for each in range(10, 31):
            session.add(Review(group_id=each, action="approve", reviewed_by="ann"))
        session.add(StudyJudge(study_id=1, judge_id=1))
        session.commit()
    with monkeypatch.context() as patch:
        patch.setenv("INF_DATABASE_URL", sqlite_store.url)
        connections.add(owner("ada"), ConnectionAdd(name="lab", url="https://a.example/v1"))
        tokens.create(owner("ada"), TokenCreate(name="ci", rights=("curate",), person="ann"))
        webhooks.add(owner("ada"), WebhookAdd(url="https://a.example/hook"))
    with sqlite_store.write() as session:
        queue_events(session, session.get_one(Webhook, 1), [1], 1)
        session.commit()
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
        is_data = path.rpartition(".")[2].removesuffix("[]") in OF_DATA or path == BY_TABLE
        for name, each in value.items():
            here = f"{path}.{'*' if is_data else name}".removeprefix(".")
            yield here
            yield from keys_of(each, here)


def declared(annotation: Any, path: str = "") -> Iterator[str]:
    """The paths of a type's keys, as `keys_of` has them of its JSON."""
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            here = f"{path}.{field.alias or name}".removeprefix(".")
            yield here
            yield from declared(field.annotation, here)
    elif get_origin(annotation) in (dict, Mapping):
        yield f"{path}.*"
        yield from declared(get_args(annotation)[1], f"{path}.*")
    else:
        is_list = get_origin(annotation) in (list, tuple, Sequence)
        for inner in get_args(annotation):
            yield from declared(inner, f"{path}[]" if is_list else path)


def test_every_command_with_json_is_among_them() -> None:
    assert set(names_of(commands)) == {*READING, *dict(DOING), *DECLARED, *SERVING}


def _files(folder: Path, inf: Callable[..., Ran]) -> None:
    """The files that commands of `DOING` read."""
    rows = [
        {"query_id": f"q{n}", "query": f"who is number {n}", "passage_id": f"p{n}"}
        | {"passage": f"number {n} is {7 * n} years old and has {n} dogs in town {n}"}
        for n in range(8)
    ]
    texts = [{"text": f"a text of number {n} about dogs"} for n in range(20)]
    item = {"id": "a", "query": "tea", "instruction": "", "passages": ["green tea", "black tea"]}
    written: Mapping[str, Sequence[object]] = {
        "pairs.jsonl": rows,
        "pulled/pairs.jsonl": rows,
        "texts.jsonl": texts,
        "items.jsonl": [item],
        "beir/corpus.jsonl": [{"_id": "p1", "title": "", "text": "green tea"}],
        "beir/queries.jsonl": [{"_id": "q1", "text": "tea"}],
        "beir/qrels/test.tsv": ["query-id\tcorpus-id\tscore", "q1\tp1\t1"],
        "beir/qrels.trec": ["q1 0 p1 1"],
        "run.trec": ["q1 Q0 p1 1 1.0 x"],
    }
    for name, lines in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        text = [each if isinstance(each, str) else json.dumps(each) for each in lines]
        (folder / name).write_text("\n".join(text), encoding="utf-8")
    assert inf("recipes", "export", "offline", folder / "own").code == 0
    recipe = (folder / "own" / "offline.toml").read_text(encoding="utf-8")
    own = recipe.replace('name = "offline"', 'name = "own"')
    (folder / "own" / "own.toml").write_text(own, encoding="utf-8")


def _take_queued(store: Store, _: str) -> None:
    """Run what is queued here, as a supervisor would in processes."""
    with store.read() as session:
        ids = [job.id for job in jobs.list_jobs(session, statuses=("queued",))]
    for each in sorted(ids):
        with store.write() as session:
            job = jobs.claim_job(session, each)
            session.commit()
        if job is not None:
            run_job_here(store, job)


@pytest.mark.long
def test_keys_are_names_and_are_those_of_the_snapshot(
    world: Store,
    inf: Callable[..., Ran],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    _files(tmp_path, inf)
    monkeypatch.setattr(supervisors, "ensure_taken", _take_queued)
    elsewhere = {"INF_DATABASE_URL": f"sqlite:///{tmp_path / 'copy.db'}"}
    keys: dict[str, set[str]] = {}
    failed: dict[str, str] = {}
    silent = []
    with Server() as server:
        places = {"SERVER": server.url, "STORE": world.engine.url.database}
        for command, words in (*DOING, *READING.items()):
            before = _event(world)
            monkeypatch.setattr(sys, "stdin", io.StringIO(f"{PASSWORD}\n"))
            given = [
                str(places.get(word, str(word).replace("{}", str(tmp_path)))) for word in words
            ]
            more = elsewhere if command == "store copy" else {}
            ran = inf(*command.split(), *given, "--json", **more)
            if ran.code not in (0, PAUSED):
                failed[command] = ran.out + ran.err
            else:
                keys.setdefault(command, set()).update(keys_of(ran.json))
            if command not in READING and (_event(world) == before) != (command in WITHOUT_EVENT):
                silent.append(command)
    assert not failed, "\n".join(f"{name}: {why}" for name, why in failed.items())
    assert not silent, silent
    unnamed = [
        name
        for name, paths in keys.items()
        if "data[]" in str(paths) and not {"data[].id", "data[].name"} <= paths
    ]
    assert {*unnamed} <= OF_REPORTS, unnamed
    empty = [name for name, paths in keys.items() if "data" in paths and "data[]" not in str(paths)]
    assert not empty, "a list without rows has no keys"
    for command, rows in DECLARED.items():
        keys[command] = {key for row in rows for key in declared(row)}
    found = {command: sorted(keys[command]) for command in sorted(keys)}
    labels = {
        f"{command}: {path}"
        for command, paths in found.items()
        for path in paths
        for name in [path.rpartition(".")[2]]
        if name != "*" and not NAME.fullmatch(name) and not path.startswith(FORMER)
    }
    assert not labels, "\n".join(sorted(labels))
    text = "".join(f"{name}\n  " + "\n  ".join(paths) + "\n" for name, paths in found.items())
    if os.environ.get("INF_WRITE_KEYS"):
        SNAPSHOT.write_text(text, encoding="utf-8")
    assert SNAPSHOT.read_text(encoding="utf-8") == text


def _event(store: Store) -> tuple[int, str]:
    """The newest event."""
    with store.read() as session:
        newest = select(Event.id, Event.name).order_by(Event.id.desc()).limit(1)
        found = session.execute(newest).one()
    return found.id, found.name
