"""Tables of lists on a terminal: columns aligned, one line for each row."""

import unicodedata
from collections.abc import Sequence

MAX_CELL_COLUMNS = 60


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[object]],
    *,
    empty: str,
    max_columns: int = MAX_CELL_COLUMNS,
) -> str:
    """The rows below their head; numbers to the right, a dash for None, `empty` without rows."""
    if not rows:
        return empty
    cells = [[_cell(value, max_columns) for value in row] for row in rows]
    widths = [max(_width(row[place]) for row in [list(head), *cells]) for place in range(len(head))]
    right = [all(isinstance(row[place], int | float) for row in rows) for place in range(len(head))]
    lines = []
    for row in [list(head), *cells]:
        padded = []
        for cell, width, to_right in zip(row, widths, right, strict=True):
            space = " " * (width - _width(cell))
            padded.append(space + cell if to_right else cell + space)
        lines.append("  ".join(padded).rstrip())
    return "\n".join(lines)


def one_line(text: str, columns: int = MAX_CELL_COLUMNS) -> str:
    """The text in one line without control characters, shortened to that many columns."""
    plain = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    if _width(plain) <= columns:
        return plain
    kept = ""
    for character in plain:
        if _width(kept + character) > columns - 1:
            break
        kept += character
    return f"{kept.rstrip()}…"


def _cell(value: object, max_columns: int) -> str:
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    return one_line(str(value), max_columns)


def _width(text: str) -> int:
    """The columns that the text takes: two for a wide character, none for a combining one."""
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1
        for each in text
    )
