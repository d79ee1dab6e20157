"""Agreement of people and models about the same items. Pure: numpy only, fit for the UI process.

A label is *which candidate* was chosen, by its role (positive, instruction_negative, …,
distractor_1, none), since the candidates differ from item to item and their place on the screen
from judge to judge.

What would surprise: simulated judges stand in for people only where no real person has judged;
as soon as one has, they still appear among the pairs but in no mean.
"""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from analysis.cohen import Kappa, cohen_kappa, confusion

PERSON, MODEL = "person", "model"


class Decision(NamedTuple):
    """What a judge says about an item."""

    item: Hashable
    judge: str
    label: str
    kind: str = PERSON
    simulated: bool = False
    offline: bool = False


@dataclass(frozen=True)
class JudgeInfo:
    """A judge as far as agreement cares."""

    name: str
    kind: str
    simulated: bool
    offline: bool


@dataclass(frozen=True)
class Matrix:
    """Decisions as numbers: `codes[item, judge]` is the place of the label in `labels`, -1 a gap.

    Judges: people first, then models, each by name. Labels are sorted. Items as they came.
    """

    codes: np.ndarray
    items: list[Hashable]
    judges: list[JudgeInfo]
    labels: list[str]


def decision_matrix(decisions: Iterable[Decision]) -> Matrix:
    """The matrix of the decisions; of two decisions of one judge on one item the last counts."""
    rows = list(decisions)
    items: dict[Hashable, int] = {}
    item_codes = [items.setdefault(row.item, len(items)) for row in rows]
    infos = {row.judge: JudgeInfo(row.judge, row.kind, row.simulated, row.offline) for row in rows}
    judges = sorted(infos.values(), key=lambda judge: (judge.kind == MODEL, judge.name))
    places = {judge.name: place for place, judge in enumerate(judges)}
    labels = sorted({row.label for row in rows})
    label_codes = {label: code for code, label in enumerate(labels)}
    codes = np.full((len(items), len(judges)), -1, dtype=np.int32)
    codes[item_codes, [places[row.judge] for row in rows]] = [
        label_codes[row.label] for row in rows
    ]
    return Matrix(codes, list(items), judges, labels)


def people(judges: Sequence[JudgeInfo]) -> list[JudgeInfo]:
    """Who counts as a person: real people, or simulated ones where there is no real one."""
    persons = [judge for judge in judges if judge.kind == PERSON]
    return [judge for judge in persons if not judge.simulated] or persons


def agreement_report(decisions: Iterable[Decision]) -> dict[str, Any]:
    """Pairwise kappas and their human–human and human–model means, as `--json` prints them.

    A mean is over the pairs whose kappa is defined; how many are not is told beside it.
    """
    matrix = decision_matrix(decisions)
    pairs = [_pair(matrix, one, other) for one, other in combinations(range(len(matrix.judges)), 2)]
    humans = people(matrix.judges)
    names = {judge.name for judge in humans}
    models = [judge.name for judge in matrix.judges if judge.kind == MODEL]
    left_out = sum(j.simulated and j.kind == PERSON and j.name not in names for j in matrix.judges)
    return {
        "items": len(matrix.items),
        "judgments": int((matrix.codes >= 0).sum()),
        "labels": matrix.labels,
        "judges": [
            {
                "judge": judge.name,
                "kind": judge.kind,
                "simulated": judge.simulated,
                "offline": judge.offline,
                "items": int((matrix.codes[:, place] >= 0).sum()),
            }
            for place, judge in enumerate(matrix.judges)
        ],
        "pairs": pairs,
        "human_human": _mean(
            [pair for pair in pairs if {pair["judge_a"], pair["judge_b"]} <= names],
            "fewer than two people have judged",
        ),
        "human_model": {
            model: _mean(
                [
                    pair
                    for pair in pairs
                    if model in (pair["judge_a"], pair["judge_b"])
                    and names & {pair["judge_a"], pair["judge_b"]}
                ],
                "no person has judged",
            )
            for model in models
        },
        "simulated": any(judge.simulated for judge in humans),
        "simulated_left_out": left_out,
    }


def _pair(matrix: Matrix, one: int, other: int) -> dict[str, Any]:
    table = confusion(matrix.codes[:, one], matrix.codes[:, other], len(matrix.labels))
    return {
        "judge_a": matrix.judges[one].name,
        "judge_b": matrix.judges[other].name,
        **as_json(cohen_kappa(table)),
    }


def as_json(kappa: Kappa) -> dict[str, Any]:
    """A kappa's numbers; `reason` is there only where it is undefined."""
    values = {
        "kappa": kappa.value,
        "standard_error": kappa.standard_error,
        "agreement": kappa.agreement,
        "items": kappa.items,
    }
    return values if kappa.reason is None else {**values, "reason": kappa.reason}


def _mean(pairs: Sequence[dict[str, Any]], nobody: str) -> dict[str, Any]:
    kappas = [pair["kappa"] for pair in pairs if pair["kappa"] is not None]
    agreements = [pair["agreement"] for pair in pairs if pair["agreement"] is not None]
    mean: dict[str, Any] = {
        "kappa": float(np.mean(kappas)) if kappas else None,
        "agreement": float(np.mean(agreements)) if agreements else None,
        "pairs": len(kappas),
        "undefined_pairs": len(pairs) - len(kappas),
    }
    if not kappas:
        reasons = sorted({pair["reason"] for pair in pairs})
        mean["reason"] = "; ".join(reasons) if pairs else nobody
    return mean
