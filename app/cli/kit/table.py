"""Tables of lists on a terminal, by Rich: columns aligned, one line for each row."""

import io
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import click

MAX_CELL_COLUMNS = 60
MAX_SHEET_COLUMNS = 110  # of a report, whose cells may be sentences
MAX_TABLE_COLUMNS = 10_000  # a row is never wrapped: a terminal may do that, a file need not
NONE: tuple[object, ...] = (None, "", [])
# A key of a row, or its label and the key, or its label and what makes its value of the row.
Column = str | tuple[str, str] | tuple[str, Callable[[dict[str, Any]], object]]


def head_of(column: Column) -> str:
    """The label of a column."""
    return column.replace("_", " ") if isinstance(column, str) else column[0]


def cell_of(column: Column, row: dict[str, Any]) -> object:
    """The value of a row in a column."""
    value = column if isinstance(column, str) else column[1]
    return value(row) if callable(value) else row[value]


def paged(limit: int | None = None) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Add `--limit`, by default this many or all, and `--offset`: the paging of every list."""

    def decorate(command: Callable[..., Any]) -> Callable[..., Any]:
        at_most = click.option(
            "--limit",
            type=click.IntRange(min=1),
            default=limit,
            show_default="all" if limit is None else True,
            help="Maximum number of rows.",
        )
        start = click.option(
            "--offset",
            type=click.IntRange(min=0),
            default=0,
            show_default=True,
            help="Rows to leave out: the `next` of the list before.",
        )
        return at_most(start(command))

    return decorate


def and_more(listed: dict[str, Any]) -> str:
    """How many rows of a list are shown and how the next ones are, where there are any; else ""."""
    if listed.get("next") is None or "offset" not in click.get_current_context().params:
        return ""
    shown = f"{len(listed['data']):,} of {listed['total']:,}"
    return f"\n{shown}: --offset {listed['next']} lists the next ones"


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
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    drawn = Table(box=None, padding=(0, 2, 0, 0), pad_edge=False)
    for place, name in enumerate(head):
        values = [row[place] for row in rows if row[place] is not None]
        is_number = bool(values) and all(isinstance(value, int | float) for value in values)
        drawn.add_column(name, justify="right" if is_number else "left", no_wrap=True)
    for row in rows:
        drawn.add_row(*(Text(cell(value, max_columns)) for value in row))
    shown = io.StringIO()
    is_terminal = sys.stdout is not None and sys.stdout.isatty()
    Console(file=shown, width=MAX_TABLE_COLUMNS, force_terminal=is_terminal).print(drawn)
    return "\n".join(line.rstrip() for line in shown.getvalue().splitlines())


def drawn(
    columns: Sequence[Column],
    rows: Sequence[dict[str, Any]],
    *,
    empty: str = "",
    max_columns: int = MAX_CELL_COLUMNS,
) -> str:
    """The table of rows by these columns, `empty` without rows."""
    cells = [[cell_of(each, row) for each in columns] for row in rows]
    return table([*map(head_of, columns)], cells, empty=empty, max_columns=max_columns)


def sheet(rows: Iterable[Mapping[str, Any]], *, empty: str = "") -> str:
    """A table of rows by their keys, as a page has it; a column without any value is left out."""
    listed = [*rows]
    heads = [
        head
        for head in dict.fromkeys(key for row in listed for key in row)
        if any(row.get(head) not in NONE for row in listed)
    ]
    cells = [[row.get(head) for head in heads] for row in listed]
    labels = [head.replace("_", " ") for head in heads]
    return table(labels, cells, empty=empty, max_columns=MAX_SHEET_COLUMNS)


def one_line(text: str, columns: int = MAX_CELL_COLUMNS) -> str:
    """The text in one line without control characters, shortened to that many columns."""
    from rich.cells import cell_len, set_cell_size

    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return line if cell_len(line) <= columns else f"{set_cell_size(line, columns - 1).rstrip()}…"


def cell(value: object, max_columns: int = MAX_TABLE_COLUMNS) -> str:
    """A value as a person reads it, in one line: a dash for none, numbers with commas."""
    if value is None or value == "":
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:,.4f}"
    return one_line(str(value), max_columns)
