"""What a training measured, as rows: every measure next to its controls, BM25 and the probe.

All take the result of a job `train`, of any version: what it lacks is left out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from trainer.evaluate.following import FOLLOWING, INSTRUCTION_ALONE, QUERY_ALONE

# What a list of trainings shows, the headline first.
LISTED = (
    *("strict", "instruction-flip", "query-flip", "natural-flip"),
    *("ndcg@10", "map", "mrr", "p-mrr"),
)


@dataclass(frozen=True)
class MeasuredRow:
    """A measure of the base and of the trained model, of its controls and of BM25; None: not
    measured.

    The controls read one half of the text: a flip that one of them also reaches shows no joint
    reading of instruction and query. A checkpoint from before controls has none.
    """

    measure: str
    base: float | None
    trained: float | None
    query_alone: float | None
    instruction_alone: float | None
    bm25: float | None


@dataclass(frozen=True)
class IntervalRow:
    """A measure before and after a training, and its gain, each with its 95 % interval.

    Over groups that share a query, and over the probe's items (there the gain alone has one).
    """

    measure: str
    base: float | None
    base_low: float | None
    base_high: float | None
    trained: float | None
    trained_low: float | None
    trained_high: float | None
    gain: float | None
    gain_low: float | None
    gain_high: float | None


def listed_scores(result: Mapping[str, Any]) -> dict[str, float | None]:
    """The measures of a list after the training, by name; of held-out groups and the probe."""
    found = _part(result, "held_out", "after") | _part(result, "natural_probe", "after")
    return {name: found.get(name) for name in LISTED}


def score_notes(result: Mapping[str, Any]) -> list[str]:
    """What the scores on held-out groups cannot show, and how their BM25 is defined."""
    held_out: Mapping[str, Any] = result.get("held_out") or {}
    convention = held_out.get("bm25_convention")
    return [*held_out.get("notes", []), *([f"BM25 is {convention}."] if convention else [])]


def score_rows(result: Mapping[str, Any]) -> list[MeasuredRow]:
    """A row per measure, those of following instructions first, the probe's last."""
    before, after, bm25 = (_part(result, "held_out", p) for p in ("before", "after", "bm25"))
    rows = [
        MeasuredRow(
            name,
            before.get(name),
            value,
            after.get(f"{QUERY_ALONE}:{name}"),
            after.get(f"{INSTRUCTION_ALONE}:{name}"),
            bm25.get(name),
        )
        for name, value in after.items()
        if ":" not in name
    ]
    rows.sort(key=lambda row: row.measure not in FOLLOWING)
    before, after, bm25 = (_part(result, "natural_probe", p) for p in ("before", "after", "bm25"))
    return rows + [
        MeasuredRow(
            name,
            before.get(name),
            value,
            None,
            after.get(f"{INSTRUCTION_ALONE}:{name}"),
            bm25.get(name),
        )
        for name, value in after.items()
        if ":" not in name
    ]


def interval_rows(result: Mapping[str, Any]) -> list[IntervalRow]:
    """A row per measure that has an interval; empty for a training from before there were some."""
    rows = []
    for part in ("held_out", "natural_probe"):
        before, after = _part(result, part, "before"), _part(result, part, "after")
        intervals, gains = _part(result, part, "intervals"), _part(result, part, "gain")
        of_base, of_trained = intervals.get("before") or {}, intervals.get("after") or {}
        for name in of_trained or gains:
            gain = gains.get(name) or {}
            base_low, base_high = of_base.get(name, (None, None))
            trained_low, trained_high = of_trained.get(name, (None, None))
            rows.append(
                IntervalRow(
                    measure=name,
                    base=before.get(name),
                    base_low=base_low,
                    base_high=base_high,
                    trained=after.get(name),
                    trained_low=trained_low,
                    trained_high=trained_high,
                    gain=gain.get("value"),
                    gain_low=gain.get("low"),
                    gain_high=gain.get("high"),
                )
            )
    return rows


def _part(result: Mapping[str, Any], *names: str) -> dict[str, Any]:
    """What the result holds there; empty where it lacks it."""
    found: Any = result
    for name in names:
        found = found.get(name) or {}
    return dict(found)
