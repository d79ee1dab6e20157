"""From a judge's votes to an answer, and from the answers to a group's verdict. Pure.

A run decides its groups here as they end, and rules that were changed later decide them again
(`curation.rules.deciding`): both give the same verdict for the same answers.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Protocol

from curation.rules.filters import Drop
from db.question import CHECK, Question, is_right
from db.shape import SPARE, STANDS_IN, TOO_FEW, ListText, Shape
from db.values import AMBIGUOUS, NONE

Place = tuple[str, int]  # a text's slot and its number there


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


@dataclass(frozen=True)
class Settled:
    """What a group's answers make of it: why it is dropped, which of its lists' texts are, by name,
    and which stand-in takes a text's place, by their signs."""

    drop: Drop | None
    dropped: Mapping[str, Drop] = field(default_factory=dict)
    stand_ins: Mapping[str, str] = field(default_factory=dict)


def settle(
    shape: Shape,
    written: Collection[str],
    dropped: Mapping[str, Drop],
    items: Sequence[Answered],
) -> Settled:
    """The shape's rules applied to answers: a list's text that fails is dropped by itself, a
    stand-in takes the place of a text that fails, all else that fails drops the group.

    `written`: the names of the lists' texts; `dropped`: those that failed before they were judged.
    """
    if not shape.lists:
        return Settled(verdict_of(items))
    by_text: dict[str, list[Answered]] = {}
    for item in items:
        name = item.scenario.partition(":")[2] if item.question is not None else ""
        by_text.setdefault(name, []).append(item)
    failed = dict(dropped)
    for name in written:
        if name not in failed and (drop := verdict_of(by_text.get(name, ()))) is not None:
            failed[name] = drop
    stand_ins: dict[str, str] = {}
    for text in shape.lists:
        of = text.stands_in_for
        fails = of and of not in stand_ins and verdict_of(by_text.get(of, ())) is not None
        if fails and text.sign in written and text.sign not in failed:
            stand_ins[of] = text.sign
    lists = {name for text in shape.lists for name in text.names}
    decides = [
        item for name, of in by_text.items() if name not in lists | stand_ins.keys() for item in of
    ]
    order = {id(item): place for place, item in enumerate(items)}
    drop = verdict_of(sorted(decides, key=lambda item: order[id(item)]))
    for text in shape.lists:
        drop = drop or _of_list(text, written, failed)
    return Settled(drop, failed, stand_ins)


def states_of(shape: Shape, written: Collection[str], settled: Settled) -> dict[Place, str | None]:
    """Of each of the lists' texts that is among those written (by name), by slot and number: why it
    is not one of its group's; None for those that are."""
    standing, found = set(settled.stand_ins.values()), dict[Place, str | None]()
    for text in shape.lists:
        for number, name in enumerate(text.names):
            if name not in written:
                continue
            drop = settled.dropped.get(name)
            found[text.sign, number] = None if drop is None else drop.reason
            if text.stands_in_for and drop is None:
                found[text.sign, number] = STANDS_IN if text.sign in standing else SPARE
    return found


def _of_list(text: ListText, written: Collection[str], failed: Mapping[str, Drop]) -> Drop | None:
    """Why the texts of a list drop their group: one that may not fail, or too few that passed."""
    lost = {name: failed[name] for name in text.names if name in failed}
    if text.drops_group and lost:
        return next(iter(lost.values()))
    left = sum(name in written and name not in failed for name in text.names)
    if left >= text.at_least:
        return None
    why = "".join(f"; {drop.detail}" for drop in lost.values())
    return Drop(TOO_FEW, f"{text.sign}: {left} passed, {text.at_least} are needed{why}")
