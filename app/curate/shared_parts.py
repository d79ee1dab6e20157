"""What generated texts share and their sources lack, on the run page."""

from typing import Any

import streamlit as st

from app.curate import actions
from app.kit.figure import draw_rows
from app.kit.frame.links import page_link
from app.text.plain import plain
from curation.run.shared_parts import WHERE, shared_sentence


def draw_shared_parts(report: dict[str, Any] | None, run_id: int, *, unchecked: bool) -> None:
    """The shared parts of a run with their counts and examples, or that it was not checked."""
    if report is None and not unchecked:
        return
    st.subheader("Shared parts", anchor=False)
    if unchecked:
        st.info(
            "Shared parts and leakage are not checked: this run ended before the check existed, is "
            "not done, or another verdict version keeps other groups since.",
            icon=":material/content_copy:",
        )
        st.button("Check now", key="curate.check", on_click=actions.check, args=(run_id,))
    if report is None:
        return
    if sentence := shared_sentence(report):
        st.warning(plain(sentence), icon=":material/content_copy:")
        _draw_parts(report, run_id)
    elif "reason" in report:
        st.caption(plain(f"Not compared: {report['reason']}."))
    else:
        st.caption("The generated texts share nothing that their sources lack.")
    st.caption(
        "Words, marks, beginnings, ends and lines that many generated texts have and the real "
        "queries and passages of the same pairs do not; and short texts that share no word with "
        "their pair but some with each other, as refusals do. A model learns such debris as a sign "
        "of negatives. Fisher's exact test, corrected for the number of features: a false alarm in "
        "at most one of 15 runs."
    )


def _draw_parts(report: dict[str, Any], run_id: int) -> None:
    rows = [
        {
            "Part": part["text"],
            "Where": WHERE[part["where"]] or "anywhere",
            "Texts": sum(part["counts"].values()),
            "By kind": ", ".join(f"{sign} {count:,}" for sign, count in part["counts"].items()),
            "In sources": part["sources"],
            "Example": part["examples"][0]["text"],
        }
        for part in report["parts"]
    ]
    draw_rows(
        rows,
        None,
        key="curate.shared",
        column_config={
            "Part": st.column_config.TextColumn(width=260),
            "Texts": st.column_config.NumberColumn(width=70, help="Generated texts that have it."),
            "By kind": st.column_config.TextColumn(width=150),
            "In sources": st.column_config.NumberColumn(
                width=90, help="Queries and passages of the pairs that have it."
            ),
        },
    )
    groups = dict.fromkeys(
        example["group_id"] for part in report["parts"] for example in part["examples"][:1]
    )
    with st.expander("Groups with a shared part"), st.container(horizontal=True):
        for group_id in groups:
            page_link("groups", f"group {group_id}", parameters={"run": run_id, "group": group_id})
