"""Decisions of judges as numbers: what every measure of agreement is computed from. Pure."""

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

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
class Answers:
    """One row per decision, by item and then judge: codes into `items`, `judges`, `labels`.

    Judges: people first, then models, each by name. Labels are sorted. Items as they came.
    """

    item: np.ndarray
    judge: np.ndarray
    label: np.ndarray
    items: list[Hashable]
    judges: list[JudgeInfo]
    labels: list[str]

    def matrix(self, judges: Sequence[int]) -> np.ndarray:
        """Labels of these judges, shape (items, judges), int16; -1 is a gap."""
        columns = np.full(len(self.judges), -1, dtype=np.int64)
        columns[list(judges)] = np.arange(len(judges))
        ours = columns[self.judge] >= 0
        codes = np.full((len(self.items), len(judges)), -1, dtype=np.int16)
        codes[self.item[ours], columns[self.judge[ours]]] = self.label[ours]
        return codes

    def label_counts(self, judges: Sequence[int]) -> np.ndarray:
        """How often each label was given to each item by these judges: (items, labels)."""
        ours = np.isin(self.judge, list(judges))
        flat = self.item[ours] * len(self.labels) + self.label[ours]
        counts = np.bincount(flat, minlength=len(self.items) * len(self.labels))
        return counts.reshape(len(self.items), len(self.labels))


def number_decisions(decisions: Iterable[Decision]) -> Answers:
    """The decisions as numbers; of two decisions of one judge on one item the last counts."""
    rows = list(decisions)
    items: dict[Hashable, int] = {}
    item = np.array([items.setdefault(row.item, len(items)) for row in rows], dtype=np.int64)
    infos: dict[str, JudgeInfo] = {}
    for row in rows:
        if row.judge not in infos:
            infos[row.judge] = JudgeInfo(row.judge, row.kind, row.simulated, row.offline)
    judges = sorted(infos.values(), key=lambda judge: (judge.kind == MODEL, judge.name))
    places = {info.name: place for place, info in enumerate(judges)}
    judge = np.array([places[row.judge] for row in rows], dtype=np.int64)
    labels = sorted({row.label for row in rows})
    codes = {label: code for code, label in enumerate(labels)}
    label = np.array([codes[row.label] for row in rows], dtype=np.int64)
    order = np.argsort(item * max(len(judges), 1) + judge, kind="stable")
    item, judge, label = item[order], judge[order], label[order]
    last = np.ones(len(rows), dtype=bool)
    last[:-1] = (item[1:] != item[:-1]) | (judge[1:] != judge[:-1])
    return Answers(item[last], judge[last], label[last], list(items), judges, labels)


def common_items(answers: Answers) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Every two decisions on one item, as places of rows (the earlier judge first), in blocks.

    As much work as there are such pairs, whatever the number of judges.
    """
    for apart in range(1, len(answers.judges)):
        one = np.flatnonzero(answers.item[:-apart] == answers.item[apart:])
        if len(one) == 0:
            return
        yield one, one + apart


def pair_tables(answers: Answers) -> np.ndarray:
    """Counts by label of the one and of the other judge: (judges, judges, labels, labels).

    Filled where the first judge stands before the second.
    """
    judges, labels = len(answers.judges), len(answers.labels)
    shape = (judges, judges, labels, labels)
    tables = np.zeros(judges * judges * labels * labels, dtype=np.int64)
    for one, other in common_items(answers):
        pair = answers.judge[one] * judges + answers.judge[other]
        cell = answers.label[one] * labels + answers.label[other]
        tables += np.bincount(pair * labels * labels + cell, minlength=len(tables))
    return tables.reshape(shape)


def patterns(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The different rows of a table of small whole numbers, and how often each occurs."""
    if codes.size == 0:
        return codes[:1] if codes.shape[1] == 0 else codes, np.full(min(1, len(codes)), len(codes))
    low = int(codes.min())
    base = int(codes.max()) - low + 1
    keys = np.zeros(len(codes), dtype=np.int64)
    distinct = 1
    for column in codes.T:
        if distinct * base >= 2**62:
            different, keys = np.unique(keys, return_inverse=True)
            distinct = len(different)
        keys = keys * base + (column.astype(np.int64) - low)
        distinct *= base
    _, first, counts = np.unique(keys, return_index=True, return_counts=True)
    return codes[first], counts
