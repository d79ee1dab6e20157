"""What the Coverage page's selection becomes: a filter of the map, a study's list, rejections."""

import streamlit as st

from app.access.session_user import action, notify, require_permission
from db.errors import BadInput
from db.people.accounts import record_audit
from db.review.reviews import reject_group
from db.run.groups import groups_by_run
from db.store.store import open_store

MOST_REJECTED = 2000
KEPT = "coverage.kept_rows"


def shown_rows(analysis_id: int, points: int) -> list[int]:
    """The rows of the map that its filter leaves, all of them without one."""
    kept = st.session_state.get(KEPT)
    if kept is None or kept[0] != analysis_id:
        return list(range(points))
    return [row for row in kept[1] if row < points]


def show_only(analysis_id: int, rows: list[int]) -> None:
    """Leave only these rows on the map."""
    st.session_state[KEPT] = (analysis_id, rows)
    forget_selection()


def hide(analysis_id: int, rows: list[int]) -> None:
    """Take these rows off the map."""
    gone = set(rows)
    total = int(st.session_state["coverage.points"])
    before = shown_rows(analysis_id, total)
    st.session_state[KEPT] = (analysis_id, [row for row in before if row not in gone])
    forget_selection()


def show_all() -> None:
    """Put every point back."""
    st.session_state.pop(KEPT, None)
    forget_selection()


def forget_selection() -> None:
    """The selection is of points that are drawn anew: a new map begins without one."""
    st.session_state.pop("coverage.shape", None)
    st.session_state["coverage.drawing"] = st.session_state.get("coverage.drawing", 0) + 1


def list_for_study(groups: list[int]) -> None:
    """The form of the page Studies, with these groups as its list; of the run with most of them."""
    with open_store().read() as session:
        by_run = groups_by_run(session, groups)
    run_id, mine = next(iter(by_run.items()))
    if len(by_run) > 1:
        notify(f"A study is of one run: the list has the {len(mine):,} groups of run {run_id}.")
    st.session_state["studies.run"] = run_id
    st.session_state["studies.sample"] = "list"
    st.session_state["studies.list"] = "\n".join(str(group) for group in mine)


@action
def reject(groups: list[int]) -> None:
    """Reject the groups in the user's name, with the reason of the form."""
    user = require_permission("review_many")
    reason = (st.session_state.get("coverage.reason") or "").strip()
    if len(groups) > MOST_REJECTED:
        raise BadInput(f"{len(groups):,} groups: at most {MOST_REJECTED:,} at once; select fewer")
    with open_store().write() as session:
        for group_id in groups:
            reject_group(session, group_id, reason=reason, reviewed_by=user.name)
        record_audit(session, user.name, "coverage.reject", str(len(groups)), reason=reason)
        session.commit()
    notify(f"{len(groups):,} groups are rejected: releases leave them out.")
