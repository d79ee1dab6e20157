"""Items leased to programs: to one at a time, blind, given on when a lease ends, answered once."""

import json
import math
import secrets
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asked_study import make_asked_study, record
from sqlalchemy import select, update
from study_world import LABELS, make_world, sampled_study

from app.access.identity import Actor
from app.operations.judging import studies
from curation.judging.leases import LEASE, AnswersRecorded, ItemsLeased
from curation.judging.request import AnswersRecord, ItemsLease, StudyChange
from db.assignment.shown_items import shuffled_labels
from db.errors import BadInput, Refused
from db.people.rights import Rights
from db.store.store import Store
from db.tables import (
    Assignment,
    CountedJudgment,
    Event,
    Item,
    Judge,
    Judgment,
    Passage,
    ProgramLease,
    StudyItem,
    utc_now,
)

ITEMS = 6


def curator(name: str) -> Actor:
    return Actor(name, rights=Rights(everywhere=frozenset({"curate"})), via="token")


CORA, MINA = curator("cora"), curator("mina")


@pytest.fixture
def world(store: Store) -> Store:
    run_id = make_world(store, 8)
    with store.write() as session:
        sampled_study(session, run_id=run_id, items=ITEMS, overlap=2)
        session.commit()
    return store


def lease(worker: str = "w", *, by: Actor = CORA, model: str = "a" * 64, **given: Any) -> Any:
    wanted = {"study_id": 1, "label": "f", "model": model, "worker": worker, "count": 2} | given
    found: ItemsLeased = studies.lease_items(by, ItemsLease.read(wanted))
    return found


def answer(*answers: tuple[str, Any], by: Actor = CORA, **given: Any) -> tuple[int, ...]:
    rows = [{"lease": token, "choice": choice} for token, choice in answers]
    wanted = AnswersRecord.read({"study_id": 1, "answers": rows} | given)
    found: AnswersRecorded = studies.record_answers(by, wanted)
    return found.stored, found.repeated, found.late, found.waiting


def tokens(found: ItemsLeased) -> list[str]:
    return [one.lease for one in found.data]


def stored(world: Store) -> list[Judgment]:
    with world.read() as session:
        return list(session.scalars(select(Judgment).order_by(Judgment.id)))


def let_end(world: Store) -> None:
    with world.write() as session:
        session.execute(update(ProgramLease).values(lease_until=utc_now() - timedelta(seconds=1)))
        session.commit()


def test_an_answer_is_of_a_model_that_is_named_by_the_hash(world: Store) -> None:
    found = lease()
    assert (found.judge, found.waiting, len(found.data)) == ("python:f@aaaaaaaaaaaa", ITEMS, 2)
    assert found.seconds == LEASE.total_seconds()
    one, other = found.data
    assert answer((one.lease, 0), (other.lease, None)) == (2, 0, 0, ITEMS - 2)
    first, second = stored(world)
    with world.read() as session:
        judge = session.get_one(Judge, first.judge_id)
        assert (judge.kind, judge.provider, judge.model) == ("model", "python", "a" * 64)
        assert (judge.offline, judge.simulated) == (False, False)
        item = session.get_one(Item, first.item_id)
        texts = {entry["label"]: entry["passage_id"] for entry in item.candidates}
        shown = session.get_one(Passage, texts[first.choice]).text
        (event,) = session.scalars(select(Event).where(Event.name == "judgment.stored"))
        assert (event.actor, event.noun, event.noun_id) == ("cora", "study", "1")
        assert event.data == {"judge": judge.id, "judgments": 2, "via": "token"}
        assert session.scalars(select(Assignment)).all() == []  # no place of a person
        assert {row.taken for row in session.scalars(select(StudyItem))} == {0}
        assert session.scalars(select(ProgramLease)).all() == []
    assert shown == one.candidates[0] and second.choice == "none"
    assert (first.study_id, first.guideline_id is None) == (1, False)
    assert first.shown_at is not None and first.shown_at <= first.decided_at


