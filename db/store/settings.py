"""Paths and addresses, read from the environment and nothing else.

`INF_HOME` (default `.inf` in the current folder) holds the embedded store, logs and checkpoints;
`INF_DATABASE_URL` chooses another store, `INF_DATABASE_SCHEMA` a schema there (PostgreSQL).
"""

import os
import re
from pathlib import Path

from db.errors import BadInput
from db.home import home


def database_schema() -> str:
    """The schema of the tables on PostgreSQL; "" for the search path of role and database.

    Raises BadInput for a name that is not a plain one.
    """
    return schema_name(os.environ.get("INF_DATABASE_SCHEMA", "").strip(), "INF_DATABASE_SCHEMA")


def schema_name(name: str, given_by: str) -> str:
    """The name of a schema, which needs no quoting. Raises BadInput that names `given_by`."""
    if name and not re.fullmatch(r"[a-z_][a-z0-9_]{0,62}", name):
        raise BadInput(
            f"{given_by} is {name!r}: a name of small letters, digits and underscores is needed, "
            "as studio",
            "correct the name",
            code="schema_name_invalid",
        )
    return name


def logs() -> Path:
    """The folder of job logs."""
    return home() / "logs"


def log_of_attempt(job_id: int, attempt: int) -> Path:
    """The log of a job's attempt on this machine."""
    return logs() / f"job-{job_id}-{attempt}.log"


_is_owners_process: bool | None = None  # not decided yet


def owners_process(is_it: bool) -> None:
    """Set whether sessions of this process see everything where no actor is given.

    Those that the store's owner starts do: commands, jobs, supervisors. The server does not.
    """
    global _is_owners_process
    _is_owners_process = is_it


def owners_unless_decided() -> None:
    """As `owners_process(True)`, but in a process that decided: the server stays closed."""
    if _is_owners_process is None:
        owners_process(True)


def is_owners_process() -> bool:
    """Whether `owners_process` was set for this process."""
    return _is_owners_process is True
