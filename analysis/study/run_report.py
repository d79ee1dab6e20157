"""The report of a study about its run: per item, per whole group, and by part of the run. Pure.

See `analysis.study.run_estimates` for what is estimated, and how.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from analysis.study.design import Design
from analysis.study.run_estimates import (
    TAIL,
    Population,
    Share,
    Where,
    confirmed_share,
    share_of_two,
)
from db.study.run_items import ItemKind, JudgedItem

NO_ANSWERS: Final = "the store has no answers of the run's validator about single items"
PARTS: Final = ("scenario", "source", "drop_reason")


def is_kept(kind: ItemKind) -> bool:
    """Whether the item's group was kept."""
    return kind.verdict == "kept"


def is_missed(kind: ItemKind) -> bool:
    """Whether the validator missed the item, so that its group was dropped."""
    return kind.verdict == "dropped" and kind.passed is False


def run_report(
    population: Population, sample: Iterable[JudgedItem], design: Design, roles: Sequence[str]
) -> dict[str, Any]:
    """Estimates for the whole run, as `--json` prints them; what is undefined has its reason.

    `roles`: the scenarios of the run's shape.
    """
    judged = list(sample)
    estimator = Estimator(population, judged, design, roles)
    kept, dropped = estimator.kept_groups(), estimator.dropped_groups()
    return {
        "strata": list(design.strata),
        "known": list(design.known),
        **({"reason": design.reason} if design.reason else {}),
        "judged": len({item.group_id for item in judged}),
        "ties": sum(item.value == 0.5 for item in judged),
        "groups": {verdict: estimator.groups(verdict) for verdict in ("kept", "dropped")},
        **estimator.per_item(),
        "kept_groups": kept,
        "dropped_groups": dropped,
        "group_recall": _group_recall(estimator, kept, dropped),
        "parts": estimator.parts(),
    }


def as_numbers(share: Share) -> dict[str, Any]:
    """A share as `--json` prints it."""
    return {
        "value": share.value,
        "interval": None if share.interval is None else list(share.interval),
        "judged": share.judged,
        "items": share.items,
        "covered": share.covered,
        **({"reason": share.reason} if share.reason else {}),
    }


