"""Actions of the Connections page: what its forms hold, to the operations on connections."""

from typing import Any

import streamlit as st

from app.access.session_user import action, notify, signed_in_user
from app.curate.server_choice import CHOSEN_SERVER, STORED, TESTED
from app.kit.acting import acting
from app.kit.fields import values_of_form
from app.operations import connections
from app.operations.connections import ConnectionAdd, ConnectionChange, ConnectionRow
from app.text.languages import DEFAULT, error_text
from db.errors import InfError
from db.servers.connections import ENVIRONMENT

WRONG = "connections.wrong"
# The fields to blame for errors, by their codes; those of addresses begin alike.
FIELDS = {
    "connection_exists": "name",
    "connection_name_invalid": "name",
    "connection_key_invalid": "key",
    "connection_key_twice": "key",
    "server_refuses_key": "key",
    "connection_secret_invalid": "secret",
    "request_invalid": "prices",
    "connection_url_missing": "url",
    "connection_without_url": "url",
    "server_redirects": "url",
    "server_wants_sign_in": "url",
    "server_unreachable": "url",
}


def field_of(error: InfError) -> str | None:
    """The field of the form that an error is about; None for one of no field."""
    if error.code.startswith("server_address_"):
        return "url"
    return FIELDS.get(error.code)


def _held(key: str) -> Any:
    return st.session_state.get(f"connections.{key}") or ""


def _taken(key: str) -> str:
    """A typed key, which leaves its field and the session's state at once."""
    typed = str(_held(key))
    st.session_state[f"connections.{key}"] = ""
    return typed


@action
def add() -> None:
    """Add the connection of the form, and try it at once.

    An error that a field of the form is to blame for is kept for that field: nothing is added, and
    the form holds what was typed but the key.
    """
    key, user = _taken("key"), signed_in_user()
    added = None
    try:
        wanted = ConnectionAdd.read(values_of_form(ConnectionAdd, key="connections"))
        added = connections.add(user, wanted, key)
        tested = connections.test(user, added.name) if added.url and not added.problem else None
    except InfError as error:
        if (field := field_of(error)) is None:
            if added is not None:  # a server without a list of models, say
                _empty(added)
            raise
        if added is not None:
            connections.remove(user, added.name)
        st.session_state[f"{WRONG}-{field}"] = error_text(DEFAULT, error)
        return
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
