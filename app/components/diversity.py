"""A stored diversity analysis as bars and as a table."""

from typing import Any

import streamlit as st

from analysis.figures import METRIC_NAMES, diversity_bars, sign
from app.components.page import draw_labels

FIELDS = ("instruction", "query", "passage", "text")


def draw_diversity(result: dict[str, Any], *, key: str) -> None:
    """Bars per metric, then all numbers."""
    corpora = result["corpora"]
    draw_labels(offline=any(corpus["offline"] for corpus in corpora))
    for column, metric in zip(st.columns(len(METRIC_NAMES)), METRIC_NAMES, strict=True):
        figure = diversity_bars(corpora, metric)
        column.plotly_chart(figure, key=f"{key}.{metric}", config={"displayModeBar": False})
    rows = number_rows(corpora)
    reasons = sorted({words for row in rows for words in row.pop("reasons")})
    st.dataframe(
        rows,
        hide_index=True,
        column_config={
            "Mean words": st.column_config.NumberColumn(format="%.1f"),
            "APS": st.column_config.NumberColumn(format="%.4f"),
            "INGF 2": st.column_config.NumberColumn(format="%.2f"),
            "INGF 3": st.column_config.NumberColumn(format="%.2f"),
        },
    )
    for words in reasons:
        st.caption(words)


def number_rows(corpora: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row per corpus, field and role; undefined stays empty, its reason goes along."""
    rows = []
    for corpus in corpora:
        for field, numbers in corpus["fields"].items():
            roles = {"all": numbers, **numbers["by_role"]}
            for role, found in roles.items():
                rows.append(
                    {
                        "Data set": corpus["corpus"],
                        "Text": f"{field}, all" if role == "all" else sign(field, role),
                        "Texts": found["texts"],
                        "Different": found["different"],
                        "Mean words": found["mean_words"],
                        "APS": found["aps"],
                        "INGF 2": found["ingf_2"],
                        "INGF 3": found["ingf_3"],
                        "reasons": [
                            f"{metric} of {field} is undefined: {words}"
                            for metric, words in found.get("reason", {}).items()
                        ],
                    }
                )
    return rows
