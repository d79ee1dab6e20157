"""Choosing the validator: how each judge would filter, and how well it agrees with people. Pure.

An item asks whether the judge finds the passage written for its scenario. A judge would keep a
group when it finds the right passage in all three scenarios; of a study at most one scenario per
group is judged, so its share of items passed is told apart from the groups it would keep.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from db.words import SCENARIOS

POLICIES: Final = ("any", "majority", "all")


@dataclass(frozen=True)
class Answer:
    """A judge's answer about an item of a group."""

    judge: str
    group_id: int
    scenario: str
    choice: str


def judge_as_validator(
    answers: Iterable[Answer], kept: Mapping[int, bool], judge: str
) -> dict[str, Any]:
    """What the judge would keep, beside what the run kept.

    `kept` says of each group whether the run kept it. Groups count where the judge answered all
    three scenarios.
    """
    mine = [answer for answer in answers if answer.judge == judge]
    passed = [answer.choice == answer.scenario for answer in mine]
    verdicts = {group: all(each.values()) for group, each in _whole_groups(mine).items()}
    return {
        "judge": judge,
        "items": len(mine),
        "items_passed": sum(passed) / len(mine) if mine else None,
        **({} if mine else {"reason": "the judge answered no item"}),
        **_beside(verdicts, kept),
    }


def vote_as_validator(
    answers: Iterable[Answer], kept: Mapping[int, bool], judges: Iterable[str], policy: str
) -> dict[str, Any]:
    """What several judges would keep together: a group passes a scenario when any of them, more
    than half, or all of them find its passage. Groups count where every judge answered all."""
    names = list(judges)
    answered = list(answers)
    votes = [
        _whole_groups([answer for answer in answered if answer.judge == name]) for name in names
    ]
    common = set.intersection(*(set(each) for each in votes)) if votes else set()
    enough = {"any": 1, "majority": len(names) // 2 + 1, "all": len(names)}[policy]
    verdicts = {
        group: all(sum(each[group][scenario] for each in votes) >= enough for scenario in SCENARIOS)
        for group in common
    }
    return {"policy": policy, "judges": names, **_beside(verdicts, kept)}


def _whole_groups(answers: Iterable[Answer]) -> dict[int, dict[str, bool]]:
    """Whether each scenario was passed, for groups with an answer to all of them."""
    found: dict[int, dict[str, bool]] = defaultdict(dict)
    for answer in answers:
        found[answer.group_id][answer.scenario] = answer.choice == answer.scenario
    return {group: each for group, each in found.items() if len(each) == len(SCENARIOS)}


def _beside(verdicts: Mapping[int, bool], kept: Mapping[int, bool]) -> dict[str, int]:
    shared = [group for group in verdicts if group in kept]
    return {
        "groups": len(shared),
        "kept": sum(verdicts[group] for group in shared),
        "kept_by_both": sum(verdicts[group] and kept[group] for group in shared),
        "only_here": sum(verdicts[group] and not kept[group] for group in shared),
        "only_by_the_run": sum(kept[group] and not verdicts[group] for group in shared),
    }
