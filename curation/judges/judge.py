"""The interface of judges: a program that sees instruction, query and texts, and picks a position
or answers another question about them.

An `ItemView` has no labels, roles or ids: a judge cannot know the origin of a candidate.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from db.question import PICK, Question

if TYPE_CHECKING:  # a wheel has this module without what it needs
    from curation.judges.asking import Budget, Patience


@dataclass(frozen=True)
class ItemView:
    """A judge's view of an item: texts, the candidates in the order shown, and the question.

    `about`: the place of the candidate that it asks about, "query" or "instruction"; None: all.
    """

    instruction: str
    query: str
    candidates: tuple[str, ...]
    question: Question = PICK
    about: int | str | None = None


@dataclass(frozen=True)
class Choice:
    """A judge's answer: a position in the order shown, None for "none of them".

    `ambiguous`: the judge finds that several serve equally well. `unusable`: the reason why there
    is no answer; nothing is stored then. `answer`: that to another question than a pick.
    """

    position: int | None
    detail: dict[str, Any] = field(default_factory=dict)
    ambiguous: bool = False
    unusable: str = ""
    answer: str = ""


class ItemJudge(Protocol):
    """A program that judges; the fields are those of the table `judge`.

    `at_once`: the number of items per call; the answers to a call are stored before the next. One
    that answers other questions than picks has `kinds`, of `db.question.KINDS`.
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


@runtime_checkable
class PaidJudge(ItemJudge, Protocol):
    """One whose answers cost money: within a budget, and under a study's `guidelines` if these are
    not None; "" before they are set."""

    guidelines: str | None
    budget: "Budget | None"


@runtime_checkable
class WaitingJudge(ItemJudge, Protocol):
    """One that waits for a server that is away, as its `patience` says; none before it is set."""

    patience: "Patience"
