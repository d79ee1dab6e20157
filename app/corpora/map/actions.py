"""Actions on a map selection: filter the map, fill a study's list, reject groups."""

from typing import Any

import streamlit as st

from app.access.session_user import action, notify, require_permission
from app.corpora.map.chosen import clear_selection
from app.groups.filters import MAX_IDS
from app.text.numbers import counted
from curation.judging.independence import map_sentence
from db.assignment.hidden import require_visible
from db.corpus.growing import Growable, pairs_to_grow
from db.errors import BadInput
from db.events import record_event
from db.review.reviews import reject_group
from db.run.groups import groups_by_run
from db.store.store import open_store

MAX_REJECTED = 2000
KEPT = "coverage.kept_rows"


def shown_rows(analysis_id: int, points: int) -> list[int]:
    """The rows of the map that pass its filter; all rows if there is none."""
    kept = st.session_state.get(KEPT)
    if kept is None or kept[0] != analysis_id:
        return list(range(points))
    return [row for row in kept[1] if row < points]


def show_only(analysis_id: int, rows: list[int]) -> None:
    """Keep only these rows on the map."""
    st.session_state[KEPT] = (analysis_id, rows)
    forget_selection()


def hide(analysis_id: int, rows: list[int]) -> None:
    """Remove these rows from the map."""
    gone = set(rows)
    total = int(st.session_state["coverage.points"])
    before = shown_rows(analysis_id, total)
    st.session_state[KEPT] = (analysis_id, [row for row in before if row not in gone])
    forget_selection()


def show_all() -> None:
    """Remove the filter."""
    st.session_state.pop(KEPT, None)
    forget_selection()


def forget_selection() -> None:
    """Clear the selection; the card starts again under a new key."""
    clear_selection()
    st.session_state["coverage.drawing"] = st.session_state.get("coverage.drawing", 0) + 1


def groups_of_one_run(groups: list[int]) -> tuple[int | None, list[int]]:
    """The run that has most of the groups, and which; at most as many as an address takes."""
    with open_store().read() as session:
        by_run = groups_by_run(session, groups)
    run_id, mine = next(iter(by_run.items()), (None, []))
    return run_id, mine[:MAX_IDS]


def growable(groups: list[int], pairs: list[int]) -> Growable:
    """The pairs of these groups and these pairs, by whether a group of them was kept."""
    with open_store().read() as session:
        return pairs_to_grow(session, group_ids=groups, pair_ids=pairs)


def list_for_study(groups: list[int]) -> int:
    """Fill the Studies form with these groups; returns the run that has most of them, to which
    the list is limited."""
    with open_store().read() as session:
        by_run = groups_by_run(session, groups)
    run_id, mine = next(iter(by_run.items()))
    if len(by_run) > 1:
        notify(f"A study covers one run: the list has the {len(mine):,} groups of run {run_id}.")
    st.session_state["studies.run"] = run_id
    st.session_state["studies.sample"] = "list"
    st.session_state["studies.list"] = "\n".join(str(group) for group in mine)
    return run_id


@action
def reject(groups: list[int]) -> None:
    """Reject the groups in the user's name, with the reason from the form."""
    user = require_permission("review_many")
    reason = (st.session_state.get("coverage.reason") or "").strip()
    if len(groups) > MAX_REJECTED:
        raise BadInput(
            f"{len(groups):,} groups: at most {MAX_REJECTED:,} at once, so select fewer",
            code="groups_too_many",
        )
    with open_store().write() as session:
        for group_id in groups:
            require_visible(session, group_id, user.name)
            reject_group(session, group_id, reason=reason, reviewed_by=user.name)
        record_event(session, user.name, "coverage.reject", str(len(groups)), reason=reason)
        session.commit()
    notify(f"Rejected {counted(len(groups), 'group')}. Releases leave them out.")


def read_circular_map(result: dict[str, Any]) -> str:
    """Whether a validator embeds the map of the groups that it chose, in a sentence; else empty."""
    with open_store().read() as session:
        return map_sentence(session, result)
