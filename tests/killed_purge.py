"""Purges that end by SIGKILL at a point of their own, as a program that forks one for each line.

    python tests/killed_purge.py < LINES

A line is a JSON object of `point` (a name in `POINTS`), `url`, `dataset` and `backup`; each is
answered with the exit status of its process, -9 for a kill. One program for all of them, since
most of the time would go into importing.
"""

import json
import os
import signal
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import event
from sqlalchemy.orm import Session, configure_mappers

from db.archive.purging import purge
from db.people.rights import ALL_RIGHTS
from db.store.settings import owners_process
from db.store.store import open_store

owners_process(True)


@dataclass(frozen=True)
class Point:
    """After a statement that contains `text`, or at a commit; once the backup is there, or not."""

    at: str
    text: str = ""
    after_backup: bool = True


POINTS = {
    "after it is archived": Point("after commit", after_backup=False),
    "within the backup": Point("statement", "FROM passage", after_backup=False),
    "after the backup": Point("statement", "SELECT"),
    "after the first deletion": Point("statement", "DELETE"),
    "before the end": Point("before commit"),
    "after the end": Point("after commit"),
}


def killed_at(point: Point, url: str, dataset: str, backup: Path) -> None:
    """Purge the dataset in this process until `point`, then end it by SIGKILL."""
    store = open_store(url)
    unfinished = backup.with_name(f".{backup.name}.unfinished")
    within = point.text == "FROM passage"

    def reached(statement: str = "") -> None:
        is_there = backup.exists() == point.after_backup and (not within or unfinished.exists())
        if is_there and point.text in statement:
            os.kill(os.getpid(), signal.SIGKILL)

    if point.at == "statement":
        event.listen(
            store.engine, "after_cursor_execute", lambda _c, _cursor, text, *_: reached(text)
        )
    elif point.at == "before commit":
        event.listen(store.engine, "commit", lambda _connection: reached())
    else:
        event.listen(Session, "after_commit", lambda _session: reached())
    purge(store, dataset=dataset, rights=ALL_RIGHTS, actor="the admin", backup=backup)


def in_a_fork(do: Callable[..., None], *arguments: Any) -> int:
    """The exit status of a process of its own that does it."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    try:
        do(*arguments)
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


if __name__ == "__main__":
    configure_mappers()  # once, not in each fork
    for line in sys.stdin:
        wanted = json.loads(line)
        file = Path(wanted["backup"])
        status = in_a_fork(
            killed_at, POINTS[wanted["point"]], wanted["url"], wanted["dataset"], file
        )
        sys.stdout.write(f"{status}\n")
        sys.stdout.flush()
