"""A worker's place in a run: it takes over the groups of dead workers, and leaves its own.

Groups are leased; a worker is dead when its process is gone (on this machine) or its heartbeat is
stale (on any other).
"""

from sqlalchemy.orm import Session

from db.machine import is_dead
from db.run.group_queue import lease_owners, release_groups
from db.run.workers import end_workers, silent_owners, working_owners


def take_over(session: Session, run_id: int, owner: str) -> list[str]:
    """Release the groups of dead workers; returns their names. Does not commit."""
    owners = {*lease_owners(session, run_id), *working_owners(session, run_id)} - {owner}
    dead = {name for name in owners if is_dead(name)}
    dead |= set(silent_owners(session, run_id)) - {owner}
    if dead:
        release_groups(session, run_id, sorted(dead))
        end_workers(session, sorted(dead))
    return sorted(dead)


def leave(session: Session, run_id: int, owner: str) -> None:
    """Release the groups that a worker still holds, and end it. Does not commit."""
    release_groups(session, run_id, [owner])
    end_workers(session, [owner])
