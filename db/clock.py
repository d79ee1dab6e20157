"""The store's clock, by which heartbeats and leases are written and judged.

Machines' clocks differ, by minutes where nobody sets them: a worker whose clock is behind would be
taken for dead. On SQLite all processes are on one machine, and its clock is the store's.
"""

from datetime import datetime, timedelta

from sqlalchemy import DateTime, func, select, type_coerce
from sqlalchemy.orm import Session

from db.tables import utc_now

_POSTGRES = select(
    type_coerce(func.clock_timestamp(), DateTime(timezone=True)),
    type_coerce(func.pg_postmaster_start_time(), DateTime(timezone=True)),
)


def store_now(session: Session) -> datetime:
    """Now, aware, by the store's clock."""
    return _now_and_start(session)[0]


def silent_since(
    session: Session, seconds: float, *, now: datetime | None = None
) -> datetime | None:
    """The moment before which a heartbeat is too old; None while none can be.

    A server that was started less than `seconds` ago has taken no heartbeat before: whoever waited
    for it is alive.
    """
    found, start = _now_and_start(session)
    limit = (now or found) - timedelta(seconds=seconds)
    return None if start is not None and start > limit else limit


def lease_clock(session: Session, seconds: float) -> tuple[datetime, bool]:
    """Now, and whether a lease of `seconds` may have expired: just after the store's own start
    none has, since whoever waited for the store renews its leases."""
    now, start = _now_and_start(session)
    return now, start is None or start <= now - timedelta(seconds=seconds)


def _now_and_start(session: Session) -> tuple[datetime, datetime | None]:
    """The store's clock, and since when its server is up; None for a file."""
    if session.get_bind().dialect.name != "postgresql":
        return utc_now(), None
    now, start = session.execute(_POSTGRES).one()
    return now, start
