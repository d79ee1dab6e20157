"""The Members page: who has which right where (admins only)."""

import streamlit as st

from app.kit.page import draw_empty, draw_heading
from app.people import actions
from app.text.plain import plain
from db.corpus.datasets import list_datasets
from db.people import accounts
from db.people.rights import list_members
from db.store.store import open_store
from db.study.studies import list_studies
from db.tables import Account, Member
from db.values import RIGHTS, STUDY_RIGHTS

Place = tuple[int | None, int | None]
EVERYWHERE: Place = (None, None)


def read_places() -> dict[Place, str]:
    """Everywhere, each dataset and each study, by their ids, with what they are called."""
    with open_store().read() as session:
        found: dict[Place, str] = {EVERYWHERE: "everywhere"}
        found |= {
            (one.id, None): f"dataset {one.name}" for one in list_datasets(session, archived=True)
        }
        found |= {(None, one.id): f"study {one.name}" for one in list_studies(session)}
    return found


def by_place(rows: list[tuple[Account, Member]]) -> dict[str, dict[Place, list[str]]]:
    """The rights of each account that has some, by place."""
    found: dict[str, dict[Place, list[str]]] = {}
    for account, member in rows:
        place = (member.dataset_id, member.study_id)
        found.setdefault(account.name, {}).setdefault(place, []).append(member.right_held)
    return found


def draw_member(account: Account, rights: dict[Place, list[str]], places: dict[Place, str]) -> None:
    """A person's rights, a line for each place where they have some."""
    with st.container(border=True):
        st.markdown(f"**{plain(account.name)}**")
        if account.role == "admin":
            st.caption("Admin: every right everywhere.")
            return
        if not rights:
            st.caption("No right: sees nothing.")
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
                args=(account.id, dataset_id, study_id, key),
            )


def draw_form(people: list[Account], places: dict[Place, str]) -> None:
    """Give a person rights on a place where they have none yet."""
    with st.form("members.add", clear_on_submit=True):
        st.markdown("**Add a member**")
        first, second, third = st.columns([2, 2, 3])
        first.selectbox("Person", [one.name for one in people], key="members.name")
        second.selectbox(
            "On",
            list(places),
            format_func=lambda place: places[place],
            index=1 if len(places) > 1 else 0,
            key="members.place",
        )
        third.multiselect(
            "Rights",
            RIGHTS,
            key="members.rights",
            help=f"On a single study: {' and '.join(STUDY_RIGHTS)}.",
        )
        st.form_submit_button("Add member", type="primary", on_click=actions.add_member)


draw_heading(
    "Members",
    "Who may judge, review, adjudicate, curate, train and release, on which dataset or study. "
    "People see nothing else.",
)
with open_store().read() as session:
    everybody = accounts.list_accounts(session)
    held_by = by_place(list_members(session))
if not everybody:
    draw_empty(
        "No accounts yet.",
        "Without accounts every user of this machine is admin.",
        view="accounts",
        link="Accounts",
    )
else:
    named = read_places()
    for person in everybody:
        draw_member(person, held_by.get(person.name, {}), named)
    if others := [one for one in everybody if one.role != "admin"]:
        draw_form(others, named)
