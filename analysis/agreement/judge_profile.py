"""One judge's work in numbers: agreement with the others and bias towards a place. Pure.

Agreement is kappa with the group of the other people, or of the models (`group_kappa`).

Bias: candidates are shuffled for every judgment, so that a judge without a preference for places
chooses each of them equally often, whatever is right. Reported: the share of every place among the
choices, and the p-value of Pearson's chi-squared test against the shares that the lengths of the
lists make equal: sum (chosen - expected)^2 / expected, places - 1 degrees of freedom. Undefined
where a place is expected fewer than five times: the test does not hold there.
"""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from analysis.found.agreement import Figure, PositionBias
from db.rows import SparseRow
from db.study.quality import JudgeRow

MIN_EXPECTED = 5.0


class JudgeProfile(SparseRow):
    """One judge's work; `with_people`, `with_models`: agreement with the others of each kind."""

    judge: str
    kind: str
    judged: int
    median_seconds: float | None
    gold_seen: int | None
    gold_accuracy: float | None
    flagged: str
    with_people: Figure
    with_models: Figure
    position_bias: PositionBias


def judge_profiles(
    report: Mapping[str, Any],
    quality: Iterable[JudgeRow],
    choices: Mapping[str, Sequence[tuple[int, int]]],
    *,
    with_gold: bool = True,
) -> list[JudgeProfile]:
    """A row per judge of an agreement report, people first; what is undefined has a reason.

    `choices`: `db.outcome.position_bias.study_choices`. Without gold its counts are None:
    for a reader who may still be given gold items, and reads in a count which they were.
    """
    by_name = {each.name: each for each in quality}
    kinds = {judge["judge"]: judge["kind"] for judge in report["judges"]}
    judged = {judge["judge"]: judge["items"] for judge in report["judges"]}
    profiles = []
    for name, kind in kinds.items():
        each = by_name.get(name)
        seen = each.gold_seen if each else 0
        profiles.append(
            JudgeProfile(
                judge=name,
                kind=kind,
                judged=judged[name],
                median_seconds=each.median_seconds if each else None,
                gold_seen=seen if with_gold else None,
                gold_accuracy=each.gold_right / seen if with_gold and each and seen else None,
                flagged=report["flagged"].get(name, ""),
                with_people=report["with_people"][name],
                with_models=report["with_models"][name],
                position_bias=place_bias(choices.get(name, ())),
            )
        )
    return profiles


def place_bias(choices: Sequence[tuple[int, int]]) -> PositionBias:
    """Bias of choices (place from 1, places on the list): shares, chi-squared, p."""
    if not choices:
        return PositionBias(choices=0, shares=(), p=None, reason="no choice of a passage yet")
    places = max(length for _, length in choices)
    chosen = Counter(place for place, _ in choices)
    lengths = Counter(length for _, length in choices)
    expected = [
        sum(count / length for length, count in lengths.items() if length >= place)
        for place in range(1, places + 1)
    ]
    profile: dict[str, Any] = {
        "choices": len(choices),
        "shares": [chosen[place] / len(choices) for place in range(1, places + 1)],
    }
    if places < 2:
        return PositionBias(**profile, p=None, reason="one place on the list: nothing to prefer")
    if min(expected) < MIN_EXPECTED:
        reason = f"{len(choices)} choices are too few for a test over {places} places"
        return PositionBias(**profile, p=None, reason=reason)
    statistic = sum(
        (chosen[place] - share) ** 2 / share for place, share in enumerate(expected, start=1)
    )
    p = chi_squared_tail(statistic, places - 1)
    return PositionBias(**profile, chi_squared=statistic, p=p)


def chi_squared_tail(statistic: float, degrees: int) -> float:
    """P(X >= statistic) for X with a chi-squared distribution of whole `degrees` >= 1.

    Q(a, x) = Q(a - 1, x) + x^(a-1) e^-x / Gamma(a), from Q(1/2, x) = erfc(sqrt x) and Q(0, x) = 0
    (NIST DLMF 8.8.6), with a = degrees / 2 and x = statistic / 2.
    """
    x = statistic / 2
    if x <= 0:
        return 1.0
    is_odd = degrees % 2 == 1
    tail = math.erfc(math.sqrt(x)) if is_odd else 0.0
    for step in range(degrees // 2):
        a = step + (1.5 if is_odd else 1.0)
        tail += math.exp((a - 1) * math.log(x) - x - math.lgamma(a))
    return tail
