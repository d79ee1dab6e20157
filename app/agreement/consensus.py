"""The consensus of people and the errors of each judge, by Dawid and Skene."""

from collections.abc import Collection, Mapping
from typing import Any

import streamlit as st

from app.kit.figure import Origin, as_csv, draw_rows
from app.text.plain import plain
from curation.judging.consensus import SURE, outlier_sentences

SHARE = st.column_config.NumberColumn(format="percent")


def draw_consensus(report: Mapping[str, Any], hidden: Collection[int], origin: Origin) -> None:
    """Outliers in words, a row per judge, and the consensus labels least certain first; no labels
    of `hidden` items."""
    if not report["items"]:
        return
    st.subheader("Consensus and judges' errors", anchor=False)
    st.caption(
        "Dawid and Skene's model weighs each person by their errors on items that others judged. "
        f"{report['sure']:,} of {len(report['items']):,} items have a label with a probability of "
        f"{SURE} or more."
    )
    for sentence in outlier_sentences(dict(report)):
        st.warning(plain(sentence), icon=":material/person_alert:")
    rows = judge_rows(report)
    columns: dict[str, Any] = dict.fromkeys(("Right", "Others on the same items"), SHARE)
    columns["p"] = st.column_config.NumberColumn(
        format="%.4f", help="Paired t over items against the others, adjusted by Holm's method."
    )
    if not any(row["Reason if undefined"] for row in rows):
        columns["Reason if undefined"] = None
    draw_rows(rows, origin, key="agreement.consensus_judges", column_config=columns)
    with st.expander("Consensus labels, least certain first"):
        items = [row for row in item_rows(report) if row["Item"] not in hidden]
        draw_rows(
            items[:200],
            origin,
            key="agreement.consensus_items",
            whole=lambda: as_csv(items),
            column_config={"Probability": SHARE},
        )


def judge_rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row per person, then per model, which is compared with the people's consensus."""
    rows = [
        {
            "Judge": row["judge"],
            "Items": row["items"],
            "Right": row["accuracy"],
            "Others on the same items": row["others"],
            "p": row["p"],
            "Outlier": "yes" if row["outlier"] else "",
            "Reason if undefined": row.get("reason", ""),
        }
        for row in report["judges"]
    ]
    return rows + [
        {
            "Judge": row["judge"],
            "Items": row["items"],
            "Right": row["accuracy"],
            "Others on the same items": None,
            "p": None,
            "Outlier": "",
            "Reason if undefined": "",
        }
        for row in report["models"]
    ]


def item_rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A row per item, the least certain first."""
    return [
        {
            "Item": row["item"],
            "Scenario": row["scenario"],
            "Consensus": row["label"],
            "Probability": row["probability"],
            "Votes": ", ".join(f"{label} {n}" for label, n in sorted(row["votes"].items())),
        }
        for row in sorted(report["items"], key=lambda row: (row["probability"], row["item"]))
    ]
