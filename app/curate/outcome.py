"""How a run ended: in a sentence, and why it dropped groups, with examples and what to try next."""

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app.access.identity import SessionUser
from app.kit.frame.links import page_link
from app.operations import groups
from app.text.numbers import counted
from app.text.plain import plain
from app.text.remedies import in_pages
from app.text.texts import draw_text
from curation.recipe.drop_reasons import find_reason, reason_text, what_to_change
from db.review.queue import QueueFilter
from db.run.runs import Funnel


def run_sentence(
    found: Funnel, report: Mapping[str, Any] | None, spent_usd: float, outdated: str = ""
) -> str:
    """The run in words; "" of one without a finished group.

    outdated: why the leakage report is, whose number then is not in the sentence.
    """
    if not found.finished:
        return ""
    rest = found.pairs - found.finished
    parts = [
        f"{found.kept:,} of {counted(found.finished, 'finished group')} kept "
        f"({found.kept / found.finished:.0%}){f', {rest:,} not finished' if rest else ''}."
    ]
    if found.dropped:
        reason, count = next(iter(found.dropped.items()))  # the most frequent one is first
        parts.append(f"Most frequent reason to drop one: {reason_text(reason)} ({count:,}).")
    if change := what_to_change(found.kept, found.dropped):
        parts.append(f"{in_pages(change[0].upper() + change[1:])}.")
    aucs = [
        float(one["auc"])
        for one in (report or {}).get("comparisons", {}).values()
        if one["auc"] is not None
    ]
    if report is not None and outdated:
        parts.append(f"The leakage check is outdated: {in_pages(outdated)}.")
    elif report is not None and aucs:
        leak = "gives negatives away" if report["leaks"] else "does not give negatives away"
        parts.append(f"Style alone {leak} (AUC at most {max(aucs):.2f}, 0.5 is chance).")
    if spent_usd and found.kept:
        parts.append(f"It cost ${spent_usd:,.2f}, ${spent_usd / found.kept:,.4f} per kept group.")
    return " ".join(parts)


SHOWN = 3
EXAMPLES = 2


def draw_reasons(user: SessionUser, found: Funnel) -> None:
    """The most frequent reasons of a run that ended; nothing where no group was dropped."""
    if not found.dropped:
        return
    st.header("Why groups were dropped", anchor=False)
    for reason, count in list(found.dropped.items())[:SHOWN]:
        known = find_reason(reason)
        with st.container(border=True, key=f"curate-reason-{reason}"):
            meaning = reason_text(reason)
            share = f", {count / found.finished:.1%} of the finished groups" if count > 1 else ""
            said = f"**{plain(meaning[0].upper() + meaning[1:])}**: {count:,}{share}"
            if count <= EXAMPLES:
                st.markdown(said)
            else:
                with st.container(horizontal=True, vertical_alignment="center"):
                    st.markdown(said)
                    _draw_link(found.run_id, f"All {count:,}", reason=reason)
            wanted = QueueFilter(run_id=found.run_id, verdict="dropped", reason=reason)
            for group in groups.list_some(user, wanted, limit=EXAMPLES).data:
                with st.container(horizontal=True, vertical_alignment="center"):
                    with st.container():
                        draw_text(group.query)
                    _draw_link(found.run_id, "Open", group=group.id)
            if known:
                st.caption(plain(in_pages(f"Try next: {known.remedy}.")))
    for reason, count in list(found.dropped.items())[SHOWN:]:
        _draw_link(found.run_id, f"{count:,} · {reason_text(reason)}", reason=reason)


def _draw_link(run_id: int, label: str, **which: object) -> None:
    page_link("groups", label, width="content", parameters={"run": run_id, **which})
