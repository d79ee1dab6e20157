"""The numbers beside a map: what each corpus occupies, and how much of it another one covers."""

from typing import Any

import streamlit as st

from app.kit.figure import Origin, draw_rows

SHARE = st.column_config.NumberColumn(format="%.3f")


def draw_numbers(result: dict[str, Any], origin: Origin) -> None:
    """Two tables; a picture alone convinces nobody."""
    fields = result.get("fields", {})
    if len(result["corpora"]) < 2 or not fields:
        return
    st.subheader("The map in numbers", anchor=False)
    rows = [
        {
            "Texts": field,
            "Corpus": corpus,
            "Different": numbers["different"],
            "Share of the map": numbers["occupied_share"],
            "Share of the hull": numbers["hull_share"],
            "Undefined because": numbers.get("reason", ""),
        }
        for field, corpora in fields.items()
        for corpus, numbers in corpora.items()
    ]
    draw_table(rows, ("Share of the map", "Share of the hull"), origin, key="coverage.shares")
    covered = [
        {
            "Texts": row["field"],
            "Of corpus": row["corpus"],
            "Covered by": row["by"],
            "Texts of each": row.get("size"),
            "Share": row["share"],
            "Undefined because": row.get("reason", ""),
        }
        for row in result["covered"]
    ]
    draw_table(covered, ("Share",), origin, key="coverage.covered")
    st.caption(
        "Share of the map: cells of a 40 × 40 grid that hold a text of the corpus, of those that "
        "hold any. Hull: volume in the first three principal components. Covered: texts within "
        "the 3-nearest-neighbour ball of a text of the other corpus, in the space of the vectors; "
        "as many texts of each, drawn with the seed."
    )


def draw_table(
    rows: list[dict[str, Any]], shares: tuple[str, ...], origin: Origin, *, key: str
) -> None:
    """Shares with three digits; the column of reasons only where there is one."""
    columns = dict.fromkeys(shares, SHARE)
    if not any(row["Undefined because"] for row in rows):
        columns["Undefined because"] = None  # type: ignore[assignment]
    draw_rows(rows, origin, key=key, column_config=columns)
