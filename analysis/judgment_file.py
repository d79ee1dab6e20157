"""Judgments from a file: CSV or JSONL with `item, judge, label` and, where given, `kind`.

`kind` is person or model; a file without it holds people. Every bad row is told with its line.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.answers import MODEL, PERSON, Decision
from analysis.json_lines import BadLine, json_lines, require_text, shown
from db.errors import BadInput, BadRow, BadRows

COLUMNS = ("item", "judge", "label")
REMEDY = "nothing was computed: correct these rows"


def read_judgments(path: Path) -> list[Decision]:
    """The decisions in a file. Raises BadInput for the file, BadRows for its rows."""
    if not path.is_file():
        raise BadInput(f"{path}: no such file")
    read = _csv_rows if path.suffix.lower() in (".csv", ".tsv") else json_lines
    decisions: list[Decision] = []
    bad: list[BadRow] = []
    lines: dict[tuple[str, str], int] = {}
    kinds: dict[str, tuple[str, int]] = {}
    for line, row in read(path):
        try:
            decision = _decision(row)
            known = lines.setdefault((str(decision.item), decision.judge), line)
            if known != line:
                raise BadLine(
                    f"{decision.judge} judged {decision.item} already in line {known}: keep one of "
                    "the two"
                )
            kind, first = kinds.setdefault(decision.judge, (decision.kind, line))
            if kind != decision.kind:
                raise BadLine(
                    f"{decision.judge} is a {decision.kind} here and a {kind} in line {first}: "
                    "give each judge one kind"
                )
        except BadLine as error:
            bad.append(BadRow(path.name, line, str(error)))
        else:
            decisions.append(decision)
    if bad:
        raise BadRows(bad, REMEDY)
    if not decisions:
        raise BadInput(f"{path}: holds no judgment")
    return decisions


def _decision(row: dict[str, Any] | BadLine) -> Decision:
    if isinstance(row, BadLine):
        raise row
    texts = {}
    for name in COLUMNS:
        value = row.get(name)
        if value is None:
            told = ", ".join(f"`{each}`" for each in row) or "nothing"
            raise BadLine(f"no `{name}`: the row has {told}")
        if isinstance(value, bool | dict | list | float):
            raise BadLine(f"`{name}` is {shown(value)}: a text or a whole number is needed")
        texts[name] = require_text(str(value).strip(), name)
    kind = str(row.get("kind") or PERSON).strip()
    if kind not in (PERSON, MODEL):
        raise BadLine(f"`kind` is {shown(kind)}: {PERSON} or {MODEL}")
    return Decision(texts["item"], texts["judge"], texts["label"], kind)


def _csv_rows(path: Path) -> Iterator[tuple[int, dict[str, Any] | BadLine]]:
    """Line and row; a BadLine in the place of a row that has not as many fields as the header."""
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
                    told = f"{len(row)} fields where the header has {len(header)}: {shown(row)}"
                    yield reader.line_num, BadLine(told)
                else:
                    yield reader.line_num, dict(zip(header, row, strict=True))
    except UnicodeDecodeError as error:
        raise BadInput(f"{path.name}: not UTF-8 ({error.reason} at byte {error.start})") from error
    except csv.Error as error:
        raise BadInput(f"{path.name}, line {reader.line_num}: {error}") from error
