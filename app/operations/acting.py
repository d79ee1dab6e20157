"""Sessions of an actor, and the ways a job is launched: in the queue, or as a command waits."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, TypeVar

from sqlalchemy.orm import Session

from app.access.identity import Actor, owner
from app.access.permissions import NEEDS, admit, require
from app.jobs import launching
from db.assignment import hidden
from db.errors import StoreBehind
from db.jobs.jobs import LOCAL
from db.patience import patience_of
from db.requests import Request
from db.store.schema import require_current
from db.store.scope import limited_to, unscoped
from db.store.store import open_store
from db.tables import Job

T_co = TypeVar("T_co", covariant=True)


class Launch(Protocol[T_co]):
    """How a job starts: what it returns is the door's (a number, or the result of the job)."""

    def __call__(self, actor: Actor, kind: str, request: Request) -> T_co:
        """Start the job. Raises as `app.jobs.launching.launch`."""
        ...


def owner_of_store(name: str) -> Actor:
    """Whoever owns the store's process: every right. Raises StoreBehind unless the
    store is of this version."""
    require_current(open_store())
    return owner(name)


def is_new_store() -> bool:
    """Whether the store has no tables yet. Raises StoreBehind for one of another version."""
    try:
        require_current(open_store())
    except StoreBehind as error:
        if error.code != "store_empty":
            raise
        return True
    return False


def queue(actor: Actor, kind: str, config: dict[str, Any], *, after: int | None = None) -> int:
    """Queue a job of this config; returns its id, which is greater than `after`.

    Raises as `app.jobs.launching.launch`.
    """
    return launching.launch(open_store(), kind, config, actor=actor, after=after)


def in_foreground(
    actor: Actor,
    kind: str,
    config: dict[str, Any],
    *,
    watch: Callable[[Job], None],
    after: int | None = None,
) -> Job:
    """Run a job as who waits for it, here or on the cluster that is chosen; `watch` sees it."""
    if launching.chosen_launcher() != LOCAL:
        job_id = queue(actor, kind, config, after=after)
        return launching.wait_for(open_store(), job_id, patience_of(config), watch=watch)
    return launching.run_in_foreground(open_store(), kind, config, actor=actor, watch=watch)


def queued(actor: Actor, kind: str, request: Request) -> int:
    """Queue the job; returns its id."""
    return queue(actor, kind, request.config())


def store_address() -> str:
    """Which store sessions are of: the key of what a door caches."""
    return str(open_store().engine.url)


@contextmanager
def reading(actor: Actor, permission: str) -> Iterator[Session]:
    """A session that sees what the actor may see with the permission. Raises Refused without it."""
    require(actor, permission)
    with limited_to(NEEDS[permission].scope(actor)), open_store().read() as session:
        yield session


@contextmanager
def writing(actor: Actor, permission: str) -> Iterator[Session]:
    """A session whose transaction is committed at the end; nothing of it is where that raises.

    The actor is admitted in it (`app.access.permissions.admit`).
    """
    with admitted(actor, permission) as (session, _):
        yield session


@contextmanager
def admitted(actor: Actor, permission: str) -> Iterator[tuple[Session, Actor]]:
    """As `writing`, and the actor with the account and rights of now."""
    with unscoped(), open_store().write() as session:
        now = admit(session, actor, permission)
        yield session, now
        session.commit()


def record_read(group_ids: Collection[int], actor: Actor) -> None:
    """Record groups that are shown in full to the actor; a write only where one is new."""
    with unscoped(), open_store().read() as session:
        unread = hidden.unread_groups(session, group_ids, actor.name)
    if unread:
        with unscoped(), open_store().write() as session:
            hidden.record_read(session, unread, actor.name)
            session.commit()
