"""Counting the steps of SQLite's virtual machine: what a query costs, whatever the machine does."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from sqlalchemy.orm import Session

EVERY = 20


@dataclass
class Steps:
    """How many steps were counted, to the nearest twenty."""

    total: int = 0


@contextmanager
def steps_counted(session: Session) -> Iterator[Steps]:
    """Count the steps of the session's statements."""
    found = Steps()

    def count() -> None:
        found.total += EVERY

    connection = session.connection().connection.driver_connection
    assert connection is not None
    connection.set_progress_handler(count, EVERY)
    try:
        yield found
    finally:
        connection.set_progress_handler(None, 0)
