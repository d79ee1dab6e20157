"""The points of a stored map and their encoding for the card, shared by all sessions."""

import hashlib
from typing import TYPE_CHECKING

import numpy as np
import streamlit as st

from analysis.map.coverage import points_frame
from analysis.map.picture import map_payload
from app.access.session_user import hidden_from_user, hidden_pairs_from_user
from app.corpora.map import actions
from db.outcome.analyses import get_analysis
from db.store.store import open_store

if TYPE_CHECKING:
    import pandas as pd

Layers = tuple[str, str]


@st.cache_resource(max_entries=2, show_spinner="Loading points …")
def stored_points(store_url: str, analysis_id: int) -> "pd.DataFrame":
    """The points of a stored map; never modified."""
    with open_store(store_url).read() as session:
        return points_frame(get_analysis(session, analysis_id).payload or b"")


def visible_rows(points: "pd.DataFrame") -> np.ndarray:
    """Whether the user may see each point: not those of groups and pairs hidden from them."""
    visible = ~points["group_id"].isin(hidden_from_user()).to_numpy()
    if "pair_id" in points:  # not on maps of before version 6
        visible &= ~points["pair_id"].isin(hidden_pairs_from_user()).to_numpy()
    return visible


def shown_points(
    points: "pd.DataFrame", analysis_id: int, visible: np.ndarray
) -> tuple["pd.DataFrame", list[int]]:
    """The points that pass the map's filter and may be seen, and their rows in the whole map."""
    kept = [row for row in actions.shown_rows(analysis_id, len(points)) if visible[row]]
    if len(kept) == len(points):
        return points, kept
    return points.iloc[kept].reset_index(drop=True), kept


def picture_of(
    points: "pd.DataFrame",
    rows: list[int],
    analysis_id: int,
    colour: str,
    *,
    contours: bool,
    layers: Layers | None,
) -> bytes:
    """The points in the format of the card; computed once for the same rows of a map."""
    digest = hashlib.sha256(np.asarray(rows, dtype=np.int64).tobytes()).hexdigest()
    return _picture(open_store().url, analysis_id, digest, colour, contours, layers, points)


@st.cache_resource(max_entries=6, show_spinner=False)
def _picture(
    store_url: str,
    analysis_id: int,
    rows_sha256: str,
    colour: str,
    contours: bool,
    layers: Layers | None,
    _points: "pd.DataFrame",
) -> bytes:
    return map_payload(_points, colour, contours=contours, layers=layers)
