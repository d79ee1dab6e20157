"""Our modules by name: `app.cli.main` in a clone is `inf_studio.app.cli.main` in a wheel.

The build rewrites import statements (`hatch_build.py`), never strings: a module that a string names
(a command, a job's handler, the module of a child process) is named as in the clone and resolved
by this file. Names of other packages stay as they are.
"""

import importlib
from importlib.util import find_spec
from typing import Any

PACKAGES = ("app", "curation", "trainer", "analysis", "db")
_PREFIX = __name__.removesuffix("db.modules")  # "" in a clone, "inf_studio." in a wheel


def full_name(module: str) -> str:
    """The importable name of a module that is named as in the clone."""
    return _PREFIX + module if module.split(".")[0] in PACKAGES else module


def is_here(module: str) -> bool:
    """Whether this wheel has a module of ours: that of the remote client has few."""
    try:
        return find_spec(full_name(module)) is not None
    except ModuleNotFoundError:  # not even its package
        return False


def load(target: str) -> Any:
    """The object that "module:name" names."""
    module, name = target.split(":")
    return getattr(importlib.import_module(full_name(module)), name)


def run_module(module: str) -> list[str]:
    """The Python arguments that run a module in a process of its own.

    `-P`: otherwise Python searches the current folder first, and would run a user's `db.py` or
    `app.py` there.
    """
    return ["-P", "-m", full_name(module)]
