"""Agreement over time within a study. Pure.

Items stand in the order in which people finished them (the time of the last person's judgment on
them) and are cut into windows of equally many items; each window has its own mean kappa of people
with people, of people with each model, and raw agreement of the people. A model's judgment counts
in the window of its item, whenever it was made: models usually judge all at once.

A window without a defined kappa has None and the reason. Fewer items judged by a person than
windows give as many windows as items.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from analysis.agreement.agreement import agreement_report
from analysis.agreement.answers import PERSON
from analysis.agreement.judgment_filter import decisions_of
from db.study.judgments import JudgmentRow

WINDOWS = 10


def agreement_over_time(
    rows: Sequence[JudgmentRow], windows: int = WINDOWS
) -> list[dict[str, Any]]:
    """A row per window, first to last: `from`, `to`, `items`, `judgments`, `agreement`,
    `human_human` and `human_model` as in `agreement_report`."""
    persons = [row for row in rows if row.kind == PERSON]
    real = [row for row in persons if not row.simulated] or persons
    finished: dict[int, datetime] = {}
    for row in real:
        finished[row.item_id] = max(row.decided_at, finished.get(row.item_id, row.decided_at))
    items = sorted(finished, key=lambda item: (finished[item], item))
    names = {row.judge for row in real}
    by_item: dict[int, list[JudgmentRow]] = defaultdict(list)
    for row in rows:
        if row.kind != PERSON or row.judge in names:
            by_item[row.item_id].append(row)
    found = []
    count = min(windows, len(items))
    for window in range(count):
        mine = items[len(items) * window // count : len(items) * (window + 1) // count]
        inside = [row for item in mine for row in by_item[item]]
        report = agreement_report(decisions_of(inside), resamples=0)
        found.append(
            {
                "window": window + 1,
                "from": finished[mine[0]].isoformat(),
                "to": finished[mine[-1]].isoformat(),
                "items": len(mine),
                "judgments": len(inside),
                "agreement": report["people"]["agreement"]["value"],
                "human_human": _kappa_and_pairs(report["human_human"]),
                "human_model": {
                    name: _kappa_and_pairs(mean) for name, mean in report["human_model"].items()
                },
            }
        )
    return found


def _kappa_and_pairs(mean: dict[str, Any]) -> dict[str, Any]:
    found = {"kappa": mean["kappa"], "pairs": mean["pairs"]}
    return found if mean["kappa"] is not None else {**found, "reason": mean["reason"]}
