"""Server groups: which endpoints count as one server, whose answers may stand for each other's.

A group has a name, or is named after the endpoints that it began with. An endpoint may join it
later without changing the name, and so without changing the keys of the answers.
"""

from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.store.bulk import insert_new
from db.tables import ServerGroup, utc_now


def find_group(session: Session, endpoints: Sequence[str], name: str = "") -> str:
    """The name of the group that these endpoints belong to, stored or not.

    With a `name` that one. Without, the oldest unnamed group that has one of the endpoints, else a
    new one named after all of them.
    """
    if name:
        return name
    for group in session.scalars(select(ServerGroup).order_by(ServerGroup.id)):
        if group.name.startswith("http") and set(group.endpoints) & set(endpoints):
            return group.name
    return ", ".join(sorted(endpoints))


def join_group(session: Session, endpoints: Sequence[str], name: str = "") -> str:
    """The group of these endpoints, as `find_group`, with all of them in it. Does not commit."""
    name = find_group(session, endpoints, name)
    row = {"name": name, "endpoints": sorted(endpoints), "created_at": utc_now()}
    insert_new(session, ServerGroup, [row], ("id",))  # another worker may have made it just now
    group = session.scalars(select(ServerGroup).where(ServerGroup.name == name)).one()
    if missing := set(endpoints) - set(group.endpoints):
        group.endpoints = [*group.endpoints, *sorted(missing)]
    session.flush()
    return name