class Estimator:
    """The estimates from one sample of one run."""

    def __init__(
        self,
        population: Population,
        sample: Sequence[JudgedItem],
        design: Design,
        roles: Sequence[str],
    ) -> None:
        self.population, self.sample, self.design = population, sample, design
        self.roles = roles  # the scenarios of the run's shape, in its order
        self.has_answers = all(kind.passed is not None for kind in population)

    def groups(self, verdict: str) -> int:
        """Groups of the run with this verdict: each has an item of every scenario."""
        of_scenario = dict.fromkeys(self.roles, 0)
        for kind, count in self.population.items():
            if kind.verdict == verdict:
                of_scenario[kind.scenario] += count
        return max(of_scenario.values())

    def share(
        self, where: Where, verdict: str, weight: Callable[[ItemKind], float] = lambda kind: 1.0
    ) -> Share:
        """The confirmed share of a part whose groups have this verdict."""
        items = sum(count for kind, count in self.population.items() if where(kind))
        if verdict not in self.design.known:
            return Share(None, 0, items, 0.0, reason=self.design.reason)
        if verdict == "dropped" and not self.has_answers:
            return Share(None, 0, items, 0.0, reason=NO_ANSWERS)
        return confirmed_share(self.population, self.sample, where, self.design.strata, weight)

    def per_item(self) -> dict[str, dict[str, Any]]:
        """Precision, overturned and recall."""
        return {
            "precision": as_numbers(self.share(is_kept, "kept")),
            "overturned": as_numbers(self.share(is_missed, "dropped")),
            "recall": self.recall(),
        }

    def recall(self) -> dict[str, Any]:
        """Confirmed items that the validator passed, of all confirmed items."""
        if set(self.design.known) != {"kept", "dropped"}:
            return {"value": None, "interval": None, "reason": self.design.reason}
        if not self.has_answers:
            return {"value": None, "interval": None, "reason": NO_ANSWERS}
        passed = self.share(lambda kind: kind.passed is True, "kept")
        missed = self.share(is_missed, "dropped")
        for share in (passed, missed):
            if share.value is None and share.items:
                return {"value": None, "interval": None, "reason": share.reason}
        if not passed.items:
            return {"value": None, "interval": None, "reason": "the validator passed no item"}
        if not missed.items:
            return {"value": None, "interval": None, "reason": "the validator missed no item"}
        value, interval = share_of_two(passed, missed)
        return {"value": value, "interval": interval, "judged": passed.judged + missed.judged}

    def kept_groups(self) -> dict[str, Any]:
        """Between which shares of kept groups people confirm in every scenario."""

        def of(role: str) -> Share:
            return self.share(lambda kind: is_kept(kind) and kind.scenario == role, "kept")

        shares = [of(role) for role in self.roles]
        lacking = next((share for share in shares if share.value is None), None)
        if lacking is not None:
            return _bounds(None, reason=lacking.reason)
        values = [share.value or 0.0 for share in shares]
        low, high = max(0.0, 1 - sum(1 - value for value in values)), min(values)
        if not all(share.interval for share in shares):
            return _bounds((low, high))
        draws = [share.draws(low=True, seed=place) for place, share in enumerate(shares)]
        lowest = float(np.quantile(1 - sum(1 - each for each in draws), TAIL))
        # the smallest of all upper limits: of three, each leaves a third of the tail outside
        highest = min(share.limits(TAIL / len(self.roles))[1] for share in shares)
        return _bounds((low, high), (max(0.0, min(low, lowest)), max(high, highest)))

    def dropped_groups(self) -> dict[str, Any]:
        """Between which shares of dropped groups people would keep.

        At most where they confirm an item that the validator missed; at least where, besides, they
        confirm all others of the group.
        """
        most = self.share(is_missed, "dropped", lambda kind: 1 / (kind.missed or 1))
        if most.value is None:
            return _bounds(None, reason=most.reason)
        low = lowest = 0.0
        groups = self.groups("dropped")
        for few in (True, False):

            def of_misses(kind: ItemKind, few: bool = few) -> bool:
                return kind.verdict == "dropped" and (kind.missed == 1) == few

            part = self.share(of_misses, "dropped")
            if part.value is None or not groups:
                continue
            weight = part.items / len(self.roles) / groups
            low += weight * max(0.0, 1 - len(self.roles) * (1 - part.value))
            if part.interval:
                lowest += weight * max(0.0, 1 - len(self.roles) * (1 - part.interval[0]))
        high = max(low, most.value)
        if not most.interval:
            return _bounds((low, high))
        return _bounds((low, high), (min(low, lowest), max(high, most.interval[1])))

    def parts(self) -> list[dict[str, Any]]:
        """The confirmed share by scenario, source and drop reason: kept groups' items, and the
        missed items of dropped ones. A field with one value throughout gives no row."""
        rows = []
        for verdict, where in (("kept", is_kept), ("dropped", is_missed)):
            if verdict not in self.design.known or (verdict == "dropped" and not self.has_answers):
                continue
            for field in PARTS:
                names = sorted({getattr(kind, field) for kind in self.population if where(kind)})
                if field == "scenario":
                    names.sort(key=list(self.roles).index)
                if len(names) < 2:
                    continue
                rows += [
                    {"part": verdict, "by": field, "name": name}
                    | as_numbers(self._named(where, verdict, field, name))
                    for name in names
                ]
        return rows

    def _named(self, where: Where, verdict: str, field: str, name: str) -> Share:
        return self.share(lambda kind: where(kind) and getattr(kind, field) == name, verdict)


def _bounds(
    found: tuple[float, float] | None,
    limits: tuple[float, float] | None = None,
    reason: str = "",
) -> dict[str, Any]:
    return {
        "low": None if found is None else found[0],
        "high": None if found is None else found[1],
        "interval": None if limits is None else list(limits),
        **({"reason": reason} if reason else {}),
    }


def _group_recall(
    estimator: Estimator, kept: Mapping[str, Any], dropped: Mapping[str, Any]
) -> dict[str, Any]:
    """Between which shares of the groups that people would keep the run kept."""
    for each in (kept, dropped):
        if each["low"] is None:
            return _bounds(None, reason=each["reason"])

    def ratio(one: float, other: float) -> float:
        right, wrong = one * estimator.groups("kept"), other * estimator.groups("dropped")
        return right / (right + wrong) if right + wrong else 0.0

    found = (ratio(kept["low"], dropped["high"]), ratio(kept["high"], dropped["low"]))
    if not kept["interval"] or not dropped["interval"]:
        return _bounds(found)
    (low, high), (least, most) = kept["interval"], dropped["interval"]
    return _bounds(found, (ratio(low, most), ratio(high, least)))