def test_two_programs_of_a_judge_share_the_items_and_each_is_given_its_own_again(
    world: Store,
) -> None:
    one, other = lease("one", count=4), lease("other", count=4)
    assert (len(one.data), len(other.data)) == (4, 2) and one.waiting == other.waiting == ITEMS
    assert not set(tokens(one)) & set(tokens(other))
    assert lease("one", count=4) == one  # as its answer may have been lost
    assert lease("third").data == ()
    assert len(lease("one", model="b" * 64, count=100).data) == ITEMS  # another judge
    assert lease("one", by=MINA, count=100).data == ()  # cora's program of that name holds them


def test_an_item_whose_lease_is_over_is_given_to_another_under_another_token(world: Store) -> None:
    mine = lease("mine", count=ITEMS)
    let_end(world)
    others = lease("other", by=MINA, count=2)
    assert len(others.data) == 2 and not set(tokens(others)) & set(tokens(mine))
    given = {(one.instruction, one.query) for one in others.data}
    late = [one for one in mine.data if (one.instruction, one.query) in given]
    rest = [one for one in mine.data if one not in late]
    # an answer that is late is not stored where the item was given on, and is otherwise
    assert answer(*((one.lease, 0) for one in late)) == (0, 0, 2, 0)
    assert stored(world) == []
    assert answer((rest[0].lease, 0))[:3] == (1, 0, 0)
    assert answer((others.data[0].lease, 1), by=MINA)[:3] == (1, 0, 0)
    assert answer((others.data[1].lease, 1))[:3] == (0, 0, 1)  # mina's
    assert len(stored(world)) == 2


def test_an_answer_renews_what_its_worker_holds(world: Store) -> None:
    mine, others = lease("mine", count=3), lease("other", count=3)
    let_end(world)
    answer((mine.data[0].lease, 0))
    with world.read() as session:
        alive = select(ProgramLease.token).where(ProgramLease.lease_until > utc_now())
        assert set(session.scalars(alive)) == set(tokens(mine)[1:])
    assert len(lease("third", count=10).data) == len(others.data)


def test_what_is_given_back_goes_to_the_next_at_once(world: Store) -> None:
    mine = lease("mine", count=ITEMS)
    assert lease("next").data == ()
    assert answer((mine.data[0].lease, 0), returned=tokens(mine)[1:])[0] == 1
    assert len(lease("next", count=ITEMS).data) == ITEMS - 1


def test_an_answer_that_is_sent_twice_is_stored_once_and_no_other_one_is(world: Store) -> None:
    one, other = tokens(lease())
    assert answer((one, 0))[:3] == (1, 0, 0)
    assert answer((one, 0), (other, 1))[:3] == (1, 1, 0)
    with pytest.raises(Refused) as caught:
        answer((one, 1))
    assert caught.value.code == "lease_answered"
    assert len(stored(world)) == 2


@pytest.mark.parametrize("choice", [9, -1, "0", "positive", "no"])
def test_of_answers_with_one_that_is_none_nothing_is_stored(world: Store, choice: Any) -> None:
    one, other = tokens(lease())
    with pytest.raises(BadInput):
        answer((one, 0), (other, choice))
    assert stored(world) == []
    assert answer((one, 0), (other, 0))[:3] == (2, 0, 0)


def test_a_closed_study_gives_and_takes_nothing_and_a_hash_has_one_judge(world: Store) -> None:
    (one, _) = tokens(lease())
    with pytest.raises(Refused) as caught:
        lease(model="a" * 12 + "b" * 52)  # of the same name
    assert caught.value.code == "judge_of_another_source"
    for label in (" f", "\u200b\n", "a\nb"):
        with pytest.raises(BadInput):
            lease(label=label)
    studies.change(CORA, StudyChange(study_id=1, status="closed"))
    for closed in (lease, lambda: answer((one, 0))):
        with pytest.raises(Refused) as caught:
            closed()
        assert caught.value.code == "study_not_open"


