"""Judgments from a file: CSV or JSONL with `item, judge, label` and, where given, `kind`.

`kind` is person or model; a file without it holds people. Every bad row is told with its line.
"""

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.answers import MODEL, PERSON, Decision
from db.errors import BadInput, BadRow, BadRows

COLUMNS = ("item", "judge", "label")
REMEDY = "nothing was computed: correct these rows"


def read_judgments(path: Path) -> list[Decision]:
    """The decisions in a file. Raises BadInput for the file, BadRows for its rows."""
    if not path.is_file():
        raise BadInput(f"{path}: no such file")
    read = _csv_rows if path.suffix.lower() in (".csv", ".tsv") else _jsonl_rows
    decisions: list[Decision] = []
    bad: list[BadRow] = []
    lines: dict[tuple[str, str], int] = {}
    kinds: dict[str, tuple[str, int]] = {}
    for line, row in read(path):
        try:
            decision = _decision(row)
            known = lines.setdefault((str(decision.item), decision.judge), line)
            if known != line:
                raise ValueError(f"{decision.judge} judged {decision.item} already in line {known}")
            kind, first = kinds.setdefault(decision.judge, (decision.kind, line))
            if kind != decision.kind:
                raise ValueError(
                    f"{decision.judge} is a {decision.kind} here and a {kind} in line {first}"
                )
        except ValueError as error:
            bad.append(BadRow(path.name, line, str(error)))
        else:
            decisions.append(decision)
    if bad:
        raise BadRows(bad, REMEDY)
    if not decisions:
        raise BadInput(f"{path}: holds no judgment")
    return decisions


def _decision(row: Any) -> Decision:
    if isinstance(row, str):
        raise ValueError(row)
    if not isinstance(row, dict):
        raise ValueError(f"no JSON object: {str(row)[:60]!r}")
    texts = {}
    for name in COLUMNS:
        value = row.get(name)
        if isinstance(value, bool | dict | list | float) or value is None:
            raise ValueError(f"no `{name}`" if value is None else f"`{name}` is {value!r}, no text")
        texts[name] = str(value).strip()
        if not texts[name]:
            raise ValueError(f"empty `{name}`")
    kind = str(row.get("kind") or PERSON).strip()
    if kind not in (PERSON, MODEL):
        raise ValueError(f"`kind` is {kind!r}: {PERSON} or {MODEL}")
    return Decision(texts["item"], texts["judge"], texts["label"], kind)


def _csv_rows(path: Path) -> Iterator[tuple[int, Any]]:
    """Rows as dictionaries; a string instead says what is wrong with the row."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, delimiter="\t" if path.suffix.lower() == ".tsv" else ",")
            header = [name.strip() for name in next(reader, [])]
            missing = [name for name in COLUMNS if name not in header]
            if missing:
                raise BadInput(
                    f"{path.name}, line 1: no column {', '.join(missing)}; it needs item, judge, "
                    "label (and, if there are models, kind)"
                )
            for row in reader:
                if not row:
                    continue
                if len(row) != len(header):
                    yield reader.line_num, f"{len(row)} fields where the header has {len(header)}"
                else:
                    yield reader.line_num, dict(zip(header, row, strict=True))
    except UnicodeDecodeError as error:
        raise BadInput(f"{path.name}: not UTF-8 ({error.reason} at byte {error.start})") from error
    except csv.Error as error:
        raise BadInput(f"{path.name}, line {reader.line_num}: {error}") from error


def _jsonl_rows(path: Path) -> Iterator[tuple[int, Any]]:
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                yield number, json.loads(line.decode("utf-8-sig" if number == 1 else "utf-8"))
            except ValueError as error:
                yield number, f"no JSON: {error}"
