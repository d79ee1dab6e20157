"""What a training measured, as rows: every measure next to its controls, BM25 and the probe."""

from collections.abc import Mapping
from typing import Any

from app.text.numbers import score
from trainer.evaluate.following import FOLLOWING, INSTRUCTION_ALONE, QUERY_ALONE
from trainer.evaluate.intervals import HELD_OUT_INTERVALS

INTERVAL_COLUMNS = (
    *("Measure", "Base", "Base from", "Base to"),
    *("Trained", "from", "to"),
    *("Gain", "Gain from", "Gain to"),
)
COLUMNS = ("measure", "base", "trained", "query alone", "instruction alone", "BM25")
Row = tuple[str, float | None, float | None, float | None, float | None, float | None]


def score_notes(result: Mapping[str, Any]) -> list[str]:
    """What the scores on held-out groups cannot show, and how their BM25 is defined."""
    held_out: Mapping[str, Any] = result.get("held_out") or {}
    convention = held_out.get("bm25_convention")
    return [*held_out.get("notes", []), *([f"BM25 is {convention}."] if convention else [])]


def interval_rows(result: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row per measure: base, trained and the gain, each with its 95 % interval.

    Over groups that share a query, and over the probe's items (there the gain alone has one).
    Empty for a training from before these were stored.
    """
    held_out: Mapping[str, Any] = result.get("held_out") or {}
    probe: Mapping[str, Any] = result.get("natural_probe") or {}
    rows = []
    for part in (held_out, probe):
        gains: Mapping[str, Any] = part.get("gain") or {}
        intervals: Mapping[str, Any] = part.get("intervals") or {}
        before, after = intervals.get("before") or {}, intervals.get("after") or {}
        for name in after or gains:
            gain = gains.get(name) or {}
            values = (
                *(part["before"].get(name), *before.get(name, (None, None))),
                *(part["after"].get(name), *after.get(name, (None, None))),
                *(gain.get("value"), gain.get("low"), gain.get("high")),
            )
            rows.append(dict(zip(INTERVAL_COLUMNS, (name, *values), strict=True)))
    return rows


def interval_lines(result: Mapping[str, Any]) -> list[str]:
    """The same as lines of text, then how the intervals are made; empty where there are none."""
    lines = []
    for row in interval_rows(result):
        ends = [
            f"{part} {_with_interval(*(row[name] for name in names))}"
            for part, names in (("base", INTERVAL_COLUMNS[1:4]), ("trained", INTERVAL_COLUMNS[4:7]))
        ]
        if row["Gain"] is not None:
            gain = _with_interval(*(row[name] for name in INTERVAL_COLUMNS[7:]))
            ends.append(f"gain {gain}")
        lines.append(f"{row['Measure']}: {', '.join(ends)}")
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
    started, ended, bm25 = (probe.get(part) or {} for part in ("before", "after", "bm25"))
    for name, value in ended.items():
        if ":" not in name:
            alone = ended.get(f"{INSTRUCTION_ALONE}:{name}")
            rows.append((name, started.get(name), value, None, alone, bm25.get(name)))
    return rows
