"""Near-duplicates and contamination as tables: counts and pairs of texts."""

from collections.abc import Sequence
from typing import Any

import streamlit as st

from analysis.found.texts import Cluster, ContaminationFound, DuplicatesFound, OverlapPair
from analysis.text.folding import words
from analysis.text.sharing import cluster_rows, overlap_rows, repeated_rows, what_is_found
from app.kit.figure import Origin, draw_rows
from app.kit.page import draw_labels
from app.text.numbers import counted
from app.text.plain import plain

LINK = st.column_config.LinkColumn(
    display_text=r"group=(\d+)", width="small", help="Open the group"
)
SHARE = st.column_config.NumberColumn(format="%.2f")


def draw_duplicates(result: DuplicatesFound, origin: Origin) -> None:
    """Counts per field, then the clusters, largest first."""
    draw_labels(offline=any(corpus.offline for corpus in result.corpora))
    counts = repeated_rows(result.fields)
    repeated = {field: each.repeated for field, each in result.fields.items() if each.repeated}
    if repeated:
        parts = ", ".join(f"{field} {count:,}" for field, count in repeated.items())
        total = counted(sum(repeated.values()), "text")
        st.markdown(plain(f"Redundant, as near-duplicates of another: {total} ({parts})."))
    draw_rows(counts, origin, key="near_duplicates.counts")
    rows = _linked(cluster_rows(result.clusters))
    if not rows:
        st.caption("No near-duplicates found.")
    else:
        draw_rows(rows, origin, key="near_duplicates.clusters", column_config={"Group": LINK})
        st.caption(
            f"{counted(len(result.clusters), 'cluster')}, largest first. Near-duplicates have "
            "the same letters and digits, or share 70 % of their 5-character shingles (Jaccard)."
        )


def clusters_without(result: DuplicatesFound, hidden: set[int]) -> DuplicatesFound:
    """The result without the texts of these groups in its clusters; its counts stay."""
    clusters = tuple(
        Cluster(
            field=each.field,
            texts=tuple(row for row in each.texts if row.group_id not in hidden),
        )
        for each in result.clusters
    )
    return result.model_copy(update={"clusters": clusters})


def pairs_without(result: ContaminationFound, hidden: set[int]) -> ContaminationFound:
    """The result without the pairs of these groups; its counts stay."""
    pairs = tuple(pair for pair in result.pairs if pair.group_id not in hidden)
    return result.model_copy(update={"pairs": pairs})


def draw_contamination(result: ContaminationFound, origin: Origin) -> None:
    """The number of overlapping texts and groups, and the pairs."""
    draw_labels(offline=any(corpus.offline for corpus in result.corpora))
    sets = ", ".join(corpus.corpus for corpus in result.against)
    if not result.overlapping:
        st.success(plain(f"No text overlaps with {sets}."), icon=":material/check_circle:")
    else:
        kinds = ", ".join(f"{count:,} {how}" for how, count in result.how.items())
        st.warning(
            plain(
                f"{counted(result.texts, 'text')} in {counted(len(result.groups), 'group')} "
                f"overlap with {sets}: {kinds}."
            ),
            icon=":material/warning:",
        )
    rows = _linked(overlap_rows(result.pairs))
    if rows:
        draw_rows(
            rows,
            origin,
            key="contamination.pairs",
            column_config={"Group": LINK, "Share": SHARE},
        )
        if len(rows) < result.overlapping:
            st.caption(f"First {len(rows):,} of {result.overlapping:,} pairs.")
        st.caption(
            "exact: identical texts; normalised: same letters and digits, look-alike letters "
            "included; near: 70 % of shingles shared; edited: at most every fifth word or a few "
            "letters changed; ngram: half of the 8-word n-grams of the shorter text shared; "
            "paraphrase: the same in other words, by embedding."
        )
        draw_evidence(result.pairs)
    st.caption(plain(what_is_found(result.paraphrases)))


def draw_evidence(pairs: Sequence[OverlapPair]) -> None:
    """One pair side by side; words that only one of the two texts has are marked."""
    number = st.selectbox(
        "Evidence",
        range(len(pairs)),
        format_func=lambda place: f"{place + 1}: {pairs[place].how}, {_start(pairs[place])}",
        key="contamination.evidence",
    )
    pair = pairs[number]
    there = pair.against
    left, right = st.columns(2)
    for column, title, mine, other in (
        (left, pair.corpus, pair, there),
        (right, there.corpus, there, pair),
    ):
        with column.container(border=True):
            st.caption(plain(f"{title} · {mine.field}"))
            st.markdown(marked(mine.text, other.text))
    st.caption(f"{pair.how}, {pair.share:.2f}. Marked words stand in one of the texts only.")


def marked(text: str, other: str) -> str:
    """The text as Markdown, verbatim; words that the other does not have are highlighted."""
    known = set(words(other))

    def shown(part: str) -> str:
        escaped = r"\`".join(map(plain, part.split("`")))
        return escaped if set(words(part)) <= known else f":orange-background[{escaped}]"

    return "  \n".join(" ".join(map(shown, line.split())) for line in text.splitlines())


def _start(pair: OverlapPair) -> str:
    text = pair.text
    return text if len(text) <= 70 else f"{text[:69]}…"


def _linked(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The rows, with a link to each group."""
    return [{**row, "Group": _link(row["Group"])} for row in rows]


def _link(group_id: int | None) -> str | None:
    return None if group_id is None else f"groups?group={group_id}"
