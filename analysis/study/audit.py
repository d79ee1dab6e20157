"""What an audit of records says of them: are their texts what they were made to be? Pure.

Of the answers of people to questions with an expected answer (that of a positive may be "answers
and satisfies the instruction", that of an instruction negative "answers but violates it"):

    acceptability    of a yes/no question: the share of its answers that are yes
    validity         the share of answers that are as expected: of positives, of negatives, which
                     are all other kinds, and of each kind
    strict validity  the share of records, as one person saw them, of which every answer about a
                     passage is as expected; a person who did not answer them all does not count

"Ambiguous" is an answer, and neither yes nor as expected. Every share is over answers: two people
count twice. Intervals resample the *records*, as the answers about one record depend on each other:
the 2.5 and 97.5 percentiles of `resamples` draws with a fixed seed. Where every record gives the
same share, as where all is valid, such an interval has no width: with n records and none that is
invalid, up to 3/n of others like them may be (the rule of three, Hanley and Lippman-Hand 1983).
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from db.question import YES, is_right

SEED: Final = 0
RESAMPLES: Final = 10_000
POSITIVE: Final = "positive"
NOTHING: Final = "no answer"
NUMBERED: Final = re.compile(r"_\d+$")


@dataclass(frozen=True)
class AuditAnswer:
    """An answer of a person about a record; `label` of the passage it is about, "" for another."""

    record: int
    question: str
    kind: str
    label: str
    expected: str | None
    judge: str
    answer: str


def kind_of(label: str) -> str:
    """What a passage was made to be: `instruction_negative` of `instruction_negative_2`."""
    return NUMBERED.sub("", label)


def audit_report(answers: Iterable[AuditAnswer], resamples: int = RESAMPLES) -> dict[str, Any]:
    """`acceptability` by question, and `validity` of the questions about passages.

    Each figure has `value`, `interval`, and how many answers (or records of a person) `of` how many
    `records` it counts.
    """
    rows = list(answers)
    places = {record: place for place, record in enumerate(sorted({row.record for row in rows}))}
    weights = _weights(len(places), resamples)
    accepted: dict[str, list[tuple[int, bool]]] = {}
    kinds: dict[str, dict[str, list[tuple[int, bool]]]] = {}
    whole: dict[str, dict[tuple[int, str], list[bool]]] = {}
    wanted: dict[str, dict[int, set[str]]] = {}
    for row in rows:
        place = places[row.record]
        if row.kind == "yes_no":
            accepted.setdefault(row.question, []).append((place, row.answer == YES))
        if row.label and row.expected is not None:
            valid = bool(is_right(row.answer, row.expected))
            of_question = kinds.setdefault(row.question, {})
            of_question.setdefault(kind_of(row.label), []).append((place, valid))
            person = whole.setdefault(row.question, {}).setdefault((place, row.judge), [])
            person.append(valid)
            wanted.setdefault(row.question, {}).setdefault(place, set()).add(row.label)
    found: dict[str, Any] = {
        "records": len(places),
        "resamples": resamples,
        "acceptability": {question: _share(cases, weights) for question, cases in accepted.items()},
        "validity": {},
    }
    for question, by_kind in kinds.items():
        of_kind = {kind: _share(by_kind[kind], weights) for kind in sorted(by_kind)}
        negatives = [case for kind, cases in by_kind.items() if kind != POSITIVE for case in cases]
        complete = [
            (place, all(valid))
            for (place, _), valid in whole[question].items()
            if len(valid) == len(wanted[question][place])
        ]
        found["validity"][question] = {
            "positives": _share(by_kind.get(POSITIVE, []), weights),
            "negatives": _share(negatives, weights),
            "by_kind": of_kind,
            "strict_record_validity": _share(complete, weights),
        }
    return found


def audit_lines(report: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The figures of a report with their names, in the order in which they are read."""
    lines = [(f"{key}: acceptable", one) for key, one in report["acceptability"].items()]
    for key, one in report["validity"].items():
        lines += [
            (f"{key}: valid positives", one["positives"]),
            (f"{key}: valid negatives", one["negatives"]),
            *((f"{key}: valid {kind}", share) for kind, share in one["by_kind"].items()),
            (f"{key}: records valid in every passage", one["strict_record_validity"]),
        ]
    return lines


def _weights(records: int, resamples: int) -> np.ndarray:
    """How often each record is in each resample: (resamples, records), of whole numbers."""
    generator = np.random.default_rng(SEED)
    if not records or not resamples:
        return np.zeros((0, records))
    even = np.full(records, 1 / records)
    return generator.multinomial(records, even, size=resamples).astype(np.float32)


def _share(cases: Sequence[tuple[int, bool]], weights: np.ndarray) -> dict[str, Any]:
    """The share of cases that hold, with its interval; `cases`: (place of the record, holds)."""
    if not cases:
        return {"value": None, "interval": None, "of": 0, "records": 0, "reason": NOTHING}
    number = weights.shape[1]
    places = np.array([place for place, _ in cases])
    holds = np.array([holds for _, holds in cases], dtype=np.float64)
    hits = np.bincount(places, holds, minlength=number)
    counts = np.bincount(places, minlength=number).astype(np.float64)
    found: dict[str, Any] = {
        "value": float(holds.mean()),
        "interval": None,
        "of": len(cases),
        "records": int((counts > 0).sum()),
    }
    if len(weights):
        drawn, of = weights @ hits, weights @ counts
        shares = drawn[of > 0] / of[of > 0]
        found["interval"] = [float(np.quantile(shares, tail)) for tail in (0.025, 0.975)]
    return found
