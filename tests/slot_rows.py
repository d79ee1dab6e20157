"""The rows of a group's texts from its scenarios, as worlds of tests and benchmarks write them."""

from collections.abc import Mapping
from typing import Any

from db.corpus.texts import text_row
from db.shape import INF_IR, Shape


def slot_rows(
    group_id: int, triplets: Mapping[str, tuple[str, str, int]], shape: Shape = INF_IR
) -> list[dict[str, Any]]:
    """A row per text of these scenarios: (instruction, query, passage id) by role. A text that
    several have is the first one's."""
    rows: dict[str, dict[str, Any]] = {}
    for role, values in triplets.items():
        for text, value in zip(shape.scenarios[role].texts, values, strict=True):
            passage_id = int(value) if text.is_passage else None
            rows.setdefault(text.sign, text_row(group_id, text.sign, str(value), passage_id))
    return list(rows.values())
