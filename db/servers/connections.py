"""Connections: model servers as runs name them. The rows only; keys are opened in `key_of`."""

import re
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.errors import BadInput, InfError, NotFound, Refused
from db.servers.sealing import seal, unseal
from db.store.secrets import ENDINGS, FILE, is_secret_now, redact_from_now_on, secret_now
from db.tables import Connection, Run

ENVIRONMENT: Final = "environment"  # the connection that the environment variables are
TYPED: Final = "typed"  # `secret` of a connection whose key was typed
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
SECRET_NAME = re.compile(r"[A-Z][A-Z0-9_]*")
NOT_FOR_SERVERS = ("HF_TOKEN", "INF_")  # they open other doors than a model server's
SERVERS: Final = ("openai", "azure", "compatible")  # kinds with an address


def get_connection(session: Session, name: str) -> Connection:
    """The connection of that name, or of that id as digits. Raises NotFound."""
    by_id = Connection.id == int(name) if name.isdecimal() and len(name) < 10 else None
    found = session.scalars(select(Connection).where(Connection.name == name)).first()
    if found is None and by_id is not None:
        found = session.scalars(select(Connection).where(by_id)).first()
    if found is None:
        known = ", ".join((ENVIRONMENT, *session.scalars(select(Connection.name))))
        raise NotFound(
            f"no connection {name!r}", f"there are {known}", code="connection_unknown", name=name
        )
    return found


def list_connections(session: Session) -> list[Connection]:
    """All connections by name."""
    return list(session.scalars(select(Connection).order_by(Connection.name)))


def add_connection(
    session: Session,
    *,
    name: str,
    kind: str,
    url: str = "",
    api_version: str = "",
    secret: str = "",
    key: str = "",
    private: bool = False,
    prices: Mapping[str, Any] | None = None,
    created_by: str = "",
) -> Connection:
    """Add a connection, its `url` checked before. Raises BadInput, Refused. Does not commit.

    A `key` is encrypted here; without one, `secret` names where the key is looked up.
    """
    if not NAME.fullmatch(name) or name == ENVIRONMENT or name.isdecimal():
        raise BadInput(
            f"a connection cannot be called {name!r}",
            "use letters, digits, dots, hyphens and underscores, with a letter among them",
            code="connection_name_invalid",
        )
    # names that differ in case alone would be taken for each other
    if session.scalar(select(Connection.id).where(func.lower(Connection.name) == name.lower())):
        raise Refused(
            f"there is a connection {name} already",
            "runs name its server: give another name, or change its key",
            code="connection_exists",
        )
    found = Connection(
        name=name,
        kind=kind,
        url=url,
        api_version=api_version,
        private=private,
        prices=dict(prices or {}),
        created_by=created_by,
    )
    set_key(found, secret=secret, key=key)
    session.add(found)
    session.flush()
    return found


def set_key(connection: Connection, *, secret: str = "", key: str = "") -> None:
    """Give a connection another key, typed or by the name of a secret; neither: no key.

    Raises BadInput for both of them, and for a name that is not a secret's for a server.
    """
    if secret and key:
        raise BadInput(
            "the key is typed or named, not both", "give one of them", code="connection_key_twice"
        )
    if secret and (
        not SECRET_NAME.fullmatch(secret)
        or not is_secret_now(secret)
        or secret.startswith(NOT_FOR_SERVERS)
    ):
        raise BadInput(
            "the secret is no name of a server's key",
            f"give the name of an entry of {FILE}, or of an environment variable that ends in "
            f"{', '.join(ENDINGS)}; a key itself is typed",
            code="connection_secret_invalid",
        )
    if key and (not key.isascii() or not key.isprintable() or " " in key.strip()):
        raise BadInput(
            "the key has characters that no header can hold",
            "copy it again",
            code="connection_key_invalid",
        )
    connection.secret = TYPED if key else secret
    connection.sealed_key = seal(key.strip()) if key else None


def key_of(connection: Connection) -> str | None:
    """The key of now, None for a server without one. Raises BadInput, InfError where it lacks."""
    if not connection.secret:
        return None
    if connection.sealed_key is not None:
        key = unseal(connection.sealed_key)
        return redact_from_now_on(key, f"the key of {connection.name}")
    found = None if connection.secret == TYPED else secret_now(connection.secret)
    if found is None:
        what = f"{connection.secret} is neither in the environment nor in {FILE}"
        if connection.secret == TYPED:
            what = "its key was typed, and a restored backup has none"
        raise InfError(
            f"the connection {connection.name} has no key here: {what}",
            f"set it, or give a key with `connections change {connection.name} key=yes`",
            code="server_key_missing",
        )
    return found


def remove_connection(session: Session, connection: Connection) -> None:
    """Delete a connection. Raises Refused while a run that is not over names it."""
    named = Run.server["connection"].as_string() == connection.name
    open_ids = session.scalars(
        select(Run.id).where(named, Run.status.not_in(("done", "cancelled"))).order_by(Run.id)
    ).all()
    if open_ids:
        listed = ", ".join(map(str, open_ids[:5])) + (", …" if len(open_ids) > 5 else "")
        raise Refused(
            f"runs that are not over use the connection {connection.name}: {listed}",
            "let them end, or cancel them",
            code="connection_in_use",
        )
    session.delete(connection)
    session.flush()
