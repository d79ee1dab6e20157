"""Where judges disagree: item by item, and two judges label by label. Pure.

An item's disagreement is the share of its pairs of judgments that differ,
1 - sum_c n_c (n_c - 1) / (n (n - 1)); undefined for an item with one judgment, which is left out.
"""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from analysis.agreement.answers import Decision, number_decisions
from analysis.agreement.cohen import confusion
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


def confusion_of(
    decisions: Iterable[Decision], one: str, other: str, roles: Sequence[str]
) -> tuple[list[str], np.ndarray]:
    """The labels either used, and counts: rows the first's labels, columns the second's.

    roles: of the shape of the judged groups, in its order.
    """
    answers = number_decisions(row for row in decisions if row.judge in (one, other))
    names = [judge.name for judge in answers.judges]
    if one not in names or other not in names:
        return [], np.zeros((0, 0), dtype=np.int64)
    codes = answers.matrix([names.index(one), names.index(other)])
    table = confusion(codes[:, 0], codes[:, 1], len(answers.labels))
    order = sorted(
        range(len(answers.labels)), key=lambda code: label_rank(answers.labels[code], roles)
    )
    used = [code for code in order if table[code].sum() + table[:, code].sum()]
    return [answers.labels[code] for code in used], table[np.ix_(used, used)]


def label_rank(label: str, roles: Sequence[str]) -> tuple[int, str]:
    """Roles first, in their order; other labels; distractors; "none" last."""
    if label in roles:
        return roles.index(label), ""
    return len(roles) + label.startswith("distractor") + 2 * (label in TAKEN_ROLES), label


def _disagreement(labels: Sequence[str]) -> float:
    n = len(labels)
    same = sum(count * (count - 1) for count in Counter(labels).values())
    return (n * (n - 1) - same) / (n * (n - 1))
