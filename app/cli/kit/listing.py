"""Lists of all nouns: `list` with `--limit` and `--offset`, its table and its JSON."""

import functools
import shlex
from collections.abc import Callable, Mapping
from typing import Any

from app.cli.kit.formerly import with_former_keys
from app.cli.kit.report import Result, reporting
from app.cli.kit.table import MAX_CELL_COLUMNS, Column, cell_of, head_of, paged, table
from db.rows import Listed


def listing(
    *columns: Column,
    empty: str,
    then: str = "",
    limit: int | None = None,
    former: tuple[str, Mapping[str, str]] | None = None,
    max_columns: int = MAX_CELL_COLUMNS,
) -> Callable[..., Any]:
    """Decorate the command of a list, which takes the page: a table of these columns, or `empty`.

    then: the next step, with fields of the first row in braces; limit: of a page, by default all
    rows; former: the name and the keys that the rows had in an earlier version.
    """

    def text(result: Result) -> str:
        rows = result["data"]
        cells = [[cell_of(each, row) for each in columns] for row in rows]
        drawn = table([*map(head_of, columns)], cells, empty=empty, max_columns=max_columns)
        if not rows or not then:
            return drawn
        first = {
            name: shlex.quote(value) if isinstance(value, str) else value
            for name, value in rows[0].items()
        }
        return f"{drawn}\nnext: {then.format(**first)}"

    def decorate(command: Callable[..., Result | Listed[Any]]) -> Callable[..., Any]:
        @functools.wraps(command)
        def wrapper(**given: Any) -> Result:
            found = command(**given)
            listed = found if isinstance(found, dict) else found.as_json()
            return listed if former is None else with_former_keys(listed, *former)

        return paged(limit)(reporting(text)(wrapper))

    return decorate
