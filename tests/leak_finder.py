"""Whether roles can be guessed from what an annotator received: features over all of it, and a
classifier's AUC on items it was not fitted to, against what chance gives.

The texts of the study are exchangeable between roles (tests/exchangeable_world.py), so any AUC
above chance is a leak of ours. Chance is the truth shuffled among the items, or among the passages
of each item or card, with the classifier's scores left as they are.
"""

import hashlib
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray
from reading_annotator import Sighting
from sklearn.ensemble import ExtraTreesClassifier
from sklearn.model_selection import GroupKFold

from db.shape import INF_IR
from db.study.sampling import sample_items

TEXTS = ("instruction", "query", "candidates")
MODULI = (2, 3, 4, 5, 6, 7, 10, 11)
FOLDS = 5
LEVEL = 0.999
Matrix = NDArray[np.float64]


@dataclass(frozen=True)
class Truth:
    """What the store knows of a sighting: part, scenario, and the label at each place.

    `card`: the group whose passages a card asks about one by one, `scenario` then the kind of the
    passage that this item is about; None for an item that is all of its group.
    """

    is_gold: bool
    scenario: str
    labels: tuple[str, ...]
    card: int | None = None


@dataclass(frozen=True)
class Finding:
    """How well a target was guessed, and how well chance guesses it once in 1 / (1 - level)."""

    target: str
    auc: float
    bound: float

    @property
    def is_leak(self) -> bool:
        """Whether chance does not explain it."""
        return self.auc > self.bound


def find_leaks(seen: Sequence[Sighting], truths: Sequence[Truth]) -> list[Finding]:
    """All targets; the level holds for all of them together."""
    targets = [*(f"item is {role}" for role in INF_IR.roles), "item is gold"]
    targets += [*(f"passage is {role}" for role in INF_IR.roles), "passage is right"]
    if truths[0].card is not None:
        kinds = sorted({truth.scenario for truth in truths})
        targets = [*(f"item is {kind}" for kind in kinds), "item is gold"]
    level = 1 - (1 - LEVEL) / len(targets)
    return [find_leak(seen, truths, target, level=level) for target in targets]


def find_leak(
    seen: Sequence[Sighting], truths: Sequence[Truth], target: str, *, level: float = LEVEL
) -> Finding:
    """How well one target is guessed from the sightings' features."""
    what, _, wanted = target.partition(" is ")
    of_item = [dict(item_features(each)) for each in seen]
    if what == "item" and truths[0].card is None:
        rows, groups = of_item, list(range(len(seen)))
        truth = [t.is_gold if wanted == "gold" else t.scenario == wanted for t in truths]
    elif what == "item":
        # items of a card share everything but what they are about; all or none of them are gold
        first = {known.card: number for number, known in reversed([*enumerate(truths)])}
        numbers = sorted(first.values()) if wanted == "gold" else range(len(seen))
        rows = [
            of_item[n] | dict(passage_features(seen[n], seen[n].item["about"])) for n in numbers
        ]
        groups = [truths[n].card or 0 for n in numbers]
        truth = [
            (t.is_gold if wanted == "gold" else t.scenario == wanted)
            for t in (truths[n] for n in numbers)
        ]
    else:
        rows, groups, truth = [], [], []
        for number, (each, features, known) in enumerate(zip(seen, of_item, truths, strict=True)):
            for place, label in enumerate(known.labels):
                rows.append({**features, **dict(passage_features(each, place))})
                groups.append(number)
                truth.append(label == (known.scenario if wanted == "right" else wanted))
    y = np.array(truth, dtype=np.int64)
    scores = _scores_out_of_fold(_matrix(rows), y, np.array(groups))
    is_alone = len(set(groups)) == len(groups)
    within = None if is_alone else np.array(groups)
    return Finding(target, _auc(scores, y), _bound(scores, y, level, within=within))


def item_features(seen: Sighting) -> Iterator[tuple[str, float]]:
    """Everything of a sighting but the texts themselves, as numbers."""
    yield from _of_number("number", seen.number)
    yield "place", seen.place
    yield from ((f"traffic {name}", value) for name, value in seen.traffic.items())
    raw = str(seen.item)
    texts = [seen.item["instruction"], seen.item["query"], *seen.item["candidates"]]
    yield "item bytes without texts", len(raw) - sum(len(repr(text)) for text in texts)
    yield "keys", int.from_bytes(hashlib.sha256(str(list(seen.item)).encode()).digest()[:4])
    yield from ((f"length {n}", len(text)) for n, text in enumerate(texts))
    for path, value in _leaves(seen.item, "item", without=TEXTS):
        yield from _of_leaf(path, value)
    frame = {name: value for name, value in seen.frame.items() if name != "items"}
    for path, value in _leaves(frame, "frame", without=("acknowledged", "scope")):
        yield from _of_leaf(path, value)
    if seen.before:
        for name in ("done", "left"):
            yield f"change of {name}", seen.frame[name] - seen.before[name]
        total = [frame["done"] + frame["left"] for frame in (seen.before, seen.frame)]
        yield "change of total", total[1] - total[0]
    guessed = _sampled_in_turn(seen.number, seen.items)
    yield from ((f"sampled as {role}", float(role == guessed)) for role in INF_IR.roles)


