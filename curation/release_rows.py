"""The rows of a release: InF-IR's seven columns first, under their published names. Pure.

A column without a value holds "": every column has one type in every format.
"""

import json
import re
import unicodedata
from typing import Any

from db.releases import ReleaseRow

TEXTS = (
    "query_positive",
    "instruction_positive",
    "document_positive",
    "query_negative",
    "instruction_negative",
    "hard_negative_document_1",
    "hard_negative_document_2",
)
FURTHER = {
    "group_id": "int64",
    "query_id": "string",
    "passage_id": "string",
    "source": "string",
    "licence": "string",
    "verdict": "string",
    "drop_reason": "string",
    "review": "string",
    "offline": "bool",
}
TYPES = {**dict.fromkeys(TEXTS, "string"), **FURTHER}
# Which texts are instructions, queries and passages, for the counts of the paper's Table 1.
KINDS = {
    "I": ("instruction_positive", "instruction_negative"),
    "Q": ("query_positive", "query_negative"),
    "P": ("document_positive", "hard_negative_document_1", "hard_negative_document_2"),
}


def release_row(found: ReleaseRow, *, source: str, licence: str, offline: bool) -> dict[str, Any]:
    """A group as a row; a `source` or `licence` of the pair goes before the data set's."""
    row: dict[str, Any] = {name: getattr(found, name) for name in TEXTS}
    return row | {
        "group_id": found.group_id,
        "query_id": found.query_id,
        "passage_id": found.passage_id,
        "source": _said(found.meta, ("source",)) or source,
        "licence": _said(found.meta, ("licence", "license")) or licence,
        "verdict": found.verdict,
        "drop_reason": found.drop_reason or "",
        "review": found.review or "",
        "offline": offline,
    }


def canonical_line(row: dict[str, Any]) -> bytes:
    """The row as a line of JSONL: what the content hash is over, whatever the format."""
    return (json.dumps(row, ensure_ascii=False, separators=(",", ":")) + "\n").encode()


def split_name(dataset: str) -> str:
    """The data set's name as the name of a split: letters, digits and _ only.

    `all` means something else to `datasets` and becomes `all_groups`.
    """
    plain = unicodedata.normalize("NFKD", dataset).encode("ascii", "ignore").decode()
    name = re.sub(r"\W+", "_", plain).strip("_").lower()
    if name == "all":
        return "all_groups"
    return name or "groups"


def _said(meta: dict[str, Any], names: tuple[str, ...]) -> str:
    for name in names:
        if isinstance(meta.get(name), str) and meta[name].strip():
            return str(meta[name])
    return ""
