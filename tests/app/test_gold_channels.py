"""Hidden gold is one kind of item with the rest: no patience and no clock tells it apart."""

from collections import defaultdict
from collections.abc import Callable, Mapping

import numpy as np
import pytest
from patient_annotator import (
    CHANGES,
    Person,
    Seen,
    Value,
    World,
    auc_of,
    come_back_late,
    make_world,
    return_and_work,
    skip_everything,
    undo_everything,
)
from sqlalchemy import func, select, update

from db.assignment.answering import MAX_CHANGES
from db.store.store import Store
from db.study.rules import SCORED_TOGETHER
from db.tables import Judgment, StudyItem, StudyJudge

ROUNDS, BREAKS = 2000, 7
Attack = Callable[[World, int], Seen]


class Channels:
    """What was seen of items by channel, and which of them are gold."""

    def __init__(self) -> None:
        self.values: dict[str, list[Value]] = defaultdict(list)
        self.gold: dict[str, list[bool]] = defaultdict(list)

    def add(self, seen: Seen, gold: Mapping[str, bool]) -> None:
        """Add those of a world; seconds and bytes as far from its median."""
        for channel, of_item in seen.items():
            middle: float | None = None
            if channel.endswith(("clock", "bytes")):
                middle = float(np.median([float(value) for value in of_item.values()]))
            for key, value in of_item.items():
                self.values[channel].append(value if middle is None else float(value) - middle)
                self.gold[channel].append(gold[key])

    def aucs(self) -> dict[str, float]:
        """How well each channel tells gold apart."""
        return {
            channel: round(auc_of(values, self.gold[channel]), 3)
            for channel, values in self.values.items()
        }


@pytest.mark.long
@pytest.mark.slow
@pytest.mark.timeout(1800)  # three minutes of CPU, on a machine that others share
@pytest.mark.parametrize("attacks", [(skip_everything, come_back_late), (return_and_work,)])
def test_no_channel_tells_gold_in_two_thousand_rounds(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch, attacks: tuple[Attack, ...]
) -> None:
    found, rounds = Channels(), 0
    while rounds < ROUNDS:
        world = make_world(sqlite_store, monkeypatch, items=20)
        for attack in attacks:
            found.add(attack(world, BREAKS), world.gold_tokens())
        rounds = min(map(len, found.values.values()))
    told = {name: auc for name, auc in found.aucs().items() if abs(auc - 0.5) > 0.05}
    assert told == {}, found.aucs()


@pytest.mark.long
def test_gold_with_places_of_its_own_would_be_found(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it once was: everyone may answer it, so its place is never taken by another."""
    found = Channels()
    for _ in range(4):
        world = make_world(sqlite_store, monkeypatch, items=20)
        with sqlite_store.write() as session:
            session.execute(update(StudyItem).where(StudyItem.part == "gold").values(places=None))
            session.commit()
        found.add(come_back_late(world, BREAKS), world.gold_tokens())
    assert found.aucs()["late: notice"] > 0.75


@pytest.mark.long
def test_the_workbench_names_no_review_of_a_hidden_group(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(sqlite_store, monkeypatch, items=20)
    found = Channels()
    found.add(undo_everything(world), world.gold_groups())
    assert set(found.aucs().values()) == {0.5}
    assert {value for seen in found.values.values() for value in seen} == {
        "group # is not in your queue: reload the page and choose a group from the list"
    }


def test_every_request_takes_the_same_statements_for_gold(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(sqlite_store, monkeypatch, items=12)
    ann = Person(world, "ann")
    seen: dict[str, dict[bool, set[tuple[str, ...]]]] = defaultdict(lambda: defaultdict(set))
    ann.finish(most=1)  # the first answer fills caches
    for _ in range(16):  # each answer brings the next item
        token = ann.tokens()[0]
        is_gold = world.gold_tokens()[token]
        for kind, fields in REQUESTS.items():
            events = [ann.event(token, **fields) for _ in range(3 if "change" in kind else 1)]
            asked = ann.ask(*events)
            refused = {ann.data["acknowledged"][one["event"]] for one in events} - {""}
            assert bool(refused) == (kind == "second tab")
            seen[kind][is_gold].add(tuple(asked.statements))
            assert not [one for one in asked.statements if "gold" in one]
        assert len(ann.tokens()) == 5
    assert SCORED_TOGETHER > 17  # scoring takes more, whichever item it comes after
    for kind, by_part in seen.items():
        assert by_part[True] == by_part[False], kind
        assert len(by_part[True]) == 1, kind


REQUESTS = {
    "message": {"kind": "message", "body": "why?"},
    "answer": {},
    "second tab": {},
    "changes": {"change": True},
}


def standing_of(world: World) -> tuple[str, str]:
    """State and reason of the one member of the study."""
    with world.store.read() as session:
        member = session.scalars(
            select(StudyJudge).where(StudyJudge.study_id == world.study_id)
        ).one()
        return member.state, member.reason


def test_gold_is_scored_when_a_judge_has_finished_however_few_their_answers(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of fewer than SCORED_TOGETHER answers none was ever scored."""
    world = make_world(store, monkeypatch, items=4, gold_action="pause")
    ann = Person(world, "ann")
    ann.ask()
    for _ in range(8):
        assert standing_of(world) == ("active", "")
        ann.ask(ann.event(ann.tokens()[0], position=None))
    assert ann.tokens() == [] and ann.data["done"] == 8 < SCORED_TOGETHER
    assert standing_of(world) == ("paused", "0 of 4 gold items correct")


def test_no_single_answer_is_scored_where_items_come_back_one_by_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge who waits for one item at a time would read a pause as "that was gold"."""
    world = make_world(store, monkeypatch, items=4, gold_action="pause")
    ann = Person(world, "ann")
    with store.write() as session:  # all places are taken by others
        every = update(StudyItem).where(StudyItem.study_id == world.study_id)
        session.execute(every.values(taken=StudyItem.places))
        session.commit()
        items = session.scalars(
            select(StudyItem.item_id).where(StudyItem.study_id == world.study_id)
        ).all()
    scored = []
    for item_id in items:
        with store.write() as session:
            session.get_one(StudyItem, (world.study_id, item_id)).taken = 0
            session.commit()
        ann.ask()
        ann.ask(ann.event(ann.tokens()[0], position=None))
        with store.read() as session:
            member = session.scalars(
                select(StudyJudge).where(StudyJudge.study_id == world.study_id)
            ).one()
            scored.append(member.scored_after)
        if member.state == "paused":
            break
    assert set(scored) <= {0, 3, 6}


def test_an_answer_is_changed_a_limited_number_of_times(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = make_world(store, monkeypatch, items=4)
    ann = Person(world, "ann")
    ann.ask()
    token = ann.tokens()[0]
    ann.answer(token)
    events = [ann.event(token, change=True) for _ in range(MAX_CHANGES + CHANGES)]
    ann.ask(*events)
    answers = [ann.data["acknowledged"][one["event"]] for one in events]
    assert answers[:MAX_CHANGES] == [""] * MAX_CHANGES
    assert set(answers[MAX_CHANGES:]) == {
        f"an answer can be changed {MAX_CHANGES} times: the last one stands."
    }
    with store.read() as session:
        assert session.scalar(select(func.count()).select_from(Judgment)) == 1 + MAX_CHANGES
    ann.ask(*events[:3])  # an outbox that comes again is no change
    assert set(ann.data["acknowledged"].values()) == {""}
