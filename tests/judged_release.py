"""A small release with judgments, for what reads who chose which passage."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from trainer_release import write_release

from db.shape import INF_IR
from trainer.data.release_files import ReleaseData, read_release


def judgment(group_id: int, scenario: str, **changed: object) -> dict[str, Any]:
    row = {"group_id": group_id, "scenario": scenario, "revision": 1, "judge": "openai:b"}
    return row | {"choice": scenario} | changed


def all_of(group_id: int, **changed: object) -> list[dict[str, Any]]:
    return [judgment(group_id, scenario, **changed) for scenario in INF_IR.scenarios]


def released(folder: Path, rows: Sequence[dict[str, Any]]) -> ReleaseData:
    release = write_release(folder, 20)
    write_judgments_of(release, rows)
    return read_release(release)


def write_judgments_of(release: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Give a release folder the configuration `judgments`."""
    (release / "judgments").mkdir()
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (release / "judgments" / "train.jsonl").write_text(lines, encoding="utf-8")
