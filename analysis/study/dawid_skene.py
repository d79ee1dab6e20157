"""The right answer of every item and the errors of every judge, from judgments alone. Pure.

Dawid and Skene (1979): item i has a true label t with probability prior[t]; judge j then answers l
with probability confusion[j, t, l], independently of the others. EM from vote shares:

    E  P(t | i)  ~ prior[t] prod_j confusion[j, t, answer of j]
    M  confusion[j, t, l] = (sum of P(t | i) where j answered l + a[t, l]) / (… over all l)
       a[t, l] = smoothing (half on t = l, half spread over all labels)

With smoothing 0 it is the published estimate (`tests/analysis/test_dawid_skene.py`: crowd-kit and
the 45 patients of the paper). Smoothing is what a judge with few items needs: one answer would
otherwise make them always right or always wrong.

`strata` gives items a prior each by stratum: an item of another scenario has another usual answer.
Note: with two judges it is unknown which of them errs; see `judge_quality`.
"""

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from analysis.agreement.answers import Answers, Decision, number_decisions
from analysis.figures.paired import holm
from analysis.figures.student import two_sided_p

SMOOTHING: Final = 1.0
ITERATIONS: Final = 1000
TOLERANCE: Final = 1e-7
TINY: Final = 1e-300
MIN_JUDGES: Final = 3
MIN_ITEMS: Final = 10
SPREAD: Final = 1e-12  # below it differences are rounding errors
SIGNIFICANCE: Final = 0.05
TWO_JUDGES: Final = "fewer than three judges: it is unknown which of two errs"
FEW_ITEMS: Final = f"fewer than {MIN_ITEMS} items that others judged too"


@dataclass(frozen=True)
class Consensus:
    """What EM found.

    `probability`: (items, labels). `confusion`: (judges, labels, labels), rows by true label.
    `prior`: (strata, labels).
    """

    answers: Answers
    probability: np.ndarray
    confusion: np.ndarray
    prior: np.ndarray
    stratum: np.ndarray
    iterations: int

    def without_each(self) -> np.ndarray:
        """P(true label) for every decision without that decision: (decisions, labels)."""
        answers = self.answers
        log = np.log(np.maximum(self.probability, TINY))[answers.item]
        log -= np.log(np.maximum(self.confusion[answers.judge, :, answers.label], TINY))
        return _normalised(log)


def dawid_skene(
    decisions: Iterable[Decision],
    *,
    smoothing: float = SMOOTHING,
    strata: Mapping[Hashable, str] | None = None,
    iterations: int = ITERATIONS,
    tolerance: float = TOLERANCE,
) -> Consensus:
    """EM to convergence. `decisions` may have gaps; raises ValueError without any."""
    answers = number_decisions(decisions)
    if not len(answers.item):
        raise ValueError("no decision: there is nothing to estimate")
    items, judges, labels = len(answers.items), len(answers.judges), len(answers.labels)
    names = [(strata or {}).get(item, "") for item in answers.items]
    places = {name: place for place, name in enumerate(sorted(set(names)))}
    stratum = np.array([places[name] for name in names])
    votes = np.zeros((items, labels))
    np.add.at(votes, (answers.item, answers.label), 1.0)
    probability = votes / votes.sum(axis=1, keepdims=True)
    extra = smoothing * (np.eye(labels) / 2 + 1 / (2 * labels))
    done = 0
    for done in range(1, iterations + 1):  # noqa: B007 - the last number is reported
        prior = np.zeros((len(places), labels))
        np.add.at(prior, stratum, probability)
        prior += smoothing / labels
        prior /= prior.sum(axis=1, keepdims=True)
        # counts[j, l, t]: how often j answered l where the truth is t, as far as is known
        counts = np.zeros((judges, labels, labels))
        np.add.at(counts, (answers.judge, answers.label), probability[answers.item])
        confusion = counts.transpose(0, 2, 1) + extra
        confusion /= np.maximum(confusion.sum(axis=2, keepdims=True), TINY)
        log = np.log(np.maximum(prior, TINY))[stratum]
        np.add.at(
            log, answers.item, np.log(np.maximum(confusion, TINY))[answers.judge, :, answers.label]
        )
        before, probability = probability, _normalised(log)
        if np.abs(probability - before).max() < tolerance:
            break
    return Consensus(answers, probability, confusion, prior, stratum, done)


def _normalised(log: np.ndarray) -> np.ndarray:
    shares = np.exp(log - log.max(axis=1, keepdims=True))
    found: np.ndarray = shares / shares.sum(axis=1, keepdims=True)
    return found


