"""What a row holds is declared to its leaves; JSON stays where its keys are data or of others."""

import importlib
import pkgutil
from collections.abc import Iterator
from typing import get_args

import analysis
import app
import curation
import db
import trainer
from db.rows import Row, SparseRow

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


def _rows(of: type[Row] = Row) -> Iterator[type[Row]]:
    for each in of.__subclasses__():
        yield each
        yield from _rows(each)


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
    anything, json = set(), set()
    for row in rows:
        for name in row.__annotations__.keys() & row.model_fields.keys():
            text = str(row.model_fields[name].annotation)
            if "typing.Any" in text or text == "<class 'dict'>":
                anything.add(f"{row.__module__}.{row.__name__}.{name}")
            elif "JsonValue" in text:
                json.add(f"{row.__name__}.{name}")
        typed = ("__pydantic_extra__" in vars(one).get("__annotations__", {}) for one in row.mro())
        if row.model_config.get("extra") == "allow" and not any(list(typed)[:-2]):
            anything.add(f"{row.__module__}.{row.__name__}: further keys")
    assert not anything, "\n".join(sorted(anything))
    assert json == SETTINGS | OF_OTHERS


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
