"""From a judge's votes to an answer, and from the answers to a group's verdict. Pure.

A run decides its groups here as they end, and rules that were changed later decide them again
(`curation.rules.deciding`): both give the same verdict for the same answers.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from curation.rules.filters import Drop
from db.question import CHECK, Question, is_right
from db.values import AMBIGUOUS, NONE


@dataclass(frozen=True)
class Vote:
    """One answer of a judge about an item, and the order in which it saw the candidates.

    `detail` names an unusable answer (`unusable`, `message`); else it is empty.
    """

    choice: str
    order_shown: tuple[str, ...] = ()
    detail: Mapping[str, Any] = field(default_factory=dict)


class Answered(Protocol):
    """An item with its answer; `question` is None for the pick of a passage."""

    @property
    def scenario(self) -> str: ...
    @property
    def choice(self) -> str: ...
    @property
    def expected(self) -> str | None: ...
    @property
    def detail(self) -> Mapping[str, Any]: ...
    @property
    def question(self) -> Question | None: ...


def tally(
    votes: Sequence[Vote], decide: Callable[[Sequence[str]], str]
) -> tuple[str, dict[str, Any]]:
    """The answer of several votes, and its detail, which keeps them all."""
    choice = decide([vote.choice for vote in votes])
    if len(votes) == 1:
        return choice, dict(votes[0].detail)
    detail: dict[str, Any] = {"votes": [asdict(vote) for vote in votes]}
    return choice, {**detail, **_unusable([vote.detail for vote in votes])}


def tally_again(
    detail: Mapping[str, Any], count: int, decide: Callable[[Sequence[str]], str]
) -> tuple[str, Mapping[str, Any]]:
    """The answer of the first `count` votes that a detail of `tally` keeps, and why it is unusable
    where it is. Of 300,000 answers the votes are not made anew."""
    votes = detail["votes"][:count]
    return decide([vote["choice"] for vote in votes]), _unusable([v["detail"] for v in votes])


def _unusable(details: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
    """For what an answer is unusable: where more than half of its votes are, what the first of them
    is; else empty."""
    unusable = [detail for detail in details if detail]
    return unusable[0] if 2 * len(unusable) > len(details) else {}


def verdict_of(items: Sequence[Answered]) -> Drop | None:
    """None if every item is answered as expected; else a drop by the first that is not.

    An item of which nothing is expected decides nothing.
    """
    items = [item for item in items if item.expected is not None]
    for item in items:
        if "unusable" in item.detail:
            return Drop(item.detail["unusable"], f"{item.scenario}: {item.detail['message']}")
    wrong = [item for item in items if not is_right(item.choice, item.expected)]
    if not wrong:
        return None
    choices = "; ".join(
        f"{item.scenario}: the judge "
        + (
            f"answered {item.choice}, not {item.expected}"
            if item.question
            else f"chose {item.choice}"
        )
        for item in wrong
    )
    if wrong[0].question is not None:
        return Drop(CHECK + wrong[0].question.name, choices)
    for label in (NONE, AMBIGUOUS):
        if wrong[0].choice == label:
            return Drop(f"judge_{label}", choices)
    return Drop(f"judge_missed_{wrong[0].scenario}", choices)
