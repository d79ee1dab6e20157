"""The Accounts page: who can sign in, and with which role (admins only)."""

import streamlit as st

from app.access.openid import providers
from app.access.session_user import signed_in_user
from app.kit.choice import choose
from app.kit.fields import draw_fields, draw_wrong
from app.kit.page import draw_empty, draw_hand_off, draw_heading, draw_table
from app.operations import people
from app.operations.people import Invitation, PersonRow
from app.people import actions
from app.text.plain import plain
from db.names import MAX_NAME_CHARACTERS
from db.people.fields import FIELDS, AccountField
from db.people.passwords import LINK_HOURS, MIN_PASSWORD_CHARACTERS
from db.values import ACCOUNT_ROLES


def draw_account(account: PersonRow, *, is_me: bool) -> None:
    """One account and its controls."""
    with st.container(border=True):
        with st.container(horizontal=True, vertical_alignment="center"):
            st.markdown(f"**{plain(account.name)}**" + (" (you)" if is_me else ""), width="content")
            if account.disabled:
                st.badge("disabled", color="red")
            if account.name_problem:
                st.badge(
                    "rename",
                    color="orange",
                    help="Such a name is refused today: a model or InF Studio itself has it, or "
                    "it looks like another. It was given by an earlier version.",
                )
            st.caption(f"since {account.created_at:%Y-%m-%d}", width="stretch")
            for field in shown_fields():
                draw_field(account, field)
        with st.container(horizontal=True, vertical_alignment="center"):
            draw_controls(account, is_me=is_me)


def shown_fields() -> list[AccountField]:
    """The optional fields that matter here."""
    return [field for field in FIELDS if providers() or not field.needs_openid]


def draw_field(account: PersonRow, field: AccountField) -> None:
    key = f"accounts.{field.column}-{account.id}"
    st.text_input(
        field.label,
        getattr(account, field.column) or "",
        key=key,
        placeholder=field.label,
        help=field.help,
        on_change=actions.change_field,
        args=(account.name, field.column, key),
        label_visibility="collapsed",
        width=220,
    )
    draw_wrong(key)


def draw_controls(account: PersonRow, *, is_me: bool) -> None:
    st.selectbox(
        "Role",
        ACCOUNT_ROLES,
        index=ACCOUNT_ROLES.index(account.role),
        key=f"accounts.role-{account.id}-{account.role}",
        on_change=actions.change_role,
        args=(account.name, f"accounts.role-{account.id}-{account.role}"),
        label_visibility="collapsed",
        width=140,
        disabled=is_me,
    )
    st.button(
        "Enable" if account.disabled else "Disable",
        key=f"accounts.disable-{account.id}",
        on_click=actions.disable,
        args=(account.name,),
        kwargs={"disabled": not account.disabled},
        disabled=is_me,
    )
    st.button(
        "Password link",
        key=f"accounts.link-{account.id}",
        help="A link with which this person sets a new password: it works once, for "
        f"{LINK_HOURS} hours.",
        on_click=actions.create_link,
        args=(account.name,),
        disabled=account.disabled,
    )
    st.button(
        "Sign out everywhere",
        key=f"accounts.out-{account.id}",
        on_click=actions.sign_out,
        args=(account.name,),
    )
    with st.popover("Rename", key=f"accounts.rename-{account.id}"):
        key = f"accounts.name-{account.id}"
        st.text_input("New name", account.name, key=key, max_chars=MAX_NAME_CHARACTERS)
        draw_wrong(key)
        st.caption("Judgments, reviews and rights stay with the person, and so do their sessions.")
        st.button(
            "Rename",
            key=f"accounts.rename-do-{account.id}",
            type="primary",
            on_click=actions.rename,
            args=(account.name, key),
        )
    with st.popover("Delete", key=f"accounts.delete-{account.id}", disabled=is_me):
        st.markdown(
            f"Delete **{plain(account.name)}** for good? They are signed out everywhere and lose "
            "all rights. Their judgments and reviews stay, under a pseudonym."
        )
        st.button(
            "Delete account",
            key=f"accounts.delete-do-{account.id}",
            type="primary",
            on_click=actions.delete,
            args=(account.id,),
        )


draw_heading(
    "Accounts",
    "Annotators judge; curators also manage data; admins also manage accounts. The Members page "
    "sets rights on single datasets and studies.",
)
user = signed_in_user()
found = people.list_all(user).data
if not found:
    draw_empty(
        "No accounts yet.",
        "This app listens on this machine only and treats every user as admin. The first account "
        "must be an admin; after that everyone has to sign in. Create it with the form below, or "
        "by this command on the machine where the app runs; it then asks for the password.",
        command="inf people add NAME --role admin",
    )
study = st.query_params.get("study", "")
if found and study.isdecimal() and len(study) < 10:  # from a study, to make the admin account
    draw_hand_off("studies", f"Go on: invite people to study {study}", study=study)
if found:
    draw_table(
        [
            {
                "Name": one.name,
                "Role": one.role,
                "Since": one.created_at.date(),
                "State": "disabled" if one.disabled else "rename" if one.name_problem else "",
                **{field.label: getattr(one, field.column) for field in shown_fields()},
            }
            for one in found
        ],
        key="accounts.table",
    )
    account = choose(
        "Account",
        found,
        key="accounts.chosen",
        parameter="account",
        ident=lambda one: one.id,
        name=lambda one: one.name,
    )
    draw_account(account, is_me=user.account_id == account.id)
with st.form("accounts.add"):
    st.markdown("**Add an account**")
    first, second, third = st.columns([2, 1.5, 2])
    with first:
        st.text_input("Name", key="accounts.name")
        draw_wrong("accounts.name")
    roles = ACCOUNT_ROLES if found else ("admin",)
    second.selectbox("Role", roles, key="accounts.role")
    with third:
        st.text_input(
            "Password",
            type="password",
            placeholder=f"at least {MIN_PASSWORD_CHARACTERS} characters",
            key="accounts.password",
            autocomplete="new-password",
        )
        draw_wrong("accounts.password")
    for field in shown_fields():
        st.text_input(f"{field.label} (optional)", help=field.help, key=f"accounts.{field.column}")
        draw_wrong(f"accounts.{field.column}")
    st.form_submit_button(
        "Add account", type="primary", on_click=actions.add, key="accounts.submit"
    )
if found:
    with st.form("accounts.invite"):
        st.markdown("**Invite a person** who chooses their own name and password")
        first, second, third = st.columns([2, 1, 2], vertical_alignment="bottom")
        with first:
            draw_fields(Invitation, ["role"], key="accounts.invite")
        with second:
            draw_fields(Invitation, ["days"], key="accounts.invite")
        third.form_submit_button(
            "Create link", on_click=actions.invite, key="accounts.invite_submit"
        )
    path = st.session_state.pop(actions.LINK, None)
    if path:
        st.caption("Send this link to one person. It works once and is not shown again.")
        st.code((st.context.url or "").split("/accounts")[0].rstrip("/") + path, language=None)
