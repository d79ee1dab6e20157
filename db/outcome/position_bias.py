"""Position bias of a judge: how often each position was chosen, and how often correctly.

Candidates are shuffled for every call, so that an unbiased judge chooses each position about as
often as the right passage is there, with the same accuracy everywhere.
"""

from collections import Counter, defaultdict
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.run.new_items import is_pick
from db.study.judgments import judgments_that_count
from db.tables import Item, Judge, Judgment

MAX_JUDGMENTS = 30_000


@dataclass(frozen=True)
class PlaceCount:
    """A position in the list, counted from 1.

    `expected`: how often the right passage was there; `chosen`: how often the
    judge chose the position; `right`: how often both; `groups`: of how many groups, whose items and
    votes are not independent. `accuracy` is right / expected, None if the passage was never there.
    """

    place: int
    expected: int
    chosen: int
    right: int
    groups: int

    @property
    def accuracy(self) -> float | None:
        return self.right / self.expected if self.expected else None


def position_bias(session: Session, run_id: int, *, limit: int = MAX_JUDGMENTS) -> list[PlaceCount]:
    """The counts of every position over a run's newest `limit` validations; every vote counts.

    Empty without validations.
    """
    rows = session.execute(
        select(Item.group_id, Item.expected, Judgment.choice, Judgment.order_shown, Judgment.detail)
        .join(Item, Item.id == Judgment.item_id)
        .where(Judgment.run_id == run_id, Judgment.study_id.is_(None), is_pick())
        .order_by(Judgment.id.desc())
        .limit(limit)
        .execution_options(yield_per=2000)
    )
    expected, chosen, right = Counter[int](), Counter[int](), Counter[int]()
    groups: dict[int, set[int]] = defaultdict(set)
    for group_id, right_label, choice, order_shown, detail in rows:
        votes = detail.get("votes") or [{"choice": choice, "order_shown": order_shown}]
        for vote in votes:
            order = list(vote["order_shown"])
            expected[order.index(right_label) + 1] += 1
            groups[order.index(right_label) + 1].add(group_id)
            if vote["choice"] in order:
                place = order.index(vote["choice"]) + 1
                chosen[place] += 1
                right[place] += vote["choice"] == right_label
    return [
        PlaceCount(place, expected[place], chosen[place], right[place], len(groups[place]))
        for place in range(1, max([*expected, *chosen], default=0) + 1)
    ]


def study_choices(
    session: Session, study_id: int, *, limit: int = 20_000
) -> dict[str, list[tuple[int, int]]]:
    """By judge: the position chosen (from 1) and the number of positions.

    From the newest `limit` judgments that count in the study (`db.study.judgments.judgment_frame`);
    "none" is omitted.
    """
    query = judgments_that_count(study_id, Judge.name, Judgment.choice, Judgment.order_shown)
    rows = session.execute(query.order_by(Judgment.id.desc()).limit(limit))
    found: dict[str, list[tuple[int, int]]] = {}
    for judge, choice, order_shown in rows:
        places = found.setdefault(judge, [])
        if choice in order_shown:
            places.append((order_shown.index(choice) + 1, len(order_shown)))
    return found
