"""Whether the judged items of a study resemble those not judged yet, in what is known before. Pure.

An estimate from part of a queue stands for the whole only if which part was judged is chance. For
every field of `ItemKind`, Pearson's chi-square of judged against waiting items is compared with
RESAMPLES random parts of the same size (multivariate hypergeometric); p by Holm over the fields.
Of queues judged at random at most ALARM are reported: bench/study_estimates.py, docs/intervals.md.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import Final

import numpy as np

from db.rows import Row
from db.study.run_items import ItemKind

ALARM: Final = 0.05
RESAMPLES: Final = 4000
FIELDS: Final = ("source", "scenario", "verdict", "drop_reason", "passed", "missed")
WEIGHTED: Final = ("verdict", "passed")  # by every estimate, whatever the sample's strata


class Imbalance(Row):
    """A field in which judged and waiting items differ: the value that judged ones have most too
    often, its share of both, and whether the estimate weights the field's values."""

    field: str
    value: str
    judged: float
    waiting: float
    p: float
    weighted: bool


def imbalances(
    judged: Sequence[ItemKind], waiting: Sequence[ItemKind], strata: Collection[str] = ()
) -> list[Imbalance]:
    """The fields in which judged items differ from waiting ones by more than chance."""
    if not judged or not waiting:
        return []
    tested = []
    for field in FIELDS:
        here, there = (_counts(field, kinds) for kinds in (judged, waiting))
        names = sorted(here | there)
        if len(names) > 1:
            counts = np.array([[each[name] for name in names] for each in (here, there)])
            tested.append((_p(counts), field, names, counts))
    found: list[Imbalance] = []
    for place, (p, field, names, counts) in enumerate(sorted(tested, key=lambda each: each[0])):
        adjusted = p * (len(tested) - place)
        if adjusted >= ALARM:
            break  # Holm: none with a larger p is reported either
        shares = counts / counts.sum(axis=1, keepdims=True)
        most = int(np.argmax(shares[0] - shares[1]))
        found.append(
            Imbalance(
                field=field,
                value=names[most],
                judged=float(shares[0, most]),
                waiting=float(shares[1, most]),
                p=min(1.0, adjusted),
                weighted=field in WEIGHTED or field in strata,
            )
        )
    return found


def _counts(field: str, kinds: Iterable[ItemKind]) -> Counter[str]:
    return Counter(str(getattr(kind, field)) for kind in kinds)


def _p(counts: np.ndarray) -> float:
    """The share of random parts of the queue that differ as much; counts: (2, values)."""
    total, judged = counts.sum(axis=0), counts[0].sum()
    expected = total * judged / total.sum()
    parts = np.random.default_rng(0).multivariate_hypergeometric(total, judged, RESAMPLES)
    observed = float(((counts[0] - expected) ** 2 / total).sum())
    random = ((parts - expected) ** 2 / total).sum(axis=1)
    return float((1 + (random >= observed - 1e-9).sum()) / (1 + RESAMPLES))
