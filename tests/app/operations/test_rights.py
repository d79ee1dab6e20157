"""Every operation, whatever its noun: who has no right is refused before anything is read."""

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import Any, get_args, get_origin, get_type_hints
from unittest.mock import MagicMock

import pytest
from sqlalchemy import func, select
from study_world import make_world, sampled_study

from app import operations as rooms
from app.access.identity import Actor
from db.errors import Refused
from db.store.store import Store
from db.tables import Event, Job

NOT_OPERATIONS = {f"{rooms.__name__}.acting"}  # how operations open their sessions
REFUSALS = ("no_right", "admin_only")
ARGUMENTS = {
    "models.folder_of": {"model": "1"},  # any other name is a folder as it is
    "overview.frame.datasets_of_page": {"permission": "curate"},
}
# These open the store for nobody: they find who a token is and repeat their answers, and the
# server's own worker sends what is due.
WITHOUT_ACTOR = {
    *("doors.courier.send_due", "doors.repeats.begin", "doors.repeats.finish"),
    *("doors.tokens.presented", "doors.tokens.still_presented", "datasets.here"),
}
OPENING = ("open_store", "reading", "writing", "admitted")
# Home is everybody's: what it holds for who has no right, its figures each behind their own; the
# box behind Ctrl-K lists each kind of row under its own right
WITHOUT_RIGHT = {
    "overview.goto.places": "[]",
    "overview.home.may_show_example": repr(True),
    "overview.home.own_items": repr(None),
    "overview.home.waiting": "[]",
    "overview.quality.figures": "Figures(of_run=None, of_study=None, of_model=None)",
}


def functions() -> dict[str, Callable[..., Any]]:
    """Every public function of a module of operations."""
    found = {}
    for module in pkgutil.walk_packages(rooms.__path__, f"{rooms.__name__}."):
        if module.ispkg or module.name in NOT_OPERATIONS:
            continue
        there = vars(importlib.import_module(module.name))
        for name, each in there.items():
            if inspect.isfunction(each) and each.__module__ == module.name and name[0] != "_":
                found[f"{module.name.removeprefix(f'{rooms.__name__}.')}.{name}"] = each
    return found


def operations() -> dict[str, Callable[..., Any]]:
    """Those whose first parameter is the actor."""
    return {
        name: each
        for name, each in functions().items()
        if next(iter(inspect.signature(each).parameters), None) == "actor"
    }


def arguments(operation: Callable[..., Any]) -> dict[str, Any]:
    """Something for each parameter that has no default, but for the actor."""
    try:
        hints = get_type_hints(operation)
    except NameError:  # a name that only type checkers import
        hints = dict(operation.__annotations__)
    return {
        name: filler(hints.get(name))
        for name, parameter in list(inspect.signature(operation).parameters.items())[1:]
        if parameter.default is inspect.Parameter.empty
    }


PLAIN = {int: 1, str: "world", bool: False, float: 0.5, Path: Path("file")}


def filler(hint: Any) -> Any:
    """One of a sequence, a value of the hint's first plain type, else a stand-in."""
    if isinstance(origin := get_origin(hint), type) and issubclass(origin, Collection):
        return {} if issubclass(origin, Mapping) else (filler(get_args(hint)[0]),)
    options = [one for one in get_args(hint) if isinstance(one, type) and one in PLAIN]
    plain = hint if isinstance(hint, type) and hint in PLAIN else next(iter(options), None)
    return MagicMock() if plain is None else PLAIN[plain]


@pytest.fixture
def world(sqlite_store: Store) -> Store:
    run_id = make_world(sqlite_store, 4)
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=2, overlap=1)
        session.commit()
    return sqlite_store


def test_every_operation_refuses_who_has_no_right(world: Store) -> None:
    with world.read() as session:
        before = [session.scalar(select(func.count(one.id))) for one in (Event, Job)]
    nobody, answered = Actor("eve"), {}
    for name, operation in operations().items():
        try:
            found = operation(nobody, **arguments(operation) | ARGUMENTS.get(name, {}))
        except Refused as refused:
            if refused.code in REFUSALS:
                continue
            found = refused
        except Exception as error:
            found = error
        answered[name] = repr(found)[:200]
    assert answered == WITHOUT_RIGHT, "\n".join(f"{k}: {v}" for k, v in answered.items())
    with world.read() as session:
        after = [session.scalar(select(func.count(one.id))) for one in (Event, Job)]
    assert after == before and len(operations()) > 90


def test_whatever_opens_the_store_takes_an_actor() -> None:
    """Else no test of rights would see it."""
    others = functions().keys() - operations().keys()
    opening = {name for name in others if {*OPENING} & {*_names(functions()[name].__code__)}}
    assert opening == WITHOUT_ACTOR


def _names(code: CodeType) -> Iterator[str]:
    """The names that a function looks up, those of functions within it, too."""
    yield from code.co_names
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _names(each)
