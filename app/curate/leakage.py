"""The leakage check on the run page: can negatives be separated from positives by style alone?"""

from typing import Any

import streamlit as st

from app.curate import actions
from app.kit.figure import draw_rows
from app.kit.frame.links import page_link
from app.text.plain import plain
from app.text.remedies import in_pages
from curation.run.leakage import leakage_rows, leaking_sentence


def draw_leakage(report: dict[str, Any] | None, run_id: int, outdated: str) -> None:
    """The figures of a run's check and, above the limit, what they mean; nothing before it.

    outdated: why the report is, if it is.
    """
    if report is None:
        return
    st.subheader("Leakage", anchor=False)
    if outdated:
        st.info(plain(f"Outdated: {in_pages(outdated)}."), icon=":material/history:")
        st.button("Check again", key="curate.check_again", on_click=actions.check, args=(run_id,))
    if sentence := leaking_sentence(report):
        st.warning(plain(sentence), icon=":material/visibility:")
    rows = leakage_rows(report)
    number = st.column_config.NumberColumn(format="%.3f")
    typical = st.column_config.TextColumn(width=220)
    draw_rows(
        rows,
        None,
        key="curate.leakage",
        column_config={
            **dict.fromkeys(("AUC", "95 % from", "to"), number),
            "AUC of length alone": st.column_config.NumberColumn(
                "Length alone", format="%.3f", help="AUC of a text's length alone."
            ),
            **dict.fromkeys(("Typical of negatives", "Typical of positives"), typical),
        },
    )
    st.caption(
        "Over the kept groups. A classifier that sees one text alone, cross-validated with folds "
        "split by pair. 0.5 is chance; intervals include the variation of training."
    )
    _draw_features(report, run_id)


def _draw_features(report: dict[str, Any], run_id: int) -> None:
    """Link from each typical text feature to the groups that contain it."""
    found = [each.get("features", {}) for each in report["comparisons"].values()]
    features = dict.fromkeys(
        text.strip() for each in found for texts in each.values() for text in texts if text.strip()
    )
    if not features:
        return
    with st.expander("Groups with a typical feature"), st.container(horizontal=True):
        for text in features:
            page_link(
                "groups",
                plain(f"“{text}”"),
                parameters={"run": run_id, "search": text, "in": "passages"},
            )
