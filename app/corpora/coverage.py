"""The tables of a map: the share each corpus occupies, and how much of it another covers."""

from typing import Any

import streamlit as st

from analysis.text.diversity_tables import COVERED_COLUMNS, compared_rows, share_rows
from app.kit.figure import Origin, draw_rows

SHARE = st.column_config.NumberColumn(format="%.3f")


def draw_numbers(result: dict[str, Any], origin: Origin) -> None:
    """Shares of equally many texts of two corpora; nothing for a single corpus."""
    if len(result["corpora"]) < 2 or not result.get("fields"):
        return
    st.subheader("Covered and occupied shares", anchor=False)
    if not all("map" in row for row in result["covered"]):
        st.caption("This map is older than the comparison at equal size: draw it again.")
        return
    rows = compared_rows(result["covered"])
    shares = [
        f"{label}{end}" for label in COVERED_COLUMNS.values() for end in ("", " ±", ", own halves")
    ]
    draw_table(rows, tuple(shares), origin, key="coverage.covered")
    st.caption(
        "Equally many texts of both corpora: mean and standard deviation over random samples of at "
        "most half of the smaller one. Own halves: the same share when the "
        "corpus is compared with its other half, the value of two corpora that differ in nothing. "
        "Covered: texts whose neighbourhood (to their 5th nearest in their own corpus) holds a "
        "text of the other, in the embedding space. Map: cells of a 40 × 40 grid that hold one of "
        "the corpus, of those that hold any of the two. Hull: volume in the first three principal "
        "components."
    )
    with st.expander("Whole corpora (grow with the number of texts: no comparison)"):
        whole = share_rows(result["fields"])
        draw_table(whole, ("Share of the map", "Share of the hull"), origin, key="coverage.shares")


def draw_table(
    rows: list[dict[str, Any]], shares: tuple[str, ...], origin: Origin, *, key: str
) -> None:
    """Shares with three digits; the column of reasons only if one is given."""
    columns = dict.fromkeys(shares, SHARE)
    if not any(row["Reason if undefined"] for row in rows):
        columns["Reason if undefined"] = None  # type: ignore[assignment]
    draw_rows(rows, origin, key=key, column_config=columns)
