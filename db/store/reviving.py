"""What must not come back to life in a store that is copied or put back: jobs and sign-ins."""

from datetime import timedelta

from sqlalchemy import Connection, inspect, select, update
from sqlalchemy.orm import Session

from db.errors import Refused
from db.tables import AccountSession, ApiToken, Job, PasswordLink, utc_now

ALIVE = timedelta(seconds=60)  # a heartbeat younger than this is of a job that runs


def require_no_running_jobs(connection: Connection, *, but: int | None = None) -> None:
    """Raise Refused if jobs of the store run, `but` aside; a store without tables has none."""
    if not inspect(connection).has_table(Job.__tablename__):
        return
    rows = connection.execute(select(Job.id, Job.heartbeat_at).where(Job.status == "running"))
    running = [
        number for number, beat in rows if number != but and beat and utc_now() - beat < ALIVE
    ]
    if running:
        raise Refused(
            f"jobs are running ({', '.join(map(str, running))})",
            "wait for them or cancel them, and stop the servers of this store",
            code="jobs_running",
        )


def end_open_jobs(session: Session, *, when: str, but: int | None = None) -> None:
    """Set queued jobs to cancelled and running ones to lost, `but` aside.

    `when` ends "was queued when …".
    """
    for before, after in (("queued", "cancelled"), ("running", "lost")):
        session.execute(
            update(Job)
            .where(Job.status == before, *([] if but is None else [Job.id != but]))
            .values(
                status=after,
                finished_at=utc_now(),
                error=f"was {before} when {when}; resume continues it",
            )
        )


def end_sign_ins(session: Session) -> None:
    """End sessions, password links and tokens: some may have been ended after the copy was made.

    A store of an earlier revision has none.
    """
    if not inspect(session.connection()).has_table(AccountSession.__tablename__):
        return
    session.execute(
        update(AccountSession).where(AccountSession.ended_at.is_(None)).values(ended_at=utc_now())
    )
    session.execute(
        update(PasswordLink).where(PasswordLink.used_at.is_(None)).values(used_at=utc_now())
    )
    if inspect(session.connection()).has_table(ApiToken.__tablename__):
        session.execute(
            update(ApiToken).where(ApiToken.revoked_at.is_(None)).values(revoked_at=utc_now())
        )
