"""Agreement over time within a study. Pure.

Items stand in the order in which people finished them (the time of the last person's judgment on
them) and are cut into windows of equally many items; each window has its own headline figures and
raw agreement of the people. A model's judgment counts in the window of its item, whenever it was
made: models usually judge all at once.

A window without a defined figure has None and the reason. Items are cut into fewer windows where
these would hold fewer than `MIN_SHARED` items each, of which two judges have no value.
"""

from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np

from analysis.agreement.agreement import headline_figures, people
from analysis.agreement.answers import Answers
from analysis.agreement.flagged import with_figures_without
from analysis.agreement.headline import MIN_SHARED
from analysis.found.agreement import Figure
from db.rows import SparseRow

WINDOWS = 10


class WindowRow(SparseRow):
    """A window of items, by when people finished the first and the last of them.

    `human_human` and `human_model` (by model) as in `agreement_report`, without intervals.
    """

    window: int
    since: str
    until: str
    items: int
    judgments: int
    agreement: float | None
    human_human: Figure
    human_model: dict[str, Figure]


def agreement_over_time(
    answers: Answers, flagged: Mapping[str, str] | None = None, *, windows: int = WINDOWS
) -> list[WindowRow]:
    """A row per window, first to last.

    flagged: why, by the names of people whose answers are in doubt.
    """
    named = people(answers.judges)
    is_person = np.array([judge in named for judge in answers.judges], dtype=bool)
    finished = np.full(len(answers.items), -np.inf)
    theirs = is_person[answers.judge] if len(answers.judge) else np.zeros(0, dtype=bool)
    np.maximum.at(finished, answers.item[theirs], answers.decided[theirs])
    items = np.flatnonzero(np.isfinite(finished))
    items = items[np.argsort(finished[items], kind="stable")]
    humans = np.flatnonzero([judge in named for judge in answers.judges]).tolist()
    found: list[WindowRow] = []
    number = min(windows, max(1, len(items) // MIN_SHARED))
    for mine in np.array_split(items, number) if len(items) else ():
        inside = answers.of_items(mine)
        there = {answers.judges[place].name for place in np.intersect1d(humans, inside.judge)}
        entered = {name: why for name, why in (flagged or {}).items() if name in there}
        figures = headline_figures(inside, humans)
        if entered:
            left = [place for place in humans if answers.judges[place].name not in entered]
            figures = with_figures_without(figures, headline_figures(inside, left), entered)
        found.append(
            WindowRow(
                window=len(found) + 1,
                since=_iso(finished[mine[0]]),
                until=_iso(finished[mine[-1]]),
                items=len(mine),
                judgments=len(inside.item),
                agreement=figures["human_human"]["agreement"],
                human_human=figures["human_human"],
                human_model=figures["human_model"],
            )
        )
    return found


def _iso(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat()
