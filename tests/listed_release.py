"""A shape with two instructions and lists, and releases of it or another shape without a store."""

import json
from pathlib import Path
from typing import Any

from shaped_recipes import SHAPES

from curation.release.rows import default_rows
from db.shape import Shape, shape_from

LIST = {"field": "passage", "from_source": False, "at_least": 0, "drops_group": False}
LISTS = [
    {"sign": "N", "column": "violating", "introduced_by": "plain", "grade": 1, "count": 3},
    {"sign": "M", "column": "off_topic", "introduced_by": "defying", "grade": 0, "count": 2},
]
SHAPE = shape_from(
    SHAPES["two"].body()
    | {
        "lists": [LIST | {"meaning": one["sign"], "stands_in_for": ""} | one for one in LISTS],
        "steps": [{"name": "write", "gives": ["I", "D", "N1", "N", "M"], "inputs": ["Q"]}],
    }
)
COUNTS = [(3, 2), (1, 0), (0, 1), (2, 2), (0, 0), (1, 1)]  # texts of N and of M in each group


def released(folder: Path, shape: Shape = SHAPE, held_out: bool = False) -> Path:
    """A release's folder with a group for each of COUNTS, in rows as an export writes them."""
    (folder / "data").mkdir(parents=True)
    manifest = shape.entry | {"content_sha256": "0" * 64}
    (folder / "release.json").write_text(json.dumps(manifest))
    for split, numbers in (
        (("x", range(4)), ("x_held_out", range(4, 6))) if held_out else (("x", range(6)),)
    ):
        rows = [each for number in numbers for each in default_rows(row_of(number, shape), shape)]
        file = folder / "data" / f"{split}-00000-of-00001.jsonl"
        file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return folder


def row_of(number: int, shape: Shape) -> dict[str, Any]:
    row: dict[str, Any] = {text.column: f"{text.sign} of {number}" for text in shape.all_texts}
    for text, count in zip(shape.lists, COUNTS[number], strict=False):
        row[text.column] = [(name, f"{name} of {number}") for name in text.names[:count]]
    return row | {
        "group_id": number,
        "query_id": f"q{number}",
        "passage_id": f"p{number}",
        "source": "",
        "licence": "cc0-1.0",
        "verdict": "kept",
        "drop_reason": "",
        "review": "",
        "offline": False,
    }
