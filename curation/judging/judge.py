"""What a judge is: a program that sees an instruction, a query and texts, and picks a position.

An `ItemView` has no labels, no roles and no ids: a judge cannot know which candidate came from
where.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol


@dataclass(frozen=True)
class ItemView:
    """What a judge sees of an item: texts, the candidates in the order shown."""

    instruction: str
    query: str
    candidates: tuple[str, ...]


@dataclass(frozen=True)
class Choice:
    """A judge's answer: a position in the order shown, None for "none of them".

    `ambiguous`: the judge says that several serve equally well. `unusable`: there is no answer, and
    why; nothing is to be stored.
    """

    position: int | None
    detail: dict[str, Any] = field(default_factory=dict)
    ambiguous: bool = False
    unusable: str = ""


class ItemJudge(Protocol):
    """A program that judges; the fields are those of the table `judge`.

    `at_once`: how many items it is given at a time; what is answered is stored before the next.
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
