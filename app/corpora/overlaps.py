"""Near-duplicates and contamination as tables: counts and pairs of texts."""

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app.kit.figure import Origin, draw_rows
from app.kit.page import draw_labels
from app.text.numbers import counted
from app.text.plain import plain

LINK = st.column_config.LinkColumn(
    display_text=r"group=(\d+)", width="small", help="Open the group"
)
SHARE = st.column_config.NumberColumn(format="%.2f")


def draw_duplicates(result: Mapping[str, Any], origin: Origin) -> None:
    """Counts per field, then the clusters, largest first."""
    draw_labels(offline=any(corpus["offline"] for corpus in result["corpora"]))
    counts = [
        {
            "Texts": field,
            "Clusters": numbers["clusters"],
            "Texts in clusters": numbers["texts"],
            "Redundant texts": numbers["repeated"],
            "Clusters across corpora": numbers["between"],
        }
        for field, numbers in result["fields"].items()
    ]
    draw_rows(counts, origin, key="near_duplicates.counts")
    rows = cluster_rows(result["clusters"])
    if not rows:
        st.caption("No near-duplicates found.")
    else:
        draw_rows(rows, origin, key="near_duplicates.clusters", column_config={"Group": LINK})
        st.caption(
            f"{counted(len(result['clusters']), 'cluster')}, largest first. Near-duplicates have "
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
    """The number of overlapping texts and groups, and the pairs."""
    draw_labels(offline=any(corpus["offline"] for corpus in result["corpora"]))
    sets = ", ".join(corpus["corpus"] for corpus in result["against"])
    if not result["overlapping"]:
        st.success(plain(f"No text overlaps with {sets}."), icon=":material/check_circle:")
    else:
        kinds = ", ".join(f"{count:,} {how}" for how, count in result["how"].items())
        st.warning(
            plain(
                f"{counted(result['texts'], 'text')} in {counted(len(result['groups']), 'group')} "
                f"overlap with {sets}: {kinds}."
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
            st.caption(f"First {len(rows):,} of {result['overlapping']:,} pairs.")
        st.caption(
            "exact: identical texts; normalised: same letters and digits; near: 70 % of shingles "
            "shared; ngram: half of the 8-word n-grams of the shorter text shared."
        )


def pair_rows(pairs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A row per overlapping pair of texts."""
    return [
        {
            "Match": pair["how"],
            "Share": pair["share"],
            "Corpus": pair["corpus"],
            "Our text": pair["text"],
            "Evaluation set": pair["against"]["corpus"],
            "Evaluation text": pair["against"]["text"],
            "Group": _link(pair["groups"][0] if pair["groups"] else None),
            "Groups": " ".join(map(str, pair["groups"])),
        }
        for pair in pairs
    ]


def _link(group_id: int | None) -> str | None:
    return None if group_id is None else f"groups?group={group_id}"
