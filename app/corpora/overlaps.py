"""Near-duplicates and contamination as tables: what was counted, and every pair that is listed."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.kit.figure import Origin, draw_rows
from app.kit.page import draw_labels
from app.text.plain import plain

LINK = st.column_config.LinkColumn(
    display_text=r"group=(\d+)", width="small", help="Opens the group."
)
SHARE = st.column_config.NumberColumn(format="%.2f")


def draw_duplicates(result: Mapping[str, Any], origin: Origin) -> None:
    """Counts by field, then the clusters, largest first."""
    draw_labels(offline=any(corpus["offline"] for corpus in result["corpora"]))
    counted = [
        {
            "Texts": field,
            "Clusters": numbers["clusters"],
            "Texts in them": numbers["texts"],
            "Repeat another": numbers["repeated"],
            "Clusters between corpora": numbers["between"],
        }
        for field, numbers in result["fields"].items()
    ]
    draw_rows(counted, origin, key="near_duplicates.counts")
    rows = cluster_rows(result["clusters"])
    if not rows:
        st.caption("No two texts are near-duplicates.")
    else:
        draw_rows(rows, origin, key="near_duplicates.clusters", column_config={"Group": LINK})
        st.caption(
            f"{len(result['clusters']):,} clusters are listed, largest first. Near-duplicates have "
            "the same letters and digits, or share 70 % of their 5-character shingles (Jaccard)."
        )


def cluster_rows(clusters: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row per text of a cluster."""
    return [
        {
            "Cluster": number,
            "Texts": cluster["field"],
            "Corpus": row["corpus"],
            "Role": row["role"],
            "Text": row["text"],
            "Group": _link(row["group_id"]),
        }
        for number, cluster in enumerate(clusters, start=1)
        for row in cluster["texts"]
    ]


def draw_contamination(result: Mapping[str, Any], origin: Origin) -> None:
    """How many texts and groups overlap, and the offending pairs."""
    draw_labels(offline=any(corpus["offline"] for corpus in result["corpora"]))
    sets = ", ".join(corpus["corpus"] for corpus in result["against"])
    if not result["overlapping"]:
        st.success(plain(f"No text overlaps with {sets}."), icon=":material/check_circle:")
    else:
        told = ", ".join(f"{count:,} {how}" for how, count in result["how"].items())
        st.warning(
            plain(
                f"{result['texts']:,} texts in {len(result['groups']):,} groups overlap with "
                f"{sets}: {told}."
            ),
            icon=":material/warning:",
        )
    rows = pair_rows(result["pairs"])
    if rows:
        draw_rows(
            rows,
            origin,
            key="contamination.pairs",
            column_config={"Group": LINK, "Share": SHARE},
        )
        if len(rows) < result["overlapping"]:
            st.caption(f"The first {len(rows):,} of {result['overlapping']:,} pairs.")
        st.caption(
            "exact: the same text; normalised: the same letters and digits; near: 70 % of the "
            "shingles shared; ngram: half of the shorter one's 8-word runs."
        )


def pair_rows(pairs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row per offending pair of texts."""
    return [
        {
            "How": pair["how"],
            "Share": pair["share"],
            "Corpus": pair["corpus"],
            "Our text": pair["text"],
            "Evaluation set": pair["against"]["corpus"],
            "Its text": pair["against"]["text"],
            "Group": _link(pair["groups"][0] if pair["groups"] else None),
            "Groups": " ".join(map(str, pair["groups"])),
        }
        for pair in pairs
    ]


def _link(group_id: int | None) -> str | None:
    return None if group_id is None else f"groups?group={group_id}"