def passage_features(seen: Sighting, place: int) -> Iterator[tuple[str, float]]:
    """Of the passage at a place: where it stands, and the role that an old seed would give it."""
    candidates = seen.item["candidates"]
    yield "passage place", place
    yield "passage length", len(candidates[place])
    yield "rank of length", sorted(map(len, candidates)).index(len(candidates[place]))
    yield "rank of text", sorted(candidates).index(candidates[place])
    labels = [*range(len(candidates))]
    for path, value in _leaves(seen.item, "item", without=TEXTS):
        for judge_id in range(1, 5):  # an annotator can try a few numbers for their own
            order = list(labels)
            seed = hashlib.sha256(f"{value} {judge_id} {seen.item['query']}".encode()).digest()
            random.Random(seed).shuffle(order)
            yield f"seeded by {path} for {judge_id}", order[place]


def _of_leaf(path: str, value: Any) -> Iterator[tuple[str, float]]:
    if isinstance(value, bool | int | float):
        yield from _of_number(path, value)
    elif isinstance(value, str):
        yield f"{path} length", len(value)
        yield f"{path} sum", sum(value.encode()) % 97
        yield from ((f"{path} byte {n}", byte) for n, byte in enumerate(value.encode()[:6]))
        if value.isdecimal():
            yield from _of_number(path, int(value))


def _of_number(path: str, value: float) -> Iterator[tuple[str, float]]:
    yield path, float(value)
    if float(value).is_integer():
        yield from ((f"{path} mod {m}", int(value) % m) for m in MODULI)


def _leaves(value: Any, path: str, *, without: tuple[str, ...] = ()) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, inner in value.items():
            if name not in without:
                yield from _leaves(inner, f"{path}.{name}")
    elif isinstance(value, list):
        yield f"{path} count", len(value)
        for number, inner in enumerate(value[:10]):
            yield from _leaves(inner, f"{path}.{number}")
    elif value is not None:
        yield path, value


@cache
def _first_sample(items: int) -> list[int]:
    groups = {n: {role: 3 * n + k for k, role in enumerate(INF_IR.roles)} for n in range(items)}
    return sample_items(groups, items, 0)


def _sampled_in_turn(number: int, items: int) -> str:
    """The scenario at this place of a study sampled with seed 0 from as many groups as items."""
    order = _first_sample(items)
    return INF_IR.roles[order[number] % len(INF_IR.roles)] if number < len(order) else ""


def _matrix(rows: Sequence[dict[str, float]]) -> Matrix:
    names = sorted({name for row in rows for name in row})
    table = np.array([[row.get(name, -1.0) for name in names] for row in rows])
    return np.asarray(table[:, table.min(axis=0) < table.max(axis=0)], dtype=np.float64)


def _scores_out_of_fold(x: Matrix, y: NDArray[np.int64], groups: NDArray[np.int64]) -> Matrix:
    scores = np.zeros(len(y))
    for fit, held in GroupKFold(FOLDS, shuffle=True, random_state=0).split(x, y, groups):
        model = ExtraTreesClassifier(
            50, max_features=0.3, min_samples_leaf=5, class_weight="balanced", random_state=0
        )
        scores[held] = model.fit(x[fit], y[fit]).predict_proba(x[held])[:, 1]
    return scores


def _ranks(scores: Matrix) -> Matrix:
    _, place, count = np.unique(scores, return_inverse=True, return_counts=True)
    middle = np.cumsum(count) - (count - 1) / 2
    return np.asarray(middle[place], dtype=np.float64)


def _auc(scores: Matrix, y: NDArray[np.int64]) -> float:
    positive = int(y.sum())
    rest = len(y) - positive
    above = _ranks(scores)[y == 1].sum() - positive * (positive + 1) / 2
    return float(above / (positive * rest))


def _bound(
    scores: Matrix, y: NDArray[np.int64], level: float, *, within: NDArray[np.int64] | None
) -> float:
    """The AUC that chance exceeds with probability 1 - level, the scores being what they are.

    Of the truth shuffled among all rows (or among those of each item or card), mean and
    variance of the ranks' sum are exact for scores that do not depend on the truth, and its
    distribution is taken as normal. Scores out of fold do depend on it: what two folds share by
    chance raises the first one's sum and the second one's alike, so each pair of folds counts
    twice, and the variance is up to twice as large (1.37 squared in 60 simulations of 150 items).
    """
    ranks, n, positive = _ranks(scores), len(y), int(y.sum())
    if within is None:
        mean, variance = positive * ranks.mean(), positive * (n - positive) / (n - 1) * ranks.var()
    else:
        mean = variance = 0.0
        for group in np.unique(within):
            own, right = ranks[within == group], int(y[within == group].sum())
            mean += right * own.mean()
            variance += right * (len(own) - right) / max(1, len(own) - 1) * own.var()
    above = (
        mean + NormalDist().inv_cdf(level) * (2 * variance) ** 0.5 - positive * (positive + 1) / 2
    )
    return float(above / (positive * (n - positive)))
