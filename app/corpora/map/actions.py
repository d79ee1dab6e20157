"""Actions on a map selection: filter the map, fill a study's list, reject groups."""

import streamlit as st

from app.access.session_user import action, notify, signed_in_user
from app.corpora.map.chosen import clear_selection
from app.operations import analyses
from app.operations.judging import reviews
from app.text.numbers import counted

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


def list_for_study(groups: list[int]) -> int:
    """Fill the Studies form with these groups; returns the run that has most of them, to which
    the list is limited."""
    by_run = analyses.runs_of(signed_in_user(), groups)
    run_id, mine = next(iter(by_run.items()))
    if len(by_run) > 1:
        notify(f"A study covers one run: the list has the {len(mine):,} groups of run {run_id}.")
    st.session_state["studies.run"] = run_id
    st.session_state["studies.sample"] = "list"
    st.session_state["studies.lines"] = "\n".join(str(group) for group in mine)
    return run_id


@action
def reject(groups: list[int]) -> None:
    """Reject the groups in the user's name, with the reason from the form."""
    reason = st.session_state.get("coverage.reason") or ""
    number = reviews.reject_selected(signed_in_user(), groups, reason)
    notify(f"Rejected {counted(number, 'group')}. Releases leave them out.")
