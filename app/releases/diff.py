"""Differences between two releases: added, removed and changed groups, with reasons."""

from collections import Counter

import streamlit as st

from analysis.files.csv_writer import csv_text
from app.kit.figure import draw_rows
from app.releases import actions
from app.text.plain import plain
from db.tables import Release

SHOWN = 500


def draw_release_diff(release: Release, others: list[Release]) -> None:
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
    rows = actions.read_diff(by_id[before], release)
    if not rows:
        st.caption("Both releases contain the same groups.")
        return
    counts = Counter(row.change for row in rows)
    st.caption(plain(", ".join(f"{change} {number:,}" for change, number in counts.items())))
    listed = [{"Query": row.query_id, "Change": row.change, "Reason": row.why} for row in rows]
    draw_rows(listed[:SHOWN], None, key="releases.diff", whole=lambda: csv_text(listed))
    if len(rows) > SHOWN:
        st.caption(f"First {SHOWN}. `inf releases diff {before} {release.id}` lists all.")
