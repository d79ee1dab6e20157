"""What a row holds is declared to its leaves; JSON stays where its keys are data or of others."""

import importlib
import inspect
import json
import os
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, models_json_schema

import analysis
import app
import curation
import db
import trainer
from app import operations
from db.requests import Request
from db.rows import Listed, Row, SparseRow

# Entry points, and pages: a page runs where it is imported.
NOT_IMPORTED = ("page", "_page", ".entry", ".main", "goto", "studio", "navigation")
# Settings by name, as their own table says what they are (`trainer.settings`, `db.study.rules` …).
SETTINGS = {
    *("ModelShown.settings", "TrainingShown.settings", "TrialRow.params", "Searched.best_settings"),
    *("StudyShown.settings", "StudyCreated.sampling", "ReleaseRow.filter"),
    *("RecipeBody.validation", "RecipeBody.filters", "CheckBody.expected"),
}
# What any kind of job, event, model server or judging program says, in the keys of its own.
OF_OTHERS = {
    *("JobShown.config", "JobShown.result", "JobShown.resources", "TrainingShown.result"),
    *("ModelShown.summary", "AuditRow.data", "GroupCall.request", "JudgmentShown.detail"),
    "StageBody.extra_body",
}


SNAPSHOT = Path(__file__).parents[3] / "docs" / "reference" / "rows.json"


class Untitled(GenerateJsonSchema):
    """Schemas without the titles that repeat the names of fields, of functions and models."""

    def field_title_should_be_set(self, schema: object) -> bool:
        return False

    def get_title_from_name(self, name: str) -> str:
        return name


def _rows(of: type[Row] = Row) -> Iterator[type[Row]]:
    for each in of.__subclasses__():
        yield each
        yield from _rows(each)


def _lists(of: type[BaseModel] = Listed) -> Iterator[type[BaseModel]]:
    """Lists with keys of their own besides `data`, `next` and `total`."""
    for each in of.__subclasses__():
        if "[" not in each.__name__ and not each.__module__.startswith("test"):
            yield each
        yield from _lists(each)


def _every_row() -> list[type[Row]]:
    for package in (analysis, app, curation, db, trainer):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.endswith(NOT_IMPORTED):
                importlib.import_module(found.name)
    ours = (each for each in _rows() if not each.__module__.startswith("test"))
    return sorted({*ours}, key=lambda each: (each.__module__, each.__name__))


def test_no_row_holds_anything_or_json_but_what_is_listed_here() -> None:
    rows = [each for each in _every_row() if "[" not in each.__name__]
    assert len(rows) > 200
    anything, of_others = set(), set()
    for row in rows:
        for name in row.__annotations__.keys() & row.model_fields.keys():
            text = str(row.model_fields[name].annotation)
            if "typing.Any" in text or text == "<class 'dict'>":
                anything.add(f"{row.__module__}.{row.__name__}.{name}")
            elif "JsonValue" in text:
                of_others.add(f"{row.__name__}.{name}")
        typed = ("__pydantic_extra__" in vars(one).get("__annotations__", {}) for one in row.mro())
        if row.model_config.get("extra") == "allow" and not any(list(typed)[:-2]):
            anything.add(f"{row.__module__}.{row.__name__}: further keys")
    assert not anything, "\n".join(sorted(anything))
    assert of_others == SETTINGS | OF_OTHERS


def _in_lines(schema: dict[str, Any]) -> str:
    """A schema without its prose, a line for each key."""
    dropped = ("title", "description", "properties")
    kept = {key: schema[key] for key in sorted(schema.keys() - {*dropped})} | {"properties": None}
    keys = sorted(schema.get("properties", {}).items())
    lines = ",\n".join(f"  {json.dumps(key)}: {json.dumps(each)}" for key, each in keys)
    return json.dumps(kept).replace('"properties": null', f'"properties": {{\n{lines}\n}}')


