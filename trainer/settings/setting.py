"""One setting: its facts, and how a value of it is parsed and checked. Loads nothing heavy."""

import difflib
import math
from dataclasses import dataclass
from typing import Any

from db.errors import BadInput

_KINDS = {int: "a whole number", float: "a number", str: "a text"}


@dataclass(frozen=True)
class Setting:
    """The facts of one setting.

    `minimum` is allowed itself, `above` and `below` are not. `choices` is empty where any value of
    the type is allowed. `advanced` settings are rarely changed: the page folds their group.
    """

    name: str
    kind: type[int] | type[float] | type[str]
    default: int | float | str
    group: str
    label: str
    help: str
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    above: float | None = None
    below: float | None = None
    advanced: bool = False

    @property
    def range_text(self) -> str:
        """The allowed values as one short text; empty where any value of the type is allowed."""
        parts = [
            f"at least {self.minimum:g}" if self.minimum is not None else "",
            f"more than {self.above:g}" if self.above is not None else "",
            f"less than {self.below:g}" if self.below is not None else "",
        ]
        return ", ".join(self.choices) or " and ".join(filter(None, parts))

    def parse(self, value: object) -> int | float | str:
        """The value in the setting's type, from a text or from JSON. Raises BadInput."""
        if isinstance(value, str):
            try:
                return self.kind(value)
            except ValueError as error:
                raise self._refusal(value, f"{_KINDS[self.kind]} is needed") from error
        if self.kind is float and isinstance(value, int) and not isinstance(value, bool):
            return float(value)
        if not isinstance(value, self.kind) or isinstance(value, bool):
            raise self._refusal(value, f"{_KINDS[self.kind]} is needed")
        return value

    def check(self, value: Any) -> None:
        """Raise BadInput, with the name and the remedy, where the value is not allowed."""
        if self.choices:
            if value not in self.choices:
                near = difflib.get_close_matches(str(value), self.choices, n=1, cutoff=0.0)
                known = ", ".join(self.choices)
                raise self._refusal(value, f"did you mean {near[0]!r}? It is one of {known}")
        elif self.kind is str:
            return
        elif not math.isfinite(value):
            raise self._refusal(value, "a finite number is needed")
        elif (
            (self.minimum is not None and value < self.minimum)
            or (self.above is not None and value <= self.above)
            or (self.below is not None and value >= self.below)
        ):
            raise self._refusal(value, f"it must be {self.range_text}")

    def _refusal(self, value: object, reason: str) -> BadInput:
        return BadInput(f"{self.name}={value!r}: {reason}", code="setting_invalid")
