"""Whether PostgreSQL refuses a sign-in, in whatever language it reports that.

The server words the errors of a sign-in in its own `lc_messages`: what a client requests applies
only after it. Such an error has no SQLSTATE in psycopg, libpq's trace leaves it out, and `PQping`
cannot tell a server that refuses from one that is full. But libpq knows the code, and writes it
into the message where that is requested before the server answers.
"""

import ctypes
import re
import select
import sys
import time
from typing import Any

from psycopg import pq
from psycopg.conninfo import make_conninfo
from psycopg.pq.abc import PGconn

PQERRORS_SQLSTATE = 3  # libpq's enum PGVerbosity: codes in place of messages
SECONDS = 5.0  # the server has answered just now
CODES = re.compile(r" (28000|28P01|3D000)$", re.MULTILINE)
# of libpq itself, and of a server that speaks English: no second sign-in is needed
MESSAGES = re.compile(
    r"authentication failed|no password supplied|no pg_hba\.conf entry|"
    r"(role|database) \".*\" does not exist|is not permitted to log in"
)
# of libpq itself where no server answered, and of one that starts or is full: no code is needed
AWAY = re.compile(
    rb"Is the server running|server closed the connection|the database system is |too many clients"
)


def is_refused(error: Any) -> bool:
    """Whether the error of a connection means that its role, password or database is wrong.

    Where its message does not tell in English, the server is called once more.
    """
    if MESSAGES.search(str(error)):
        return True
    failed = getattr(error, "pgconn", None)  # of the last of several addresses
    if failed is None or AWAY.search(failed.error_message):
        return False
    return CODES.search(_with_codes(failed)) is not None


def _with_codes(failed: PGconn) -> str:
    """The error of a second attempt to connect, with SQLSTATEs for messages; "" without one."""
    set_verbosity = _set_verbosity()
    given = {each.keyword.decode(): each.val.decode() for each in failed.info if each.val}
    if set_verbosity is None or not given:
        return ""
    connection: Any = pq.PGconn.connect_start(make_conninfo(**given).encode())
    try:
        set_verbosity(connection.pgconn_ptr, PQERRORS_SQLSTATE)
        until = time.monotonic() + SECONDS
        while connection.status != pq.ConnStatus.BAD and time.monotonic() < until:
            status = connection.connect_poll()
            if status == pq.PollingStatus.OK:
                return ""
            if status == pq.PollingStatus.FAILED:
                break
            socket = [connection.socket]  # none where nothing listens
            reading = socket if status == pq.PollingStatus.READING else []
            select.select(reading, [] if reading else socket, [], SECONDS)
        return str(connection.get_error_message())
    finally:
        connection.finish()


def _set_verbosity() -> Any:
    """libpq's PQsetErrorVerbosity, which psycopg has no name for; None where it is not found."""
    module = sys.modules[pq.PGconn.__module__]  # it is linked to the libpq that is in use
    try:
        found = ctypes.CDLL(module.__file__).PQsetErrorVerbosity
    except (OSError, AttributeError):
        return None
    found.argtypes = [ctypes.c_void_p, ctypes.c_int]
    return found