def test_every_row_is_in_the_snapshot_with_its_types() -> None:
    """A key or a type that changes shows in review; INF_WRITE_KEYS=1 writes it anew."""
    rows = [*(each for each in _every_row() if "[" not in each.__name__), *_lists()]
    _, schema = models_json_schema(
        [(each, "serialization") for each in rows],
        schema_generator=Untitled,
    )
    of = schema["$defs"]
    found = ",\n".join(f"{json.dumps(name)}: {_in_lines(of[name])}" for name in sorted(of))
    found = f'{{"$defs": {{\n{found}\n}}}}\n'
    if os.environ.get("INF_WRITE_KEYS"):
        SNAPSHOT.write_text(found, encoding="utf-8")
    assert SNAPSHOT.read_text(encoding="utf-8") == found


def _within(annotation: object) -> Iterator[type[Row]]:
    if isinstance(annotation, type) and issubclass(annotation, Row):
        yield annotation
    for each in get_args(annotation):
        yield from _within(each)


def test_a_row_that_stands_within_a_sparse_one_is_sparse_too_where_it_has_defaults() -> None:
    """Else it is sent whole: the texts of a card with each of its items."""
    wrong, seen = set(), set[type[Row]]()
    left = [each for each in _every_row() if issubclass(each, SparseRow)]
    while left:
        row = left.pop()
        for field in row.model_fields.values():
            for each in set() if field.exclude else {*_within(field.annotation)} - seen:
                seen.add(each)
                left.append(each)
                has_defaults = any(not one.is_required() for one in each.model_fields.values())
                if has_defaults and not issubclass(each, SparseRow):
                    wrong.add(f"{each.__name__} in {row.__name__}")
    assert not wrong


def test_no_operation_returns_a_dictionary_of_anything() -> None:
    """A result is a row, or counts and texts by name; figures that a page's chart reads stay."""
    charts = {"evaluations.records"}
    found = set()
    for module in pkgutil.walk_packages(operations.__path__, f"{operations.__name__}."):
        for name, each in vars(importlib.import_module(module.name)).items():
            if not (inspect.isfunction(each) and each.__module__ == module.name):
                continue
            takes = [*inspect.signature(each).parameters]
            if (
                name[0] != "_"
                and takes[:1] == ["actor"]
                and "Any" in str(inspect.signature(each).return_annotation)
            ):
                found.add(f"{module.name.rpartition('.')[2]}.{name}")
    assert found == charts


A_PAGE = "asked by a page alone, of what it drew"
# Operations with three arguments or more of their own, and why they have no request.
LOOSE = {
    "acting.in_foreground": "starts a job: its config is the request",
    "acting.queue": "starts a job: its config is the request",
    "adjudication.decide_and_show": "the card's outbox, whose entries are checked one by one",
    "agreement.confusion": A_PAGE,
    "agreement.version": A_PAGE,
    "analyses.search": A_PAGE,
    "answers.list_some": A_PAGE,
    "card.answer_and_lease": "the card's outbox, whose entries are checked one by one",
    "connections.may_be_private": "asked by two operations of the address that they are given",
    "datasets.passages": "a filter of a list, whose model is the route's",
    "datasets.purge": "a shell's only: the dataset or the run, and the file of the backup",
    "judgments.open_thread": "a thread by its three ids",
    "judgments.thread": "a thread by its three ids",
    "people.add_rights": "the account, its rights, and one place",
    "people.change_field": "the account, one field of it and its text",
    "people.set_rights": "the account, its rights, and one place",
    "runs.list_all": "a filter of a list, whose model is the route's",
    "studies.list_all": "a filter of a list, whose model is the route's",
    "try_it.examples": A_PAGE,
}


def test_an_operation_with_three_arguments_takes_a_request_or_is_listed_here() -> None:
    of_the_door = {"launch", "progress", "say", "limit", "offset"}
    found = set()
    for module in pkgutil.walk_packages(operations.__path__, f"{operations.__name__}."):
        for name, each in vars(importlib.import_module(module.name)).items():
            if not inspect.isfunction(each) or each.__module__ != module.name or name[0] == "_":
                continue
            takes = [*inspect.signature(each).parameters.values()]
            own = [one for one in takes[1:] if one.name not in of_the_door and not _is_request(one)]
            if takes and takes[0].name == "actor" and len(own) > 2:
                found.add(f"{module.name.rpartition('.')[2]}.{name}")
    assert found == set(LOOSE)


def _is_request(parameter: inspect.Parameter) -> bool:
    kind = parameter.annotation
    return isinstance(kind, type) and issubclass(kind, Request)
