"""What a training measured, as rows: every measure next to its controls, BM25 and the probe."""

from collections.abc import Mapping
from typing import Any

from app.text.numbers import score
from trainer.evaluate.following import FOLLOWING, INSTRUCTION_ALONE, QUERY_ALONE
from trainer.evaluate.intervals import HELD_OUT_INTERVALS

INTERVAL_COLUMNS = ("Measure", "Base", "Base from", "Base to", "Trained", "from", "to")
COLUMNS = ("measure", "base", "trained", "query alone", "instruction alone", "BM25")
Row = tuple[str, float | None, float | None, float | None, float | None, float | None]


def score_notes(result: Mapping[str, Any]) -> list[str]:
    """What the scores on held-out groups cannot show, and how their BM25 is defined."""
    held_out: Mapping[str, Any] = result.get("held_out") or {}
    convention = held_out.get("bm25_convention")
    return [*held_out.get("notes", []), *([f"BM25 is {convention}."] if convention else [])]


def interval_rows(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row per measure of held-out groups: base and trained, each with its 95 % interval over
    groups that share a query. Empty for a training from before these were stored."""
    held_out: Mapping[str, Any] = result.get("held_out") or {}
    intervals: Mapping[str, Any] = held_out.get("intervals") or {}
    before, after = intervals.get("before") or {}, intervals.get("after") or {}
    return [
        dict(
            zip(
                INTERVAL_COLUMNS,
                (
                    name,
                    held_out["before"].get(name),
                    *before.get(name, (None, None)),
                    held_out["after"].get(name),
                    *limits,
                ),
                strict=True,
            )
        )
        for name, limits in after.items()
    ]


def interval_lines(result: Mapping[str, Any]) -> list[str]:
    """The same as lines of text, then how the intervals are made; empty where there are none."""
    lines = [
        f"{row['Measure']}: base {_with_interval(row['Base'], row['Base from'], row['Base to'])}, "
        f"trained {_with_interval(row['Trained'], row['from'], row['to'])}"
        for row in interval_rows(result)
    ]
    return [*lines, HELD_OUT_INTERVALS] if lines else []


def _with_interval(value: float | None, low: float | None, high: float | None) -> str:
    return score(value) if low is None else f"{score(value)} [{low:.4f}, {high:.4f}]"


def score_rows(result: Mapping[str, Any]) -> list[Row]:
    """(measure, base, trained, both controls of the trained model, BM25); None: not measured.

    The controls read one half of the text: a flip that one of them also reaches shows no joint
    reading of instruction and query. A checkpoint from before controls has none.
    """
    held_out: Mapping[str, Any] = result.get("held_out") or {}
    before, after = held_out.get("before") or {}, held_out.get("after") or {}
    bm25 = held_out.get("bm25") or {}
    rows: list[Row] = []
    for name, value in after.items():
        if ":" in name:
            continue
        controls = [after.get(f"{each}:{name}") for each in (QUERY_ALONE, INSTRUCTION_ALONE)]
        rows.append((name, before.get(name), value, controls[0], controls[1], bm25.get(name)))
    rows.sort(key=lambda row: row[0] not in FOLLOWING)
    probe: Mapping[str, Any] = result.get("natural_probe") or {}
    started = probe.get("before") or {}
    for name, value in (probe.get("after") or {}).items():
        rows.append((name, started.get(name), value, None, None, None))
    return rows
