"""Search on the map: which of its points contain some words, in the whole text where stored."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from db.corpus.searching import pairs_with, texts_with
from db.release.releases import runs_of_releases_at
from db.store.store import open_store

if TYPE_CHECKING:
    import pandas as pd

MIN_CHARACTERS = 2


def rows_with(points: "pd.DataFrame", found: dict[str, Any], text: str) -> np.ndarray:
    """The rows whose text contains `text`, case-insensitive, ascending.

    found: the map's corpora (`corpora`) and the paths of its releases (`published`). The points
    hold the start of each text; the rest is looked for in the store. Of files from elsewhere only
    the start is searched.
    """
    if len(text) < MIN_CHARACTERS or points.empty:
        return np.zeros(0, dtype=np.int64)
    inside = points["text"].str.contains(text, case=False, regex=False, na=False).to_numpy(bool)
    by_group, by_pair = _in_store(found["corpora"], found.get("published") or (), text)
    if by_group:
        places = zip(points["group_id"], points["role"], points["field"], strict=True)
        inside = inside | np.array([place in by_group for place in places], dtype=bool)
    if by_pair and "pair_id" in points:
        pairs = zip(points["pair_id"], points["field"], strict=True)
        alone = points["group_id"].isna().to_numpy()
        inside = inside | (np.array([pair in by_pair for pair in pairs], dtype=bool) & alone)
    return np.flatnonzero(inside)


def _in_store(
    corpora: Sequence[dict[str, Any]], published: Sequence[str], text: str
) -> tuple[set[tuple[int, str, str]], set[tuple[int, str]]]:
    runs = {each["run_id"] for each in corpora if each.get("run_id")}
    datasets = {
        each["dataset_id"] for each in corpora if each.get("dataset_id") and not each.get("run_id")
    }
    with open_store().read() as session:
        runs |= set(runs_of_releases_at(session, published))
        return (
            texts_with(session, runs, text) if runs else set(),
            pairs_with(session, datasets, text) if datasets else set(),
        )
