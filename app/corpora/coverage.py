"""The tables of a map: the share each corpus occupies, and how much of it another covers."""

from typing import Any

import streamlit as st

from app.kit.figure import Origin, draw_rows

SHARE = st.column_config.NumberColumn(format="%.3f")


def draw_numbers(result: dict[str, Any], origin: Origin) -> None:
    """Occupied shares and coverage; nothing for a single corpus."""
    fields = result.get("fields", {})
    if len(result["corpora"]) < 2 or not fields:
        return
    st.subheader("Occupied and covered shares", anchor=False)
    rows = [
        {
            "Texts": field,
            "Corpus": corpus,
            "Distinct": numbers["different"],
            "Share of the map": numbers["occupied_share"],
            "Share of the hull": numbers["hull_share"],
            "Reason if undefined": numbers.get("reason", ""),
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
            "Reason if undefined": row.get("reason", ""),
        }
        for row in result["covered"]
    ]
    draw_table(covered, ("Share",), origin, key="coverage.covered")
    st.caption(
        "Share of the map: cells of a 40 × 40 grid with a text of the corpus, of all non-empty "
        "cells. Hull: volume in the first three principal components. Covered: texts within "
        "the 3-nearest-neighbour ball of a text of the other corpus, in the embedding space; "
        "computed on samples of equal size, fixed by the seed."
    )


def draw_table(
    rows: list[dict[str, Any]], shares: tuple[str, ...], origin: Origin, *, key: str
) -> None:
    """Shares with three digits; the column of reasons only if one is given."""
    columns = dict.fromkeys(shares, SHARE)
    if not any(row["Reason if undefined"] for row in rows):
        columns["Reason if undefined"] = None  # type: ignore[assignment]
    draw_rows(rows, origin, key=key, column_config=columns)
