"""Experiments as TOML: one file, one training. Built in: Tables 2, 3 and 4, and baselines."""

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from db.errors import BadInput, NotFound

BUILT_IN = Path(__file__).parent / "experiments"


def list_experiments() -> list[str]:
    """The names of the built-in experiments."""
    return sorted(file.stem for file in BUILT_IN.glob("*.toml"))


def read_experiment(name: str) -> dict[str, Any]:
    """The settings of a built-in experiment, or of a file that ends in `.toml`.

    Raises NotFound naming the built-in ones, BadInput for a file that is no TOML.
    """
    is_file = name.endswith(".toml")
    file = Path(name) if is_file else BUILT_IN / f"{name}.toml"
    if not (file.is_file() if is_file else name in list_experiments()):
        raise NotFound(
            f"no experiment {name!r}",
            f"give a .toml file or one of {', '.join(list_experiments())}",
            code="experiment_unknown",
        )
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{file} is not TOML: {error}", "correct the file", code="toml_invalid"
        ) from error


def with_overrides(experiment: str | None, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the experiment (if any) with what was given in their place."""
    return {**(read_experiment(experiment) if experiment else {}), **given}
