"""The interface of judges: a program that sees instruction, query and texts, and picks a position.

An `ItemView` has no labels, roles or ids: a judge cannot know the origin of a candidate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class ItemView:
    """A judge's view of an item: texts, the candidates in the order shown."""

    instruction: str
    query: str
    candidates: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """A judge's answer: a position in the order shown, None for "none of them".

    `ambiguous`: the judge finds that several serve equally well. `unusable`: the reason why there
    is no answer; nothing is stored then.
    """

    position: int | None
    detail: dict[str, Any] = field(default_factory=dict)
    ambiguous: bool = False
    unusable: str = ""


class ItemJudge(Protocol):
    """A program that judges; the fields are those of the table `judge`.

    `at_once`: the number of items per call; the answers to a call are stored before the next.
    """

    name: str
    kind: str
    provider: str
    model: str
    offline: bool
    simulated: bool
    at_once: int

    def choose(
        self, views: Sequence[ItemView], *, check: Callable[[], None] | None = None
    ) -> list[Choice]:
        """An answer for every view, in order."""
        ...
