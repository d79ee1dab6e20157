"""The tables of a map: the share each corpus occupies, and how much of it another covers."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.kit.figure import Origin, draw_rows

SHARE = st.column_config.NumberColumn(format="%.3f")


COLUMNS = {
    "share": "Covered",
    "map": "Share of the map",
    "hull": "Share of the hull",
}


def draw_numbers(result: dict[str, Any], origin: Origin) -> None:
    """Shares of equally many texts of two corpora; nothing for a single corpus."""
    if len(result["corpora"]) < 2 or not result.get("fields"):
        return
    st.subheader("Covered and occupied shares", anchor=False)
    if not all("map" in row for row in result["covered"]):
        st.caption("This map is older than the comparison at equal size: draw it again.")
        return
    rows = compared_rows(result["covered"])
    shares = [f"{label}{end}" for label in COLUMNS.values() for end in ("", " ±", ", own halves")]
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
        whole = [
            {
                "Texts": field,
                "Corpus": corpus,
                "Distinct": numbers["different"],
                "Share of the map": numbers["occupied_share"],
                "Share of the hull": numbers["hull_share"],
                "Reason if undefined": numbers.get("reason", ""),
            }
            for field, corpora in result["fields"].items()
            for corpus, numbers in corpora.items()
        ]
        draw_table(whole, ("Share of the map", "Share of the hull"), origin, key="coverage.shares")


def compared_rows(covered: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row per field and ordered pair of corpora."""
    rows = []
    for row in covered:
        cells: dict[str, Any] = {
            "Texts": row["field"],
            "Corpus": row["corpus"],
            "Compared with": row["by"],
            "Texts of each": row["size"],
        }
        for name, label in COLUMNS.items():
            cells[label] = row[name]
            cells[f"{label} ±"] = row[f"{name}_sd"]
            cells[f"{label}, own halves"] = row[f"{name}_halves"]
        rows.append({**cells, "Reason if undefined": row.get("reason", "")})
    return rows


def draw_table(
    rows: list[dict[str, Any]], shares: tuple[str, ...], origin: Origin, *, key: str
) -> None:
    """Shares with three digits; the column of reasons only if one is given."""
    columns = dict.fromkeys(shares, SHARE)
    if not any(row["Reason if undefined"] for row in rows):
        columns["Reason if undefined"] = None  # type: ignore[assignment]
    draw_rows(rows, origin, key=key, column_config=columns)
