"""A small release for the trainer's tests: bridges that do not exist, in InF-IR's seven columns."""

import json
from pathlib import Path
from typing import Any

NAMES = [
    *("Aldern", "Amberly", "Arwen", "Bexby", "Birchholm", "Brindle", "Calder", "Corvin"),
    *("Dalmoor", "Dunwick", "Eastry", "Elmswell", "Fenwright", "Garrow", "Halden", "Hexley"),
    *("Ivelbury", "Kelmar", "Lindow", "Marchford", "Nesbit", "Orrin", "Penhale", "Quenby"),
    *("Ravensby", "Selwick", "Tarrant", "Ulverby", "Wexcombe", "Yarrow"),
]
BUILDERS = ("Ina Holt", "Piet Maas", "Olu Ade", "Rosa Lind", "Tom Garth")
STONES = ("granite", "oak", "steel", "limestone", "brick")


def make_rows(count: int) -> list[dict[str, Any]]:
    """`count` groups of their own queries and passages (at most as many as there are names)."""
    rows = []
    for number, name in enumerate(NAMES[:count]):
        length, year = 80 + 17 * number, 1701 + 7 * number
        builder, stone = BUILDERS[number % 5], STONES[(number * 3) % 5]
        bridge = f"the {name} bridge"
        rows.append(
            {
                "query_positive": f"how long is {bridge}",
                "instruction_positive": "Find a passage that gives the figure in metres.",
                "document_positive": f"{bridge.capitalize()} spans the river on four arches and "
                f"is {length} metres long from bank to bank.",
                "query_negative": f"what is {bridge} made of",
                "instruction_negative": "Find a passage that names the builder, without figures.",
                "hard_negative_document_1": f"{bridge.capitalize()} was raised by {builder}, who "
                "had learned the trade from a shipwright.",
                "hard_negative_document_2": f"{bridge.capitalize()} is made of {stone}; its deck "
                f"was widened by two metres in {year}.",
                "group_id": 1000 + number,
                "licence": "CC0-1.0",
                "verdict": "kept",
            }
        )
    return rows


def write_release(folder: Path, count: int = 30, **manifest: Any) -> Path:
    """A release folder of `count` groups as JSONL, with a manifest."""
    write_rows(folder, make_rows(count))
    (folder / "release.json").write_text(
        json.dumps(
            {"dataset": "bridges", "content_sha256": "c0ffee" * 10, "offline": True} | manifest
        )
    )
    return folder


def write_rows(folder: Path, rows: list[dict[str, Any]]) -> Path:
    """A folder with these rows and no manifest."""
    (folder / "data").mkdir(parents=True, exist_ok=True)
    file = folder / "data" / "bridges-00000-of-00001.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder
