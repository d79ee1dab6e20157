"""The points of a stored map, shared by all sessions: their encoding for the card, the search."""

import hashlib
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import streamlit as st

from analysis.found.texts import CorpusPoints
from analysis.map.difference import Layers
from analysis.map.facets import Panel, faceted, languages_of_topics
from analysis.map.picture import map_payload
from app.access.identity import Actor
from app.access.session_user import hidden_from_user, hidden_pairs_from_user, signed_in_user
from app.corpora.map import actions
from app.operations import analyses
from app.operations.acting import store_address

if TYPE_CHECKING:
    import pandas as pd

MIN_CHARACTERS = 2


class Searched(NamedTuple):
    """Where the search of a map looks: its corpora, and the folders of its releases."""

    corpora: Sequence[CorpusPoints]
    published: Sequence[str]


def stored_points(actor: Actor, analysis_id: int) -> "pd.DataFrame":
    """The points of a map that the actor found; never modified."""
    return _points(store_address(), analysis_id, actor)


@st.cache_resource(max_entries=2, show_spinner="Loading points …")
def _points(store: str, analysis_id: int, _actor: Actor) -> "pd.DataFrame":
    return analyses.points(_actor, analysis_id)


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


def in_panels(
    shown: "pd.DataFrame", rows: list[int], points: "pd.DataFrame", analysis_id: int
) -> tuple["pd.DataFrame", list[Panel]]:
    """The shown points of a map in a panel for each language (`analysis.map.facets`); computed
    once for the same rows of a map."""
    return _in_panels(store_address(), analysis_id, _digest(rows), shown, points)


@st.cache_resource(max_entries=2, show_spinner=False)
def _in_panels(
    store: str,
    analysis_id: int,
    rows_sha256: str,
    _shown: "pd.DataFrame",
    _points: "pd.DataFrame",
) -> tuple["pd.DataFrame", list[Panel]]:
    return faceted(_shown, _topic_languages(store, analysis_id, _points))


@st.cache_resource(max_entries=8, show_spinner=False)
def _topic_languages(store: str, analysis_id: int, _points: "pd.DataFrame") -> dict[str, str]:
    return languages_of_topics(_points)


def _digest(rows: list[int]) -> str:
    return hashlib.sha256(np.asarray(rows, dtype=np.int64).tobytes()).hexdigest()


def picture_of(
    points: "pd.DataFrame",
    rows: list[int],
    analysis_id: int,
    colour: str,
    *,
    contours: bool,
    layers: Layers | None,
    panels: Sequence[Panel],
) -> bytes:
    """The points in the format of the card; computed once for the same rows of a map."""
    digest = hashlib.sha256(np.asarray(rows, dtype=np.int64).tobytes()).hexdigest()
    return _picture(
        store_address(), analysis_id, digest, colour, contours, layers, tuple(panels), points
    )


@st.cache_resource(max_entries=6, show_spinner=False)
def _picture(
    store: str,
    analysis_id: int,
    rows_sha256: str,
    colour: str,
    contours: bool,
    layers: Layers | None,
    panels: tuple[Panel, ...],
    _points: "pd.DataFrame",
) -> bytes:
    return map_payload(_points, colour, contours=contours, layers=layers, panels=panels)


def rows_with(points: "pd.DataFrame", found: Searched, text: str) -> np.ndarray:
    """The rows whose text contains `text`, case-insensitive, ascending.

    found: the map's corpora and the paths of its releases. The points
    hold the start of each text; the rest is looked for in the store. Of files from elsewhere only
    the start is searched.
    """
    if len(text) < MIN_CHARACTERS or points.empty:
        return np.zeros(0, dtype=np.int64)
    inside = points["text"].str.contains(text, case=False, regex=False, na=False).to_numpy(bool)
    by_group, by_pair = analyses.search(signed_in_user(), found.corpora, found.published, text)
    if by_group:
        places = zip(points["group_id"], points["role"], points["field"], strict=True)
        inside = inside | np.array([place in by_group for place in places], dtype=bool)
    if by_pair and "pair_id" in points:
        pairs = zip(points["pair_id"], points["field"], strict=True)
        alone = points["group_id"].isna().to_numpy()
        inside = inside | (np.array([pair in by_pair for pair in pairs], dtype=bool) & alone)
    return np.flatnonzero(inside)
