"""Actions on a map selection: filter the map, fill a study's list, reject groups."""

from typing import Any

import streamlit as st

from app.access.session_user import action, notify, signed_in_user
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


# The selection on the map: of the card, or of the list of topics; the newest one counts.
SHAPE = "coverage.shape"
CLEARED = "coverage.cleared"
RESELECTED = "coverage.reselected"


def take_shape(key: str) -> None:
    """Take over the selection that the card reports."""
    shape = (st.session_state.get(key) or {}).get("shape")
    st.session_state[SHAPE] = (key, dict(shape)) if shape else None
    st.session_state[RESELECTED] = True


def select_cluster(key: str, name: str) -> None:
    """Select a cluster by name, as a click on its name does."""
    st.session_state[SHAPE] = (key, {"kind": "cluster", "name": name})
    _clear_outline()


def clear_selection() -> None:
    """Clear the selection; the view of the map stays."""
    st.session_state.pop(SHAPE, None)
    _clear_outline()


def _clear_outline() -> None:
    st.session_state[CLEARED] = cleared() + 1


def selected_shape(key: str) -> dict[str, Any] | None:
    """The selection on the map of this card; None for one of another map."""
    stored = st.session_state.get(SHAPE)
    return stored[1] if stored and stored[0] == key else None


def cleared() -> int:
    """How often the page has cleared the selection: the card then drops its outline."""
    count: int = st.session_state.get(CLEARED, 0)
    return count
