"""Batches of calls that a server processes later (OpenAI's Batch API), and their contents.

A batch is stored before anything is sent: after a crash at any step, the next process finds which
calls are at the server and does not pay for them again. A call of a batch is open until its answer
is in the journal, or `failed` if it has to be requested again.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import exists, func, insert, select, update
from sqlalchemy.orm import Session

from db.machine import is_dead
from db.run.workers import silent_owners, working_owners
from db.tables import Batch, BatchCall, Call, utc_now

KEYS_PER_QUERY = 500
OPEN = ("created", "submitted")


@dataclass(frozen=True)
class BatchSummary:
    """A batch as a list shows it."""

    id: int
    name: str
    remote_id: str | None
    model: str
    status: str
    calls: int
    failed: int
    error: str | None
    created_at: datetime
    ended_at: datetime | None


def create_batch(
    session: Session, *, run_id: int, owner: str, name: str, model: str, keys: Sequence[str]
) -> Batch:
    """Create a batch to be sent, with the content keys of its calls. Does not commit."""
    batch = Batch(run_id=run_id, owner=owner, name=name, model=model)
    session.add(batch)
    session.flush()
    session.execute(insert(BatchCall), [{"batch_id": batch.id, "key": key} for key in keys])
    return batch


def is_to_send(session: Session, batch_id: int) -> bool:
    """Whether a batch may still be created at the server: no other worker took it for lost."""
    batch = session.get_one(Batch, batch_id, populate_existing=True)
    return batch.status == "created" and batch.remote_id is None


def is_abandoned(session: Session, batch: Batch) -> bool:
    """Whether the worker that was to send a batch is dead, by its process or its heartbeat."""
    if is_dead(batch.owner) or batch.owner in silent_owners(session, batch.run_id):
        return True
    return batch.owner not in working_owners(session, batch.run_id)


def mark_submitted(session: Session, batch_id: int, remote_id: str) -> None:
    """Store the server's id of a batch: it was accepted. Does not commit."""
    session.execute(
        update(Batch)
        .where(Batch.id == batch_id)
        .values(remote_id=remote_id, status="submitted", submitted_at=utc_now())
    )


def end_batch(
    session: Session, batch_id: int, status: str, *, failed: Sequence[str], error: str | None
) -> None:
    """Store how a batch ended, and the keys to be requested again. Does not commit."""
    session.execute(
        update(Batch)
        .where(Batch.id == batch_id)
        .values(status=status, error=error, ended_at=utc_now())
    )
    for start in range(0, len(failed), KEYS_PER_QUERY):
        session.execute(
            update(BatchCall)
            .where(
                BatchCall.batch_id == batch_id,
                BatchCall.key.in_(failed[start : start + KEYS_PER_QUERY]),
            )
            .values(failed=True)
        )


def find_batched(session: Session, run_id: int, keys: Sequence[str]) -> dict[str, int]:
    """Which of these calls are in a batch of the run that has not failed them: key to batch id."""
    found: dict[str, int] = {}
    for start in range(0, len(keys), KEYS_PER_QUERY):
        rows = session.execute(
            select(BatchCall.key, BatchCall.batch_id)
            .join(Batch, Batch.id == BatchCall.batch_id)
            .where(
                Batch.run_id == run_id,
                BatchCall.key.in_(keys[start : start + KEYS_PER_QUERY]),
                ~BatchCall.failed,
            )
            .order_by(BatchCall.batch_id)
        )
        found.update((key, batch_id) for key, batch_id in rows)
    return found


def keys_to_take(session: Session, batch_id: int) -> set[str]:
    """The calls of a batch that are neither in the journal nor failed."""
    return set(
        session.scalars(
            select(BatchCall.key).where(
                BatchCall.batch_id == batch_id,
                ~BatchCall.failed,
                ~exists().where(Call.key == BatchCall.key),
            )
        )
    )


def open_batches(session: Session, run_id: int) -> list[Batch]:
    """The batches of a run that the server may still be working on."""
    query = select(Batch).where(Batch.run_id == run_id, Batch.status.in_(OPEN)).order_by(Batch.id)
    return list(session.scalars(query))


def list_batches(session: Session, run_id: int, *, limit: int = 50) -> list[BatchSummary]:
    """The batches of a run, newest first."""
    rows = session.execute(
        select(
            Batch.id,
            Batch.name,
            Batch.remote_id,
            Batch.model,
            Batch.status,
            func.count(BatchCall.key),
            func.count(BatchCall.key).filter(BatchCall.failed),
            Batch.error,
            Batch.created_at,
            Batch.ended_at,
        )
        .join(BatchCall, BatchCall.batch_id == Batch.id)
        .where(Batch.run_id == run_id)
        .group_by(Batch.id)
        .order_by(Batch.id.desc())
        .limit(limit)
    )
    return [BatchSummary(*tuple(row)) for row in rows]
