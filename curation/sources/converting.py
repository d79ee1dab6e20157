"""Writing a source's pairs and passages as the two files that `inf import` takes."""

import json
from collections import Counter
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path

from curation.sources.rows import Converted, LeftOut, SourcePair, SourcePassage
from db.rows import Row

EXAMPLES = 20


class Conversion(Row):
    """The result of a conversion: counts, rows left out by reason, and the first of those."""

    pairs: int
    passages: int
    left_out: dict[str, int]
    examples: list[LeftOut]
    pairs_path: Path
    passages_path: Path


def write_files(found: Iterable[Converted], folder: Path, *, limit: int | None) -> Conversion:
    """Write `pairs.jsonl` and `passages.jsonl`; a repeated passage is written once.

    `limit` is the maximum number of pairs.
    """
    folder.mkdir(parents=True, exist_ok=True)
    seen: set[str] = set()
    pair_ids: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    examples: list[LeftOut] = []
    paths = folder / "pairs.jsonl", folder / "passages.jsonl"
    with (
        paths[0].open("w", encoding="utf-8") as pairs,
        paths[1].open("w", encoding="utf-8") as texts,
    ):
        for one in found:
            if isinstance(one, SourcePassage):
                if one.passage_id not in seen:
                    seen.add(one.passage_id)
                    texts.write(_line(one))
            elif isinstance(one, SourcePair):
                pair_ids[one.query_id] += 1
                if pair_ids[one.query_id] == 1:
                    pairs.write(_line(one))
                else:
                    left_out["query_id met before"] += 1
                if limit is not None and len(pair_ids) >= limit:
                    break
            else:
                left_out[one.reason] += 1
                if len(examples) < EXAMPLES:
                    examples.append(one)
    return Conversion(
        pairs=len(pair_ids),
        passages=len(seen),
        left_out=dict(left_out),
        examples=examples,
        pairs_path=paths[0],
        passages_path=paths[1],
    )


def _line(row: SourcePair | SourcePassage) -> str:
    values = asdict(row)
    meta = values.pop("meta")
    if not values.get("negative_ids", True):
        del values["negative_ids"]
    return json.dumps({**values, **meta}, ensure_ascii=False) + "\n"
