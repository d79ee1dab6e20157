"""Where judges disagree: item by item, and two judges label by label. Pure.

An item's disagreement is the share of its pairs of judgments that differ,
1 - sum_c n_c (n_c - 1) / (n (n - 1)); undefined for an item with one judgment, which is left out.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.agreement.answers import Decision
from db.shape import TAKEN_ROLES


@dataclass(frozen=True)
class ItemDisagreement:
    """An item, how much its judgments differ (0 to 1), and each judge's label."""

    item: Hashable
    disagreement: float
    labels: dict[str, str]

    def without(self, judges: Collection[str]) -> float | None:
        """The disagreement without these judges; None where fewer than two others judged."""
        rest = [label for judge, label in self.labels.items() if judge not in judges]
        return _disagreement(rest) if len(rest) > 1 else None


def disagreements(decisions: Iterable[Decision]) -> list[ItemDisagreement]:
    """Items with two judgments or more, those judged most differently first."""
    labels: dict[Hashable, dict[str, str]] = {}
    for row in decisions:
        labels.setdefault(row.item, {})[row.judge] = row.label
    found = [
        ItemDisagreement(item, _disagreement(list(each.values())), each)
        for item, each in labels.items()
        if len(each) > 1
    ]
    return sorted(found, key=lambda each: (-each.disagreement, str(each.item)))


def choices_of_two(decisions: Iterable[Decision], one: str, other: str) -> Counter[tuple[str, str]]:
    """How often two judges gave each pair of labels to an item of both."""
    given: dict[str, dict[Hashable, str]] = {one: {}, other: {}}
    for row in decisions:
        if row.judge in given:
            given[row.judge][row.item] = row.label
    first, second = given[one], given[other]
    return Counter((first[item], second[item]) for item in first.keys() & second.keys())


def confusion_of(
    choices: Mapping[tuple[str, str], int], roles: Sequence[str]
) -> tuple[list[str], np.ndarray]:
    """The labels either used, and counts: rows the first's labels, columns the second's.

    choices: of two judges, by their labels; roles: of the shape of the judged groups, in its order.
    """
    used = {label for pair in choices for label in pair}
    labels = sorted(used, key=lambda label: label_rank(label, roles))
    table = np.zeros((len(labels), len(labels)), dtype=np.int64)
    for (first, second), number in choices.items():
        table[labels.index(first), labels.index(second)] = number
    return labels, table


def label_rank(label: str, roles: Sequence[str]) -> tuple[int, str]:
    """Roles first, in their order; other labels; distractors; "none" last."""
    if label in roles:
        return roles.index(label), ""
    return len(roles) + label.startswith("distractor") + 2 * (label in TAKEN_ROLES), label


def _disagreement(labels: Sequence[str]) -> float:
    n = len(labels)
    same = sum(count * (count - 1) for count in Counter(labels).values())
    return (n * (n - 1) - same) / (n * (n - 1))
