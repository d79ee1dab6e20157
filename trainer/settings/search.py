"""The space of a search over settings, from texts such as `learning_rate=1e-5..1e-4:log`.

Loads no torch and no search package: the command line checks a search with it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from db.errors import BadInput
from trainer.settings.settings import parse_settings
from trainer.settings.table import SETTINGS

RANGE, LOG = "..", ":log"
MEASURES: Final = tuple(name for name in SETTINGS["best_by"].choices if name != "last")
BELOW_GUARD = 10.0  # taken off a measure (0 to 1): any trial within the guard is better


@dataclass(frozen=True)
class Dimension:
    """One setting of a search: some values, or a range of numbers (`log`: evenly in orders)."""

    name: str
    choices: tuple[Any, ...] = ()
    low: float = 0.0
    high: float = 0.0
    log: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the range is of whole numbers."""
        return isinstance(SETTINGS[self.name].default, int)


def parse_space(texts: Sequence[str]) -> dict[str, Dimension]:
    """The dimensions by name. Raises BadInput naming the text and the remedy."""
    found: dict[str, Dimension] = {}
    for text in texts:
        dimension = _dimension(text)
        if dimension.name in found:
            raise BadInput(
                f"`search={dimension.name}` is given twice",
                "give it once",
                code="search_given_twice",
            )
        found[dimension.name] = dimension
    if not found:
        raise BadInput(
            "a search needs a setting to vary",
            "give `search=learning_rate=1e-5..1e-4:log`, for example",
            code="search_needs_setting",
        )
    return found


def _dimension(text: str) -> Dimension:
    name, equals, space = (part.strip() for part in text.partition("="))
    if not equals or not space:
        raise BadInput(
            f"`search={text}`",
            "give KEY=VALUE,VALUE or KEY=LOW..HIGH, for example learning_rate=1e-5..1e-4:log",
            code="search_invalid",
        )
    if name not in SETTINGS:
        parse_settings({name: ""})  # says which setting is near
    setting = SETTINGS[name]
    if RANGE not in space:
        choices = tuple(setting.parse(part.strip()) for part in space.split(","))
        if len(set(choices)) < 2:
            raise BadInput(
                f"`search={text}`", "give at least two different values", code="search_invalid"
            )
        for choice in choices:
            setting.check(choice)
        return Dimension(name, choices)
    if isinstance(setting.default, str):
        raise BadInput(
            f"`search={text}`: {name} is not a number",
            "give values with commas",
            code="search_value_invalid",
        )
    low, high = (float(setting.parse(part)) for part in space.removesuffix(LOG).split(RANGE, 1))
    for end in (low, high):
        setting.check(int(end) if isinstance(setting.default, int) else end)
    is_log = space.endswith(LOG)
    if not low < high or (is_log and low <= 0):
        positive = ", which is above 0" if is_log else ""
        raise BadInput(
            f"`search={text}`: the range must rise",
            f"begin it with the smaller number{positive}",
            code="search_range_invalid",
        )
    return Dimension(name, low=low, high=high, log=is_log)


def value_of(result: Mapping[str, Any], measure: str, guard_drop: float) -> float | None:
    """A finished training's value: the measure after it, far lower where the guard fell too far.

    None where the training did not measure it.
    """
    after = dict((result.get("held_out") or {}).get("after") or {})
    after |= (result.get("natural_probe") or {}).get("after") or {}
    guard = (result.get("guard") or {}).get("ndcg@10") or {}
    if None in guard.values():
        guard = {}
    if guard:
        after["guard-ndcg@10"] = guard["after"]
    value = after.get(measure)
    if value is None:
        return None
    is_below = bool(guard) and guard["before"] - guard["after"] > guard_drop
    return float(value) - (BELOW_GUARD if is_below else 0.0)
