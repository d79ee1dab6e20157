"""The Members page: who has which right where (admins only)."""

from collections.abc import Iterable, Sequence

import streamlit as st

from app.access.session_user import signed_in_user
from app.kit.choice import choose
from app.kit.fields import draw_wrong
from app.kit.page import draw_empty, draw_heading, draw_wrapped
from app.operations import people
from app.operations.people import MemberRow, PersonRow, Place
from app.people import actions
from db.values import RIGHTS, STUDY_RIGHTS


def by_place(rows: Iterable[MemberRow]) -> dict[int, dict[Place, list[str]]]:
    """The rights of each account that has some, by place."""
    found: dict[int, dict[Place, list[str]]] = {}
    for row in rows:
        found.setdefault(row.account_id, {}).setdefault(row.place, []).append(row.right)
    return found


def rights_in_words(
    account: PersonRow, rights: dict[Place, list[str]], places: dict[Place, str]
) -> str:
    """A person's rights on one line: `demo: judge, review · Study of runs: judge`."""
    if account.role == "admin":
        return "every right everywhere"
    held = (f"{places.get(place, 'gone')}: {', '.join(given)}" for place, given in rights.items())
    return " · ".join(held) or "none: sees nothing"


def draw_member(
    account: PersonRow, rights: dict[Place, list[str]], places: dict[Place, str]
) -> None:
    """The rights of the chosen person, a line for each place where they have some."""
    if account.role == "admin":
        st.caption("Admin: every right everywhere. The Accounts page sets roles.")
        return
    if not rights:
        st.caption("No right: sees nothing. Add one below.")
    for place, held in rights.items():
        dataset_id, study_id = place
        key = f"members.{account.id}-{dataset_id or ''}-{study_id or ''}-{'+'.join(held)}"
        st.pills(
            places.get(place, "gone"),
            RIGHTS if study_id is None else STUDY_RIGHTS,
            default=held,
            selection_mode="multi",
            key=key,
            on_change=actions.save_rights,
            args=(account.id, place, key),
        )


def draw_form(persons: Sequence[PersonRow], places: dict[Place, str]) -> None:
    """Give a person rights on a place where they have none yet."""
    with st.form("members.add"):
        st.markdown("**Add a member**")
        first, second, third = st.columns([2, 2, 3])
        first.selectbox("Person", [one.name for one in persons], key="members.name")
        second.selectbox(
            "On",
            list(places),
            format_func=lambda place: places[place],
            index=1 if len(places) > 1 else 0,
            key="members.place",
        )
        with third:
            st.multiselect(
                "Rights",
                RIGHTS,
                key="members.rights",
                help=f"On a single study: {' and '.join(STUDY_RIGHTS)}.",
            )
            draw_wrong("members.rights")
        st.form_submit_button("Add member", type="primary", on_click=actions.add_member)


draw_heading(
    "Members",
    "Who may judge, review, adjudicate, curate, train and release, on which dataset or study. "
    "People see nothing else.",
)
user = signed_in_user()
everybody = people.list_all(user).data
held_by = by_place(people.members(user).data)
if not everybody:
    draw_empty(
        "No accounts yet.",
        "Without accounts every user of this machine is admin.",
        view="accounts",
        link="Accounts",
    )
else:
    named = people.places(user)
    draw_wrapped(
        [
            {
                "Person": one.name,
                "Role": one.role,
                "Rights": rights_in_words(one, held_by.get(one.id, {}), named),
            }
            for one in everybody
        ],
        {},
    )
    person = choose(
        "Rights of",
        everybody,
        key="members.person",
        parameter="person",
        ident=lambda one: one.id,
        name=lambda one: one.name,
    )
    draw_member(person, held_by.get(person.id, {}), named)
    if others := [one for one in everybody if one.role != "admin"]:
        draw_form(others, named)
