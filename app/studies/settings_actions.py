"""Actions of a study's forms: invite people, add qualification and gold items, set the rules."""

import json
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import streamlit as st

from app.access.session_user import action, hidden_from_user, notify, require_permission
from app.text.numbers import counted
from curation.judging.gold_item_file import add_from_file, template_rows
from db.assignment.hidden import open_groups
from db.errors import BadInput
from db.events import record_event
from db.people import invitations
from db.people.accounts import has_accounts
from db.store.store import open_store
from db.study import gold_items
from db.study.gold_items import GoldItem, list_gold_items
from db.study.rules import StudyRules, rules_of, set_rules
from db.study.studies import get_study
from db.tables import Item

LINKS = "studies.links"
MAX_LINKS = 50
TEMPLATE_ROWS = 20
GOLD_ITEMS = 5
MAX_SAMPLED = 500
HIDDEN_ITEM = "hidden: you may be given this item"
PART_LABELS = {"training": "qualification", "gold": "gold"}


def read_items_with_answer(study_id: int) -> list[GoldItem]:
    """The qualification and gold items of a study; without answers those hidden from the user."""
    hidden = hidden_from_user()
    with open_store().read() as session:
        found = list_gold_items(session, study_id)
    return [
        replace(one, instruction=HIDDEN_ITEM, right="", explanation="")
        if one.group_id in hidden
        else one
        for one in found
    ]


def gold_template(study_id: int) -> str:
    """A JSONL file of items whose answers are to be filled in."""
    with open_store().read() as session:
        rows = template_rows(session, study_id, TEMPLATE_ROWS)
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def default_count(study_id: int, part: str) -> int:
    """How many items to sample: examples for all rounds of a qualification, or a few gold items."""
    if part != "training":
        return GOLD_ITEMS
    rules = read_rules(study_id)
    return min(rules.training_items * rules.training_rounds, MAX_SAMPLED)


def read_rules(study_id: int) -> StudyRules:
    """The rules of a study."""
    with open_store().read() as session:
        return rules_of(get_study(session, study_id))


def read_has_accounts() -> bool:
    """Whether people sign in; without accounts everyone is the local admin."""
    with open_store().read() as session:
        return has_accounts(session)


@action
def invite(study_id: int) -> None:
    """Create invitation links, one per person; they are shown once."""
    user, state = require_permission("studies"), st.session_state
    with open_store().write() as session:
        tokens = [
            invitations.invite(
                session,
                role="annotator",
                days=int(state["studies.invite_days"]),
                actor=user.name,
                study_id=study_id,
            )
            for _ in range(int(state["studies.invite_people"]))
        ]
        session.commit()
    state[LINKS] = [f"/invitation/{token}" for token in tokens]


@action
def sample_known(study_id: int) -> None:
    """Add qualification or gold items sampled from approved groups."""
    user, part = require_permission("studies"), str(st.session_state["studies.known_part"])
    with open_store().write() as session:
        count = int(st.session_state[f"studies.known_count_{part}"])
        sampled = gold_items.sample_gold_items(session, study_id, part, count)
        record_event(session, user.name, f"study.{part}", study_id, items=len(sampled))
        session.commit()
    notify(f"{counted(len(sampled), f'{PART_LABELS[part]} item')} added.")


@action
def add_known(study_id: int) -> None:
    """Add the rows of the uploaded file as qualification or gold items."""
    user, part = require_permission("studies"), str(st.session_state["studies.known_part"])
    upload = st.session_state["studies.known_file"]
    if upload is None:
        raise BadInput("no file", "choose one with a row per item", code="no_file")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / Path(upload.name).name
        path.write_bytes(upload.getvalue())
        with open_store().write() as session:
            added = add_from_file(session, study_id, part, path)
            record_event(session, user.name, f"study.{part}", study_id, items=len(added))
            groups = [session.get_one(Item, item_id).group_id for item_id in added]
            # who writes the answers knows them
            open_groups(session, groups, person=user.name, where="gold file")
            session.commit()
    notify(f"{counted(len(added), f'{PART_LABELS[part]} item')} added from {upload.name}.")


@action
def save_rules(study_id: int) -> None:
    """Save the rules of the form, where shares are in percent."""
    user = require_permission("studies")

    def chosen(name: str) -> Any:
        return st.session_state[f"studies.{name}_{study_id}"]

    changes = {
        "pass_mark": int(chosen("pass_mark")) / 100,
        "training_rounds": int(chosen("training_rounds")),
        "training_items": int(chosen("training_items")),
        "gold_threshold": int(chosen("gold_threshold")) / 100,
        "gold_action": str(chosen("gold_action")),
        "too_fast_seconds": float(chosen("too_fast")),
        "members_only": bool(chosen("members_only")),
    }
    with open_store().write() as session:
        set_rules(session, study_id, **changes)
        record_event(session, user.name, "study.rules", study_id, rules=changes)
        session.commit()
    notify("Rules saved. They apply from now on.")
