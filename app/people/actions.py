"""Actions of the Accounts page."""

import streamlit as st

from app.access.session_user import action, notify, require_permission
from db.errors import BadInput, NotFound, Refused
from db.people import accounts, invitations
from db.people.fields import FIELDS, account_field, set_field, set_fields
from db.people.passwords import create_password_link, hash_password
from db.people.renaming import delete_account, rename_account
from db.people.rights import add_rights, require_not_admin, set_rights
from db.store.store import open_store
from db.tables import Account


@action
def add() -> None:
    """Add the account described in the form."""
    user = require_permission("accounts")
    state = st.session_state
    name = (state["accounts.name"] or "").strip()
    hashed = hash_password(state["accounts.password"] or "", known=[name])
    with open_store().write() as session:
        if not accounts.has_accounts(session) and state["accounts.role"] != "admin":
            raise BadInput(
                "the first account must be an admin, or no one could add others",
                code="first_account_must_admin",
            )
        account = accounts.add_account(
            session,
            name,
            hashed,
            role=state["accounts.role"],
            actor=user.name,
        )
        texts = {field.column: state.get(f"accounts.{field.column}") or "" for field in FIELDS}
        set_fields(session, account.name, texts, actor=user.name)
        session.commit()
    notify(f"{account.name} can sign in as {account.role}.")


@action
def invite() -> None:
    """Create an invitation; its link is shown once."""
    user = require_permission("accounts")
    state = st.session_state
    with open_store().write() as session:
        token = invitations.invite(
            session,
            role=state["accounts.invite_role"],
            days=int(state["accounts.invite_days"]),
            actor=user.name,
        )
        session.commit()
    state["accounts.invitation"] = f"/invitation/{token}"


@action
def create_link(name: str) -> None:
    """Create a link that sets the account's password once; it is shown once."""
    user = require_permission("accounts")
    with open_store().write() as session:
        account = accounts.get_account(session, name)
        token = create_password_link(session, account, actor=user.name)
        session.commit()
    st.session_state["accounts.invitation"] = f"/password/{token}"


@action
def save_rights(account_id: int, dataset_id: int | None, study_id: int | None, key: str) -> None:
    """Give an account exactly the rights chosen in widget `key`, there."""
    user = require_permission("accounts")
    with open_store().write() as session:
        account = session.get_one(Account, account_id)
        require_not_admin(account)
        chosen = list(st.session_state[key])
        set_rights(
            session,
            account,
            chosen,
            actor=user.name,
            dataset_id=dataset_id,
            study_id=study_id,
        )
        session.commit()
    notify(f"Rights of {account.name} there: {', '.join(sorted(chosen)) or 'none'}.")


@action
def add_member() -> None:
    """Give a person the rights of the form on the chosen place, besides those they have there."""
    user, state = require_permission("accounts"), st.session_state
    dataset_id, study_id = state["members.place"]
    with open_store().write() as session:
        account = accounts.get_account(session, state["members.name"])
        require_not_admin(account)
        chosen = list(state["members.rights"])
        if not chosen:
            raise BadInput("no right chosen", "choose at least one", code="no_right_chosen")
        add_rights(
            session,
            account,
            chosen,
            actor=user.name,
            dataset_id=dataset_id,
            study_id=study_id,
        )
        session.commit()
    notify(f"{account.name} is a member.")


@action
def change(name: str, what: str) -> None:
    """Disable, enable or sign out an account, or set the role chosen in select box `what`."""
    user = require_permission("accounts")
    with open_store().write() as session:
        if what in ("disable", "enable"):
            accounts.set_disabled(session, name, what == "disable", actor=user.name)
            done = f"{name} is {what}d."
        elif what == "sign-out":
            accounts.sign_out_everywhere(session, name, actor=user.name)
            done = f"{name} is signed out on all devices."
        else:
            role = st.session_state[what]
            accounts.set_role(session, name, role, actor=user.name)
            done = f"{name} now has the role {role}."
        session.commit()
    notify(done)


@action
def rename(name: str, key: str) -> None:
    """Give an account the name in widget `key`."""
    user = require_permission("accounts")
    with open_store().write() as session:
        renamed = rename_account(session, name, st.session_state[key] or "", actor=user.name).name
        session.commit()
    notify(f"{name} is {renamed} now.")


@action
def delete(account_id: int) -> None:
    """Delete an account, but not the user's own."""
    user = require_permission("accounts")
    if user.account_id == account_id:
        raise Refused("this is your own account", "another admin can delete it", code="own_account")
    with open_store().write() as session:
        found = session.get(Account, account_id)
        if found is None:
            raise NotFound("this account is gone already", code="account_gone_already")
        name = found.name
        pseudonym = delete_account(session, name, actor=user.name)
        session.commit()
    notify(f"{name} is deleted. What they did stays as {pseudonym}.")


@action
def change_field(name: str, column: str, key: str) -> None:
    """Set an account's optional field from the text of widget `key`."""
    user = require_permission("accounts")
    with open_store().write() as session:
        account = set_field(session, name, column, st.session_state[key] or "", actor=user.name)
        session.commit()
    value = getattr(account, column)
    notify(f"{account_field(column).label} of {name}: {value or 'removed'}.")
