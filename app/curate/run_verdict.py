"""The first parts about a run that ended: what it kept, lost, leaks and cost. Pure."""

from collections.abc import Mapping
from typing import Any

from app.text.numbers import counted
from app.text.remedies import in_pages
from curation.recipe.drop_reasons import reason_text
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
