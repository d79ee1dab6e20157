"""Counting what a piece of work asks of the store: SQL statements and seconds by function,
transactions."""

import time
import traceback
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, event
from sqlalchemy.engine import Engine

ROOT = Path(__file__).resolve().parent.parent
OURS = tuple(f"{ROOT / package}/" for package in ("app", "curation", "db"))
BEGINS = ("BEGIN", "SET LOCAL")


@dataclass
class StatementCount:
    """Statements (savepoints too), and seconds in them, by the function of ours that sends them.

    What begins a transaction is not a statement here, and neither is its end.
    """

    statements: Counter[str] = field(default_factory=Counter)
    seconds: Counter[str] = field(default_factory=Counter)
    transactions: int = 0

    @property
    def total(self) -> int:
        """All statements."""
        return self.statements.total()


@contextmanager
def statements_counted() -> Iterator[StatementCount]:
    """Count on every engine of this process, in all threads."""
    found = StatementCount()

    def execute(connection: Connection, _u: Any, statement: str, *_: Any) -> None:
        if not statement.startswith(BEGINS):
            found.statements[_function_of_ours()] += 1
        connection.info["started"] = time.perf_counter()

    def executed(connection: Connection, *_: Any) -> None:
        took = time.perf_counter() - connection.info["started"]
        found.seconds[_function_of_ours()] += took

    def begin(_connection: Any) -> None:
        found.transactions += 1

    event.listen(Engine, "before_cursor_execute", execute)
    event.listen(Engine, "after_cursor_execute", executed)
    event.listen(Engine, "begin", begin)
    try:
        yield found
    finally:
        event.remove(Engine, "before_cursor_execute", execute)
        event.remove(Engine, "after_cursor_execute", executed)
        event.remove(Engine, "begin", begin)


def _function_of_ours() -> str:
    for frame in reversed(traceback.extract_stack()):
        if frame.filename.startswith(OURS):
            return f"{Path(frame.filename).relative_to(ROOT)}:{frame.name}"
    return "elsewhere"
