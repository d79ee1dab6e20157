"""The selection on the map: of the card, or of the list of topics; the newest one counts."""

from typing import Any

import streamlit as st

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
