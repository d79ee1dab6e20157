"""Registries of judges, providers and sources: ours, and those that installed packages add.

A package adds one by an entry point, as `llm` plugins do:

    [project.entry-points."inf_studio.judges"]
    longest = "my_package:LONGEST"      # an object of the registry's kind, a JudgeKind here

Entry points are read by name first and loaded when used, so that a package that cannot be imported
affects only its own users. A name of ours cannot be replaced: the meaning of `offline` or `openai`
is stored in runs and judgments.
"""

import importlib.metadata
import logging
import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Generic, Protocol, TypeVar

from db.errors import BadInput

log = logging.getLogger("inf.plugins")


class Kind(Protocol):
    """What every registered kind has: a sentence for help texts and pages."""

    @property
    def help(self) -> str:
        """What it is, in one sentence."""
        ...


K = TypeVar("K", bound=Kind)


class Registry(Generic[K]):
    """The kinds of one sort by name; `group` is the entry points' group."""

    def __init__(self, noun: str, group: str, kind: type[K], ours: Mapping[str, K]) -> None:
        self.noun, self.group = noun, group
        self._kind, self._ours = kind, dict(ours)

    def names(self) -> list[str]:
        """Every name, ours first; nothing is imported for it."""
        return [*self._ours, *sorted(self._added())]

    def find(self, name: str) -> K:
        """The kind of that name. Raises BadInput if there is none or it cannot be loaded."""
        if name in self._ours:
            return self._ours[name]
        entry = self._added().get(name)
        if entry is None:
            raise BadInput(
                f"no {self.noun} {name!r}",
                f"one of {', '.join(self.names())}",
                code="plugin_unknown",
            )
        return self._load(entry)

    def all(self) -> dict[str, K]:
        """Every kind that can be loaded, by name; one that cannot is logged and left out."""
        found: dict[str, K] = {}
        for name in self.names():
            try:
                found[name] = self.find(name)
            except BadInput as error:
                log.warning("%s", error)
        return found

    def _added(self) -> dict[str, importlib.metadata.EntryPoint]:
        return {
            entry.name: entry
            for entry in entry_points(self.group, tuple(sys.path))
            if entry.name not in self._ours
        }

    def _load(self, entry: importlib.metadata.EntryPoint) -> K:
        where = f"the {self.noun} {entry.name!r} ({self.group}: {entry.value})"
        try:
            kind = entry.load()
        except Exception as error:  # another package's code: whatever it raises is its failure
            raise BadInput(
                f"{where} cannot be loaded: {type(error).__name__}: {error}",
                "Correct or remove the plugin",
                code="plugin_load_failed",
            ) from error
        if not isinstance(kind, self._kind):
            raise BadInput(
                f"{where} is a {type(kind).__name__}, not a {self._kind.__name__}",
                "correct or remove the plugin",
                code="plugin_kind_wrong",
            )
        return kind


@lru_cache(maxsize=16)
def entry_points(group: str, path: tuple[str, ...]) -> tuple[importlib.metadata.EntryPoint, ...]:
    """The entry points of a group; reading every installed package's takes tens of milliseconds,
    so it is done once for each `sys.path`."""
    return tuple(importlib.metadata.entry_points(group=group))
