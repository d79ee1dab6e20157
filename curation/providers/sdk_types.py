"""The SDK's packages of types, a name at a time instead of all 470 modules at `import openai`.

The engine sends and reads dictionaries: of the SDK's types it needs hardly one, and all of them
together are 9 MB of a worker's memory. Each `__init__.py` beneath `openai.types` only hands names
on (`from .file import Name as Name`); such a package is made here without running it, and a name is
imported when somebody asks for it. A package that does anything else is loaded as it is, and so is
everything where the SDK was imported before.
"""

import importlib
import re
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

PACKAGE = "openai.types"
_HANDED_ON = re.compile(r"from (\.\w[\w.]*) import (?:\(([^()]*)\)|([^()\n]+))(?:\n|\Z)")
_BESIDE = re.compile(r"#[^\n]*|from __future__ import annotations|\s+")
_NAME = re.compile(r"(\w+)(?: as (\w+))?")


def load_types_by_name() -> None:
    """Let the SDK's types be loaded by name from now on; to be called before `import openai`."""
    if not any(isinstance(one, _Finder) for one in sys.meta_path):
        sys.meta_path.insert(0, _Finder())


def names_handed_on(source: str) -> dict[str, tuple[str, str]] | None:
    """The module and the name there of every name that a package hands on; None where it does more.

    >>> names_handed_on("from .file import Name as Name")
    {'Name': ('.file', 'Name')}
    """
    found: dict[str, tuple[str, str]] = {}
    place = 0
    while place < len(source):
        if beside := _BESIDE.match(source, place):
            place = beside.end()
            continue
        handed = _HANDED_ON.match(source, place)
        if handed is None:
            return None
        for part in (handed[2] or handed[3]).split(","):
            if not part.strip():
                continue
            name = _NAME.fullmatch(part.strip())
            if name is None:
                return None
            found[name[2] or name[1]] = (handed[1], name[1])
        place = handed.end()
    return found


class _Package(ModuleType):
    """A package that imports what it hands on when it is asked for it."""

    handed_on: dict[str, tuple[str, str]]

    def __getattr__(self, name: str) -> Any:
        handed_on = self.__dict__.get("handed_on", {})
        if name not in handed_on:
            raise AttributeError(f"module {self.__name__!r} has no attribute {name!r}")
        module, there = handed_on[name]
        value = getattr(importlib.import_module(module, self.__name__), there)
        setattr(self, name, value)
        return value

    def __dir__(self) -> list[str]:
        return sorted({*self.__dict__, *self.handed_on})


class _Loader(Loader):
    def __init__(self, handed_on: dict[str, tuple[str, str]]) -> None:
        self._handed_on = handed_on

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Package(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        module.__dict__["handed_on"] = self._handed_on
        module.__dict__["__all__"] = list(self._handed_on)


class _Finder(MetaPathFinder):
    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != PACKAGE and not name.startswith(f"{PACKAGE}."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is None or spec.submodule_search_locations is None or spec.origin is None:
            return spec
        handed_on = names_handed_on(Path(spec.origin).read_text("utf-8"))
        if handed_on is not None:
            spec.loader = _Loader(handed_on)
        return spec
