"""What a training measured, as rows: every measure next to its controls, BM25 and the probe."""

from collections.abc import Mapping
from typing import Any

from trainer.evaluate.following import FOLLOWING, INSTRUCTION_ALONE, QUERY_ALONE

COLUMNS = ("measure", "base", "trained", "query alone", "instruction alone", "BM25")
Row = tuple[str, float | None, float | None, float | None, float | None, float | None]


def score_notes(result: Mapping[str, Any]) -> list[str]:
    """What the scores on held-out groups cannot show, and how their BM25 is defined."""
    held_out: Mapping[str, Any] = result.get("held_out") or {}
    convention = held_out.get("bm25_convention")
    return [*held_out.get("notes", []), *([f"BM25 is {convention}."] if convention else [])]


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