def consensus_rows(consensus: Consensus) -> list[dict[str, Any]]:
    """A row per item: the most probable label, its probability, and the votes."""
    answers = consensus.answers
    votes: dict[int, Counter[str]] = defaultdict(Counter)
    for item, label in zip(answers.item, answers.label, strict=True):
        votes[int(item)][answers.labels[int(label)]] += 1
    return [
        {
            "item": answers.items[place],
            "label": answers.labels[int(np.argmax(row))],
            "probability": float(row.max()),
            "votes": dict(votes[place]),
        }
        for place, row in enumerate(consensus.probability)
    ]


def judge_quality(
    consensus: Consensus, kind_of: Mapping[Hashable, str] | None = None
) -> list[dict[str, Any]]:
    """A row per judge: how often right, next to the others on the same items; outliers named.

    `accuracy` is the mean probability, from the others' answers alone, of what the judge answered;
    `others` the same of the others on those items, so that hard items are held against nobody. The
    difference is tested by a paired t over items, with Holm's correction over judges: an outlier is
    clearly below the others. `worst` is the kind of item (`kind_of`, else the true label) where the
    judge is furthest below, with what they choose there instead.
    """
    answers = consensus.answers
    right = consensus.without_each()[np.arange(len(answers.item)), answers.label]
    items = len(answers.items)
    total = np.bincount(answers.item, weights=right, minlength=items)
    number = np.bincount(answers.item, minlength=items)
    truth = consensus.probability.argmax(axis=1)
    kinds = [
        kind_of[item] if kind_of is not None else answers.labels[truth[place]]
        for place, item in enumerate(answers.items)
    ]
    rows = []
    for place, judge in enumerate(answers.judges):
        mine = np.flatnonzero((answers.judge == place) & (number[answers.item] > 1))
        row: dict[str, Any] = {
            "judge": judge.name,
            "items": int((answers.judge == place).sum()),
            "accuracy": None,
            "others": None,
            "p": None,
            "outlier": False,
        }
        rows.append(row)
        if len(answers.judges) < MIN_JUDGES or len(mine) < MIN_ITEMS:
            row["reason"] = TWO_JUDGES if len(answers.judges) < MIN_JUDGES else FEW_ITEMS
            continue
        row["compared"] = len(mine)
        of = answers.item[mine]
        others = (total[of] - right[mine]) / (number[of] - 1)
        row["accuracy"], row["others"] = float(right[mine].mean()), float(others.mean())
        apart = right[mine] - others
        error = float(apart.std(ddof=1)) / len(mine) ** 0.5
        row["p"] = _p_of(float(apart.mean()), error, len(mine))
        row |= _worst(answers, mine, apart, kinds, right)
    _mark_outliers(rows)
    return rows


def _p_of(mean: float, error: float, items: int) -> float:
    """Two-sided p by a paired t; where every item has the same difference, by the sign test."""
    if error > SPREAD:
        return two_sided_p(mean / error, items - 1)
    return 1.0 if abs(mean) <= SPREAD else 2.0 ** (1 - items)


def _worst(
    answers: Answers,
    mine: np.ndarray,
    apart: np.ndarray,
    kinds: list[str],
    right: np.ndarray,
) -> dict[str, Any]:
    by_kind: dict[str, list[int]] = defaultdict(list)
    for place, row in enumerate(mine):
        by_kind[kinds[answers.item[row]]].append(place)
    enough = {kind: places for kind, places in by_kind.items() if len(places) >= MIN_ITEMS // 2}
    if not enough:
        return {}
    worst = min(sorted(enough), key=lambda kind: float(apart[enough[kind]].mean()))
    rows = mine[enough[worst]]
    wrong = Counter(answers.labels[answers.label[row]] for row in rows if right[row] < 0.5)
    found: dict[str, Any] = {
        "worst": worst,
        "worst_items": len(rows),
        "worst_accuracy": float(right[rows].mean()),
        "worst_others": float((right[rows] - apart[enough[worst]]).mean()),
    }
    if wrong:
        found["instead"] = wrong.most_common(1)[0][0]
    return found


def _mark_outliers(rows: list[dict[str, Any]]) -> None:
    for row, p in zip(rows, holm([row["p"] for row in rows]), strict=True):
        row["p"] = p
        row["outlier"] = p is not None and p < SIGNIFICANCE and row["accuracy"] < row["others"]
