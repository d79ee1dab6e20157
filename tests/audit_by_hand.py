"""The measures of the notes' audit, recomputed with nothing of ours: plain loops over rows.

A row is (record, person, question, passage kind or "", answer). It needs no store and no numpy, so
that an error in ours is not repeated here.
"""

import random
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence

Row = tuple[str, str, str, str, str]
ROLES = {"positive": "2", "instruction_negative": "1", "hard_negative": "0"}


def acceptability(rows: Iterable[Row], question: str) -> float | None:
    """The share of yes among the answers."""
    answers = [answer for _, _, asked, _, answer in rows if asked == question]
    return answers.count("yes") / len(answers) if answers else None


def validity(rows: Iterable[Row], question: str, kinds: Sequence[str]) -> float | None:
    """The share of passages of these kinds that got the grade of their kind."""
    found = [
        ROLES[kind] == answer
        for _, _, asked, kind, answer in rows
        if asked == question and kind in kinds
    ]
    return sum(found) / len(found) if found else None


def strict(rows: Iterable[Row], question: str) -> float | None:
    """The share of (record, person) with every role right."""
    right: dict[tuple[str, str], list[bool]] = defaultdict(list)
    for record, person, asked, kind, answer in rows:
        if asked == question:
            right[record, person].append(ROLES[kind] == answer)
    return sum(map(all, right.values())) / len(right) if right else None


def kappa(pairs: Sequence[tuple[str, str]]) -> float:
    """Cohen's kappa of two people."""
    observed = sum(one == other for one, other in pairs) / len(pairs)
    ones, others = Counter(one for one, _ in pairs), Counter(other for _, other in pairs)
    expected = sum(ones[label] * others[label] for label in ones) / len(pairs) ** 2
    return (observed - expected) / (1 - expected)


def interval(
    rows: Sequence[Row], measure: Callable[[list[Row]], float | None], draws: int = 2000
) -> tuple[float, float]:
    """95 % by resampling records, one by one."""
    of: Mapping[str, list[Row]] = defaultdict(list)
    for row in rows:
        of[row[0]].append(row)
    records, chance, values = sorted(of), random.Random(11), []
    for _ in range(draws):
        sample: list[Row] = []
        for number, record in enumerate(chance.choices(records, k=len(records))):
            sample += [(f"{number}", *row[1:]) for row in of[record]]
        if (value := measure(sample)) is not None:
            values.append(value)
    values.sort()
    return values[int(0.025 * len(values))], values[int(0.975 * len(values)) - 1]
