"""What the Review page's buttons do. Keys carry the group: a click is about what was seen."""

from collections.abc import Callable

import streamlit as st
from sqlalchemy.orm import Session

from app.visit import acting, action, say
from db.errors import BadInput
from db.groups import GroupDetail
from db.reviews import FIELDS, approve_group, edit_group, reject_group
from db.store import open_store


def text_of(group: GroupDetail, field: str) -> str:
    """The text of a group that a field of an edit stands for."""
    role, column = FIELDS[field][0]
    return str(getattr(group.triplets[role], column))


@action
def approve(group_id: int) -> None:
    """Approve the group in the visitor's name."""
    _write(lambda session, name: approve_group(session, group_id, reviewed_by=name))
    say(f"Group {group_id} is approved.")


@action
def reject(group_id: int) -> None:
    """Reject the group for the reason in its form."""
    reason = st.session_state.get(f"review.reason-{group_id}") or ""
    _write(lambda session, name: reject_group(session, group_id, reason=reason, reviewed_by=name))
    say(f"Group {group_id} is rejected.")


@action
def edit(group_id: int, before: dict[str, str]) -> None:
    """Write what was changed in the form; `before` are the texts the form was filled with."""
    now = {name: st.session_state[f"review.{name}-{group_id}"] or "" for name in before}
    changes = {name: text for name, text in now.items() if text != before[name]}
    if not changes:
        raise BadInput("nothing was changed")
    _write(lambda session, name: edit_group(session, group_id, changes, reviewed_by=name))
    for name in now:
        del st.session_state[f"review.{name}-{group_id}"]
    st.query_params["group"] = str(group_id)
    say(f"Group {group_id} is edited; approve it when the new text is good.")


def _write(deed: Callable[[Session, str], object]) -> None:
    visitor = acting("review")
    with open_store().write() as session:
        deed(session, visitor.name)
        session.commit()
    st.query_params.pop("group", None)


def later(offset: int) -> None:
    """Go on to another group of the queue without a review."""
    st.session_state["review.offset"] = offset
    st.query_params.pop("group", None)