def test_what_the_judge_answered_elsewhere_is_not_leased_and_counts_at_the_end(
    world: Store,
) -> None:
    found = lease(count=ITEMS)
    answer(*((one, 0) for one in tokens(found)))
    with world.write() as session:
        second = sampled_study(session, run_id=1, items=8, overlap=1)  # of all eight groups
        session.commit()
        number = second.id
    found = lease(study_id=number, count=100)
    assert len(found.data) == found.waiting == 8 - ITEMS
    answer(*((one, 0) for one in tokens(found)), study_id=number)
    assert lease(study_id=number).waiting == 0
    with world.read() as session:
        counted = session.scalars(select(CountedJudgment.judgment_id)).all()
    assert len(counted) == ITEMS


def neutral(world: Store) -> None:
    """Let no text of a passage or instruction have a word of its role."""
    with world.write() as session:
        for passage in session.scalars(select(Passage)):
            passage.text = f"text {secrets.token_hex(8)}"
        for item in session.scalars(select(Item)):
            item.instruction = f"find {secrets.token_hex(8)}"
        session.commit()


@pytest.mark.long
@pytest.mark.parametrize("shape", ["picks", "questions"])
def test_who_reads_every_byte_of_a_leased_item_learns_no_role_and_no_answer(
    world: Store, tmp_path: Path, shape: str
) -> None:
    study_id = 1
    if shape == "questions":
        study_id = make_asked_study(world, tmp_path, [record(n) for n in range(4)])
    neutral(world)
    places: Counter[int] = Counter()
    computable = 0
    by_chance: list[float] = []  # for each item, the share of all its orders that one seed gives
    for number in range(30):
        model = f"{number:064x}"[::-1]
        found = lease(study_id=study_id, model=model, count=100)
        text = json.dumps(found.as_json())
        for one in json.loads(text)["data"]:
            assert set(one) == {
                *("lease", "instruction", "query", "candidates", "question", "about")
            }
            assert len(one["lease"]) == 32 and set(one["lease"]) <= set("0123456789abcdef")
        read = text.replace('"instruction"', "").replace("violates the instruction", "")
        for word in (*LABELS, "hard_negative", "distractor", "scenario", "expected", "label_"):
            assert word not in read, word
        for name in ("item_id", "group_id", "passage_id", "judge_id", "study_id", "position"):
            assert name not in text
        with world.read() as session:
            judge = session.scalars(select(Judge).where(Judge.name == found.judge)).one()
            for one in found.data:
                held = session.scalars(select(ProgramLease).filter_by(token=one.lease)).one()
                item = session.get_one(Item, held.item_id)
                if len(held.order_shown) > 1:
                    computable += held.order_shown == shuffled_labels(item, judge.id)
                    by_chance.append(1 / math.factorial(len(held.order_shown)))
                if len(held.order_shown) > 1 and item.expected in held.order_shown:
                    places[held.order_shown.index(item.expected)] += 1
    # no place is the right one's more often than another, and no seed gives the order
    assert len(places) >= 4 and max(places.values()) < 2 * min(places.values()) + 40, places
    spread = math.sqrt(sum(p * (1 - p) for p in by_chance))
    limit = sum(by_chance) + 5 * spread
    assert computable < limit < len(by_chance), (computable, limit, len(by_chance))


def test_a_program_answers_any_question_by_its_label(world: Store, tmp_path: Path) -> None:
    study_id = make_asked_study(world, tmp_path, [record(0)])
    found = lease(study_id=study_id, count=100)
    right: dict[str, Callable[[Any], Any]] = {
        "yes_no": lambda one: "yes",
        "grade": lambda one: str(one.about % 3),
        "pick": lambda one: 0,
        "score": lambda one: "0.5",
    }
    answers = [(one.lease, right[one.question.kind](one)) for one in found.data]
    with pytest.raises(BadInput):
        answer(*((one.lease, "7") for one in found.data), study_id=study_id)
    assert answer(*answers, study_id=study_id) == (7, 0, 0, 0)
    by_event = {one.event_id: one.choice for one in stored(world)}
    given = {f"lease:{token}": choice for token, choice in answers if choice != 0}
    assert len(given) == 6 and given.items() <= by_event.items()  # the pick is a label
