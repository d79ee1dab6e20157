"""Actions of Accounts, Members, Tokens and webhooks: what their forms hold, to the operations."""

from typing import Any

import streamlit as st

from app.access.session_user import action, notify, signed_in_user
from app.kit.acting import acting, keep
from app.kit.fields import at_field, values_of_form
from app.operations import people
from app.operations.doors import tokens, webhooks
from app.operations.people import PersonAdd, Place
from db.people.fields import FIELDS, account_field

LINK = "accounts.invitation"
TOKEN = "tokens.created"
SECRET = "webhooks.secret"


def _held(key: str) -> Any:
    return st.session_state.get(key) or ""


@action
@at_field("accounts.{}")
def add() -> None:
    """Add the account described in the form."""
    state, password = st.session_state, _held("accounts.password")
    state["accounts.password"] = ""
    given = values_of_form(PersonAdd, key="accounts")
    wanted = PersonAdd.read(given | {"name": _held("accounts.name").strip()})
    added = people.add(signed_in_user(), wanted, password)
    typed = ("accounts.name", *(f"accounts.{field.column}" for field in FIELDS))
    state.update({key: "" for key in typed if key in state})
    notify(f"{added.name} can sign in as {added.role}.")


invite = acting(people.invite, lambda paths: keep(LINK, paths[0]), form="accounts.invite")
create_link = acting(people.password_link, lambda link: keep(LINK, link.path))


@action
def save_rights(account_id: int, place: Place, key: str) -> None:
    """Give an account exactly the rights chosen in widget `key`, there."""
    chosen = sorted(st.session_state[key])
    changed = people.set_rights(signed_in_user(), account_id, chosen, place)
    notify(f"Rights of {changed.name} there: {', '.join(chosen) or 'none'}.")


@action
@at_field("members.{}")
def add_member() -> None:
    """Give a person the rights of the form on the chosen place, besides those they have there."""
    state = st.session_state
    name, rights, place = (state[f"members.{key}"] for key in ("name", "rights", "place"))
    added = people.add_rights(signed_in_user(), name, rights, place)
    state["members.rights"] = []
    notify(f"{added.name} is a member.")


disable = acting(
    people.disable, lambda row: f"{row.name} is {'disabled' if row.disabled else 'enabled'}."
)
sign_out = acting(people.sign_out, lambda row: f"{row.name} is signed out on all devices.")


@action
def change_role(name: str, key: str) -> None:
    """Give an account the role chosen in select box `key`."""
    changed = people.change_role(signed_in_user(), name, _held(key))
    notify(f"{name} now has the role {changed.role}.")


@action
def rename(name: str, key: str) -> None:
    """Give an account the name in widget `key`."""
    with at_field(key.replace("name", "{}")):
        notify(f"{name} is {people.rename(signed_in_user(), name, _held(key)).name} now.")


delete = acting(
    people.delete,
    lambda done: f"{done.name} is deleted. What they did stays as {done.pseudonym}.",
)


@action
def change_field(name: str, column: str, key: str) -> None:
    """Set an account's optional field from the text of widget `key`."""
    with at_field(key.replace(column, "{}")):
        value = getattr(people.change_field(signed_in_user(), name, column, _held(key)), column)
        notify(f"{account_field(column).label} of {name}: {value or 'removed'}.")


def _made(key: str, secret: str, typed: str) -> str:
    """Keep what is shown once, and empty the field of what was typed."""
    st.session_state[typed] = ""
    return keep(key, secret)


create_token = acting(
    tokens.create, lambda made: _made(TOKEN, made.token, "tokens.name"), form="tokens"
)
revoke_token = acting(tokens.revoke, lambda row: f"The token {row.name} is revoked.")


add_webhook = acting(
    webhooks.add, lambda made: _made(SECRET, made.secret, "webhooks.url"), form="webhooks"
)
enable_webhook = acting(
    webhooks.enable,
    lambda made: keep(SECRET, made.secret or "", f"`{made.url}` is sent events again."),
    takes=("id", "skip"),
)
test_webhook = acting(
    webhooks.test,
    lambda row: f"`{row.url}` answered: {row.answer}{'' if row.ok else ', and did not take it'}.",
)
remove_webhook = acting(webhooks.remove, lambda row: f"`{row.url}` is removed.")
