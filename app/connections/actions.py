"""Actions of the Connections page: what its forms hold, to the operations on connections."""

from typing import Any

import streamlit as st

from app.access.session_user import action, notify, signed_in_user
from app.curate.server_choice import CHOSEN_SERVER, STORED, TESTED
from app.kit.acting import acting
from app.kit.fields import at_field, field_of, values_of_form
from app.operations import connections
from app.operations.connections import ConnectionAdd, ConnectionChange, ConnectionRow
from db.errors import InfError
from db.servers.connections import ENVIRONMENT


def _held(key: str) -> Any:
    return st.session_state.get(f"connections.{key}") or ""


def _taken(key: str) -> str:
    """A typed key, which leaves its field and the session's state at once."""
    typed = str(_held(key))
    st.session_state[f"connections.{key}"] = ""
    return typed


@action
@at_field("connections.{}")
def add() -> None:
    """Add the connection of the form, and try it at once.

    An error that a field of the form is to blame for is drawn there: nothing is added, and the form
    holds what was typed but the key.
    """
    key, user = _taken("key"), signed_in_user()
    wanted = ConnectionAdd.read(values_of_form(ConnectionAdd, key="connections"))
    added = connections.add(user, wanted, key)
    try:
        tested = connections.test(user, added.name) if added.url and not added.problem else None
    except InfError as error:
        if field_of(error):
            connections.remove(user, added.name)
        else:  # a server without a list of models, say
            _empty(added)
        raise
    _empty(added)
    if tested is not None:
        _tell(tested)
        st.session_state[CHOSEN_SERVER] = f"{STORED}{added.name}"  # the next run's, unless changed


def _empty(added: ConnectionRow) -> None:
    for name in ("name", "url", "secret", "api_version", "prices"):
        st.session_state[f"connections.{name}"] = ""
    notify(f"{added.name} is a connection; its key, if any, is stored and not shown again.")


@action
def test(name: str, key: str) -> None:
    """Try a connection with the model chosen in widget `key`."""
    _tell(connections.test(signed_in_user(), name, _held(key)))


def _tell(row: ConnectionRow) -> None:
    assert row.tested is not None
    if row.name == ENVIRONMENT:
        st.session_state[TESTED] = row.tested
    notify(f"{row.name} answers: {row.tested.model} in {row.tested.seconds:.2f} s.")


@action
def change_key(name: str, key: str) -> None:
    """Give a connection the key, or the name of a secret, of its form."""
    typed, secret = _taken(f"key-{key}"), _held(f"secret-{key}").strip()
    changed = connections.change(
        signed_in_user(), ConnectionChange(name=name, secret=secret), typed
    )
    notify(f"{changed.name} has {key_text(changed)} now.")


@action
def change_prices(name: str) -> None:
    """Give a connection the prices of its form, and no others."""
    typed = values_of_form(ConnectionChange, key=f"connections-{name}").get("prices", {})
    former = connections.show(signed_in_user(), name).prices
    prices = dict.fromkeys(former, "") | typed
    connections.change(signed_in_user(), ConnectionChange.read({"name": name, "prices": prices}))
    notify(f"The prices of {name} are saved.")


remove = acting(connections.remove, lambda row: f"{row.name} is removed.")


def key_text(row: ConnectionRow) -> str:
    """Where the key of a connection is."""
    if not row.secret:
        return "no key"
    return "a typed key" if row.secret == "typed" else f"the key {row.secret}"
