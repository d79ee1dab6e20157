"""How clearly model judges found the passage of each item of a run: votes, margins, judges."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Any, Final

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.run.new_items import is_pick
from db.tables import Group, Item, Judge, Judgment

VOTES: Final = "votes"
JUDGES: Final = "judges"
MARGIN: Final = "margin of "
SCORES: Final = ("scores", "log_probabilities", "relevant")  # of a judgment's detail


def run_strictness(session: Session, run_id: int) -> dict[str, dict[int, float]]:
    """By name: a value of each item, larger where the passage was found more clearly.

    `votes`: the share of the validator's votes for the item's passage. `judges`: how many model
    judges chose it, of those who answered every item of the kept groups (two or more). `margin of
    JUDGE`: the passage's score less that of the best other. What no judgment has is left out.
    """
    rows = session.execute(
        select(
            Judgment.item_id,
            Judge.name,
            Item.expected,
            Judgment.choice,
            Judgment.order_shown,
            Judgment.detail,
            Judgment.run_id,
            Group.verdict,
        )
        .join(Judge, Judge.id == Judgment.judge_id)
        .join(Item, Item.id == Judgment.item_id)
        .join(Group, Group.id == Item.group_id)
        .where(
            Group.run_id == run_id,
            Item.revision == 1,
            is_pick(),
            Judgment.is_current,
            Judge.kind == "model",
        )
        .order_by(Judgment.id)
        .execution_options(yield_per=5000)
    )
    found: dict[str, dict[int, float]] = defaultdict(dict)
    right: dict[str, dict[int, bool]] = defaultdict(dict)
    kept: set[int] = set()
    for item_id, judge, expected, choice, order, detail, of_run, verdict in rows:
        right[judge][item_id] = choice == expected
        if verdict == "kept":
            kept.add(item_id)
        votes = (detail or {}).get("votes")
        if votes and of_run == run_id:
            share = sum(vote["choice"] == expected for vote in votes) / len(votes)
            found[VOTES][item_id] = share
        margin = _margin(detail or {}, list(order), expected)
        if margin is not None:
            found[MARGIN + judge][item_id] = margin
    whole = [judge for judge, answers in right.items() if kept <= answers.keys()]
    if len(whole) > 1:
        for item_id in set.intersection(*(set(right[judge]) for judge in whole)):
            found[JUDGES][item_id] = float(sum(right[judge][item_id] for judge in whole))
    return dict(found)


def confidence_of(
    detail: Mapping[str, Any], order: list[str], expected: str | None
) -> float | None:
    """How sure a judgment is of the passage that was meant: its share of votes, else its margin.

    None where the judge gave one answer without scores.
    """
    if votes := detail.get("votes"):
        return float(sum(vote["choice"] == expected for vote in votes) / len(votes))
    return _margin(detail, order, expected)


def _margin(detail: Mapping[str, Any], order: list[str], expected: str | None) -> float | None:
    scores = next((detail[name] for name in SCORES if detail.get(name)), None)
    if scores is None or expected not in order or len(scores) < len(order):
        return None
    place = order.index(expected)
    others = [score for number, score in enumerate(scores) if number != place]
    return float(scores[place]) - max(map(float, others)) if others else None
