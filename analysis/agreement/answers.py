"""Decisions of judges as numbers: what every measure of agreement is computed from. Pure."""

import math
from array import array
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, NamedTuple

import numpy as np

from db.question import number_of

PERSON, MODEL = "person", "model"


class Decision(NamedTuple):
    """What a judge says about an item."""

    item: Hashable
    judge: str
    label: str
    kind: str = PERSON
    simulated: bool = False
    offline: bool = False
    decided_at: datetime | None = None


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
    `decided`: seconds since 1970 (UTC), NaN where the time is unknown. `is_ordered`: those labels
    that are numbers are grades or scores, in the order of their values. `record`: of each item what
    it is about, (items,); None where no two items are about the same.
    """

    item: np.ndarray
    judge: np.ndarray
    label: np.ndarray
    decided: np.ndarray
    items: list[Hashable]
    judges: list[JudgeInfo]
    labels: list[str]
    is_ordered: bool = False
    record: np.ndarray | None = None

    @property
    def ordered(self) -> list[int]:
        """The codes of the labels that have an order, in it; none where they are only names."""
        values = {code: number_of(label) for code, label in enumerate(self.labels)}
        known = {code: value for code, value in values.items() if value is not None}
        return sorted(known, key=known.__getitem__) if self.is_ordered else []

    def matrix(self, judges: Sequence[int]) -> np.ndarray:
        """Labels of these judges, shape (items, judges), int16; -1 is a gap."""
        columns = np.full(len(self.judges), -1, dtype=np.int64)
        columns[list(judges)] = np.arange(len(judges))
        ours = columns[self.judge] >= 0
        codes = np.full((len(self.items), len(judges)), -1, dtype=np.int16)
        codes[self.item[ours], columns[self.judge[ours]]] = self.label[ours]
        return codes

    def of_items(self, chosen: np.ndarray) -> "Answers":
        """The answers to the items at these places alone; judges and labels stay as they are."""
        place = np.full(len(self.items), -1, dtype=np.int64)
        place[chosen] = np.arange(len(chosen))
        rows = np.flatnonzero(place[self.item] >= 0)
        rows = rows[np.argsort(place[self.item[rows]], kind="stable")]
        return replace(
            self,
            item=place[self.item[rows]],
            judge=self.judge[rows],
            label=self.label[rows],
            decided=self.decided[rows],
            items=[self.items[number] for number in chosen],
            record=self.record_of(chosen),
        )

    def record_of(self, items: np.ndarray) -> np.ndarray | None:
        """The records of these items; None where no two items are about one."""
        return None if self.record is None else self.record[items]

    def label_counts(self, judges: Sequence[int]) -> np.ndarray:
        """How often each label was given to each item by these judges: (items, labels)."""
        ours = np.isin(self.judge, list(judges))
        flat = self.item[ours] * len(self.labels) + self.label[ours]
        counts = np.bincount(flat, minlength=len(self.items) * len(self.labels))
        return counts.reshape(len(self.items), len(self.labels))


def number_decisions(
    decisions: Iterable[Decision],
    *,
    is_ordered: bool = False,
    record_of: Mapping[Any, Hashable] | None = None,
) -> Answers:
    """The decisions as numbers; of two decisions of one judge on one item the last counts.

    record_of: the records of those items that share theirs with another one.

    Reads the decisions once and keeps 32 bytes of each: a million of a stream need no list.
    """
    items: dict[Hashable, int] = {}
    infos: dict[str, int] = {}
    found: list[JudgeInfo] = []
    texts: dict[str, int] = {}
    item, judge, label, times = array("q"), array("q"), array("q"), array("d")
    for row in decisions:
        item.append(items.setdefault(row.item, len(items)))
        place = infos.setdefault(row.judge, len(infos))
        if place == len(found):
            found.append(JudgeInfo(row.judge, row.kind, row.simulated, row.offline))
        judge.append(place)
        label.append(texts.setdefault(row.label, len(texts)))
        times.append(math.nan if row.decided_at is None else row.decided_at.timestamp())
    judges = sorted(found, key=lambda each: (each.kind == MODEL, each.name))
    labels = sorted(texts)
    judge_place = np.zeros(len(judges), dtype=np.int64)
    judge_place[[infos[each.name] for each in judges]] = np.arange(len(judges))
    label_place = np.zeros(len(labels), dtype=np.int64)
    label_place[[texts[each] for each in labels]] = np.arange(len(labels))
    items_of = np.frombuffer(item, dtype=np.int64)
    judges_of = judge_place[np.frombuffer(judge, dtype=np.int64)]
    order = np.argsort(items_of * max(len(judges), 1) + judges_of, kind="stable")
    one, other = items_of[order], judges_of[order]
    last = np.ones(len(order), dtype=bool)
    last[:-1] = (one[1:] != one[:-1]) | (other[1:] != other[:-1])
    order = order[last]
    return Answers(
        items_of[order],
        judges_of[order],
        label_place[np.frombuffer(label, dtype=np.int64)][order],
        np.frombuffer(times, dtype=np.float64)[order],
        list(items),
        judges,
        labels,
        is_ordered,
        _records(list(items), record_of or {}),
    )


def _records(items: Sequence[Hashable], record_of: Mapping[Any, Hashable]) -> np.ndarray | None:
    """Codes of the items' records; None where no two items are about one."""
    codes: dict[Hashable, int] = {}
    found = [
        codes.setdefault((item in record_of, record_of.get(item, item)), len(codes))
        for item in items
    ]
    return np.array(found, dtype=np.int64) if len(codes) < len(items) else None


def patterns(codes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The different rows of a table of small whole numbers, how often each occurs, and of each row
    of the table which it is."""
    which = np.zeros(len(codes), dtype=np.int64)
    if codes.size == 0:
        rows = codes[:1] if codes.shape[1] == 0 else codes
        return rows, np.full(min(1, len(codes)), len(codes)), which
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
    _, first, which, counts = np.unique(
        keys, return_index=True, return_inverse=True, return_counts=True
    )
    return codes[first], counts, which
