"""Judgments from a file: CSV, JSONL or Parquet with `item, judge, label` and, where given, `kind`.

`kind` is person or model; a file without it holds people. Every bad row is reported with its line.
"""

from pathlib import Path

from analysis.agreement.answers import MODEL, PERSON, Decision
from analysis.files.row import require_text
from analysis.files.rows import BadValue, Row, read_rows, shown
from db.errors import BadInput, BadRow, BadRows

COLUMNS = ("item", "judge", "label")
REMEDY = "nothing was computed: correct these rows"


def read_judgments(path: Path) -> list[Decision]:
    """The decisions in a file. Raises BadInput for the file, BadRows for its rows."""
    decisions: list[Decision] = []
    bad: list[BadRow] = []
    lines: dict[tuple[str, str], int] = {}
    kinds: dict[str, tuple[str, int]] = {}
    for row in read_rows(path):
        line = row.line
        try:
            if row.reason:
                raise BadValue(row.reason)
            decision = _decision(row.values)
            known = lines.setdefault((str(decision.item), decision.judge), line)
            if known != line:
                raise BadValue(
                    f"{decision.judge} judged {decision.item} already in line {known}: keep one of "
                    "the two"
                )
            kind, first = kinds.setdefault(decision.judge, (decision.kind, line))
            if kind != decision.kind:
                raise BadValue(
                    f"{decision.judge} is a {decision.kind} here and a {kind} in line {first}: "
                    "give each judge one kind"
                )
        except BadValue as error:
            bad.append(BadRow(path.name, line, str(error)))
        else:
            decisions.append(decision)
    if bad:
        raise BadRows(bad, REMEDY, code="rows_invalid")
    if not decisions:
        raise BadInput(
            f"{path}: holds no judgment",
            "name a file with a line per judgment",
            code="judgments_empty",
        )
    return decisions


def _decision(row: Row) -> Decision:
    texts = {}
    for name in COLUMNS:
        value = row.get(name)
        if value is None:
            present = ", ".join(f"`{each}`" for each in row) or "nothing"
            raise BadValue(f"no `{name}`: the row has {present}")
        if isinstance(value, bool | dict | list | float):
            raise BadValue(f"`{name}` is {shown(value)}: a text or a whole number is needed")
        texts[name] = require_text(str(value).strip(), name)
    kind = str(row.get("kind") or PERSON).strip()
    if kind not in (PERSON, MODEL):
        raise BadValue(f"`kind` is {shown(kind)}: {PERSON} or {MODEL}")
    return Decision(texts["item"], texts["judge"], texts["label"], kind)
