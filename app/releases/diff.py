"""Differences between two releases: added, removed and changed groups, with reasons."""

from collections.abc import Sequence

import streamlit as st

from analysis.files.csv_writer import csv_text
from app.access.session_user import require_permission
from app.kit.figure import draw_rows
from app.operations import releases
from app.operations.releases import ReleaseRow
from app.text.plain import plain

SHOWN = 500


def draw_release_diff(release: ReleaseRow, others: Sequence[ReleaseRow]) -> None:
    """Choose an earlier release and list the differences."""
    by_id = {
        each.id: each
        for each in others
        if each.id != release.id and each.dataset_id == release.dataset_id
    }
    if not by_id:
        return
    before = st.selectbox(
        "Changes since",
        [None, *by_id],
        format_func=lambda n: "choose a release" if n is None else f"release {n} · {by_id[n].name}",
        key="releases.before",
    )
    if before is None:
        return
    found = releases.diff(require_permission(releases.RIGHT), before, release.id)
    rows = found.data
    if not rows:
        st.caption("Both releases contain the same groups.")
        return
    changes = found.changes.items()
    st.caption(plain(", ".join(f"{change} {number:,}" for change, number in changes)))
    listed = [row.as_json() for row in rows]
    draw_rows(
        listed[:SHOWN],
        None,
        key="releases.diff",
        whole=lambda: csv_text(listed),
        column_config={"query_id": "Query", "change": "Change", "why": "Reason"},
    )
    if len(rows) > SHOWN:
        st.caption(f"First {SHOWN}. `inf releases diff {before} {release.id}` lists all.")
