"""Actions of Accounts, Members, Tokens and webhooks: what their forms hold, to the operations."""

from typing import Any

import streamlit as st

from app.access.session_user import action, notify, signed_in_user
from app.kit.acting import acting
from app.operations import people
from app.operations.doors import tokens, webhooks
from app.operations.doors.tokens import TokenCreate
from app.operations.doors.webhooks import WebhookAdd, WebhookEnable
from app.operations.people import Place
from db.people.fields import FIELDS, account_field

LINK = "accounts.invitation"
TOKEN = "tokens.created"
SECRET = "webhooks.secret"


def _held(key: str) -> Any:
    return st.session_state.get(key) or ""


@action
def add() -> None:
    """Add the account described in the form."""
    texts = {field.column: _held(f"accounts.{field.column}") for field in FIELDS}
    added = people.add(
        signed_in_user(),
        _held("accounts.name").strip(),
        _held("accounts.password"),
        role=_held("accounts.role"),
        fields=texts,
    )
    notify(f"{added.name} can sign in as {added.role}.")


@action
def invite() -> None:
    """Create an invitation; its link is shown once."""
    role, days = _held("accounts.invite_role"), int(_held("accounts.invite_days"))
    st.session_state[LINK] = people.invite(signed_in_user(), role=role, days=days)[0]


@action
def create_link(name: str) -> None:
    """Create a link that sets the account's password once; it is shown once."""
    st.session_state[LINK] = people.password_link(signed_in_user(), name)


@action
def save_rights(account_id: int, place: Place, key: str) -> None:
    """Give an account exactly the rights chosen in widget `key`, there."""
    chosen = sorted(st.session_state[key])
    changed = people.set_rights(signed_in_user(), account_id, chosen, place)
    notify(f"Rights of {changed.name} there: {', '.join(chosen) or 'none'}.")


@action
def add_member() -> None:
    """Give a person the rights of the form on the chosen place, besides those they have there."""
    state = st.session_state
    name, rights, place = (state[f"members.{key}"] for key in ("name", "rights", "place"))
    notify(f"{people.add_rights(signed_in_user(), name, rights, place).name} is a member.")


@action
def change(name: str, what: str) -> None:
    """Disable, enable or sign out an account, or set the role chosen in select box `what`."""
    user = signed_in_user()
    if what in ("disable", "enable"):
        people.disable(user, name, disabled=what == "disable")
        notify(f"{name} is {what}d.")
    elif what == "sign-out":
        people.sign_out(user, name)
        notify(f"{name} is signed out on all devices.")
    else:
        notify(f"{name} now has the role {people.change_role(user, name, _held(what)).role}.")


@action
def rename(name: str, key: str) -> None:
    """Give an account the name in widget `key`."""
    notify(f"{name} is {people.rename(signed_in_user(), name, _held(key)).name} now.")


delete = acting(
    people.delete,
    lambda done: f"{done.name} is deleted. What they did stays as {done.pseudonym}.",
)


@action
def change_field(name: str, column: str, key: str) -> None:
    """Set an account's optional field from the text of widget `key`."""
    value = getattr(people.change_field(signed_in_user(), name, column, _held(key)), column)
    notify(f"{account_field(column).label} of {name}: {value or 'removed'}.")


@action
def create_token() -> None:
    """Create the token of the form; it is shown once."""
    wanted = TokenCreate.read(
        {
            "name": _held("tokens.name"),
            "rights": list(_held("tokens.rights")),
            "datasets": list(_held("tokens.datasets")),
            "days": int(st.session_state["tokens.days"]),
            "budget_usd": st.session_state.get("tokens.budget_usd"),
        }
    )
    st.session_state[TOKEN] = tokens.create(signed_in_user(), wanted).token


revoke_token = acting(tokens.revoke, lambda row: f"The token {row.name} is revoked.")


@action
def add_webhook() -> None:
    """Add the webhook of the form; its secret is shown once."""
    wanted = WebhookAdd.read(
        {
            "url": _held("webhooks.url"),
            "events": list(_held("webhooks.events")),
            "private": bool(_held("webhooks.private")),
        }
    )
    st.session_state[SECRET] = webhooks.add(signed_in_user(), wanted).secret


@action
def enable_webhook(webhook_id: int, skip: bool) -> None:
    """Switch a webhook on; a new secret is shown once."""
    made = webhooks.enable(signed_in_user(), WebhookEnable(id=webhook_id, skip=skip))
    st.session_state[SECRET] = made.secret or ""
    notify(f"{made.url} is sent events again.")


test_webhook = acting(
    webhooks.test,
    lambda row: f"{row.url} answered: {row.answer}{'' if row.ok else ', and did not take it'}.",
)
remove_webhook = acting(webhooks.remove, lambda row: f"{row.url} is removed.")
