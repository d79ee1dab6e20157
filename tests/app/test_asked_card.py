"""The card of a study that asks several questions: what a browser gets, and what it may answer."""

import random
from collections import Counter
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from asked_study import PER_RECORD, QUESTIONS, ROLE, make_asked_study, record
from leases import lease_items
from sqlalchemy import select, update

from app.judge.actions import card_data
from app.operations.judging.outbox import store_outbox
from curation.judging.studies import show_items
from db.assignment.leasing import hold_items
from db.assignment.members import pause_on_failed_gold
from db.assignment.places import return_leases
from db.assignment.progress import own_progress
from db.assignment.reassigning import reassign
from db.assignment.shown_items import ShownItem
from db.assignment.standing import standing
from db.store.store import Store
from db.study.blind_adjudication import ids_to_adjudicate, view_item
from db.study.judgments import get_or_create_judge
from db.study.quality import judge_quality
from db.study.rules import set_rules
from db.tables import Assignment, Item, Judgment, StudyItem, StudyJudge, utc_now

LABELS = ("positive", "instruction_negative", "hard_negative")


def judge(store: Store, name: str) -> int:
    with store.write() as session:
        found = get_or_create_judge(session, name, kind="person").id
        session.commit()
        return found


def given(
    store: Store, study_id: int, judge_id: int, count: int = 1, minutes: float = 0
) -> list[ShownItem]:
    with store.write() as session:
        now = utc_now() + timedelta(minutes=minutes)
        found = lease_items(session, study_id, judge_id, count, now=now)
        session.commit()
        return found


def answer_of(item: ShownItem) -> Any:
    """An answer that the question takes, as the card sends it."""
    return {"yes_no": "yes", "grade": "1", "pick": 0, "score": "0.5"}[item.question.kind]


def send(store: Store, study_id: int, judge_id: int, *answers: tuple[ShownItem, Any]) -> list[str]:
    entries = [
        {
            "event": f"{item.token}-{number}",
            "kind": "pick",
            "study": study_id,
            "token": item.token,
            "position": value,
        }
        for number, (item, value) in enumerate(answers)
    ]
    with store.write() as session:
        here = standing(session, study_id, judge_id)
        told = store_outbox(session, {study_id: here}, entries)
        session.commit()
    return [told[entry["event"]] for entry in entries]


def test_a_card_is_given_whole_with_its_questions_in_order_and_one_order_of_passages(
    store: Store, tmp_path: Path
) -> None:
    study_id = make_asked_study(store, tmp_path, [record(n) for n in range(8)])
    cards = given(store, study_id, judge(store, "ann"), 3)
    assert len(cards) == 3 * PER_RECORD
    orders = set()
    for start in range(0, len(cards), PER_RECORD):
        card = cards[start : start + PER_RECORD]
        assert len({(one.group_id, one.query, one.candidates) for one in card}) == 1
        asked = [(one.question.name, one.about) for one in card]
        roles = [("role", place) for place in range(4)]
        assert asked == [("query_ok", "query"), *roles, ("best", None), ("fluency", None)]
        orders.add(tuple(text.partition(" on ")[0] for text in card[0].candidates))
    again = given(store, study_id, judge(store, "ann"), 3)
    assert [one.token for one in again] == [one.token for one in cards]
    others = given(store, study_id, judge(store, "ben"), 8)
    assert len({one.candidates for one in others}) == 8
    assert {one.token for one in others}.isdisjoint(one.token for one in cards)


def test_each_kind_of_answer_is_stored_as_its_label(store: Store, tmp_path: Path) -> None:
    study_id = make_asked_study(store, tmp_path, [record(0)])
    ann = judge(store, "ann")
    card = given(store, study_id, ann)
    assert send(store, study_id, ann, *((one, answer_of(one)) for one in card)) == [""] * PER_RECORD
    with store.read() as session:
        rows = session.execute(
            select(Item.scenario, Judgment.choice, Judgment.order_shown).join(
                Judgment, Judgment.item_id == Item.id
            )
        ).all()
    choices = {scenario: choice for scenario, choice, _ in rows}
    assert choices.pop("best") == rows[0].order_shown[0]
    assert choices == {
        "query_ok:query": "yes",
        "fluency": "0.5",
        **{f"role:{label}": "1" for label in rows[0].order_shown},
    }
    assert len({tuple(order) for *_, order in rows}) == 1


@pytest.mark.parametrize("value", ["several", "ambiguous"])
def test_several_and_ambiguous_are_answers_and_no_skips(
    store: Store, tmp_path: Path, value: str
) -> None:
    study_id = make_asked_study(store, tmp_path, [record(0)])
    ann = judge(store, "ann")
    card = given(store, study_id, ann)
    told = send(store, study_id, ann, *((one, value) for one in card))
    for one, why in zip(card, told, strict=True):
        assert (why == "") == (value == "ambiguous" or one.question.kind == "pick")


def test_no_refusal_names_what_a_passage_was_made_to_be(store: Store, tmp_path: Path) -> None:
    """A forged answer: every place of every question, and every label as a text."""
    study_id = make_asked_study(store, tmp_path, [record(0)])
    ann = judge(store, "ann")
    card = given(store, study_id, ann)
    forged = [0, 3, 4, -1, None, "none", "2", "yes", "0.5", "x", "1.0", "positive"]
    forged += ["instruction_negative_1", "hard_negative", "ambiguous "]
    for one in card:
        for value in forged:
            (why,) = send(store, study_id, ann, (one, value))
            taken = {"pick": (0, 3, None, "none"), "yes_no": ("yes",), "grade": ("2",)}
            fits = value in taken.get(one.question.kind, ("0.5",))
            if value in LABELS or value == "instruction_negative_1":
                assert why  # refused whatever it is, and told only what was sent
                continue
            assert not any(label in why for label in LABELS)
            if not fits and why == "":
                assert value in ("2", "0.5", "yes", "none")
            with store.write() as session:  # the first answer would refuse all that follow
                for row in session.scalars(select(Judgment)):
                    session.delete(row)
                for held in session.scalars(select(Assignment)):
                    held.state = "leased"
                session.commit()


def test_who_leaves_in_the_middle_of_a_card_is_given_the_rest_and_overlap_stays_exact(
    store: Store, tmp_path: Path
) -> None:
    study_id = make_asked_study(store, tmp_path, [record(n) for n in range(2)], overlap=1)
    ann, ben = judge(store, "ann"), judge(store, "ben")
    card = given(store, study_id, ann)[:PER_RECORD]
    send(store, study_id, ann, *((one, answer_of(one)) for one in card[:3]))
    # ann's leases run out; ben asks for everything
    theirs = given(store, study_id, ben, 9, minutes=30)
    rest = [one for one in theirs if one.query == card[0].query]
    # each in an order of their own: which passages ann graded is not where they stand for ben
    assert [one.question.name for one in rest] == [one.question.name for one in card[3:]]
    send(store, study_id, ben, *((one, answer_of(one)) for one in theirs))
    assert given(store, study_id, ann, 9, minutes=60) == []
    with store.read() as session:
        rows = session.execute(select(StudyItem.places, StudyItem.taken)).all()
        counted = Counter(session.scalars(select(Judgment.item_id)))
        left = own_progress(session, study_id, ann).left
    assert rows == [(1, 1)] * (2 * PER_RECORD)
    assert set(counted.values()) == {1} and len(counted) == 2 * PER_RECORD
    assert left == 0


def test_a_card_that_ran_out_comes_back_to_its_judge_in_the_same_order(
    store: Store, tmp_path: Path
) -> None:
    study_id = make_asked_study(store, tmp_path, [record(0)], overlap=1)
    ann, ben = judge(store, "ann"), judge(store, "ben")
    card = given(store, study_id, ann)
    send(store, study_id, ann, (card[0], "no"))
    with store.write() as session:  # ben only looks: what ann held is free, and is not taken
        here = standing(session, study_id, ben, now=utc_now() + timedelta(minutes=30))
        hold_items(session, here, 0, now=utc_now() + timedelta(minutes=30))
        session.commit()
    again = given(store, study_id, ann, minutes=31)
    assert [one.token for one in again] == [one.token for one in card[1:]]
    assert {one.candidates for one in again} == {card[0].candidates}


def test_the_rest_of_a_card_comes_in_the_order_of_what_was_answered(
    store: Store, tmp_path: Path
) -> None:
    """One order of passages is one card on the screen, however its items were leased."""
    study_id = make_asked_study(store, tmp_path, [record(number) for number in range(2)])
    ann = judge(store, "ann")
    first = given(store, study_id, ann)
    assert send(store, study_id, ann, (first[0], answer_of(first[0]))) == [""]
    with store.write() as session:  # a place that was never hers: the others had taken it
        gone = session.scalars(
            select(Assignment).where(
                Assignment.judge_id == ann, Assignment.item_id == first[-1].item_id
            )
        ).one()
        session.delete(gone)
        row = session.get_one(StudyItem, (study_id, first[-1].item_id))
        row.taken -= 1
        session.commit()
    given(store, study_id, ann, count=2)
    with store.read() as session:
        orders = session.execute(
            select(Item.group_id, Assignment.order_shown)
            .join(Item, Item.id == Assignment.item_id)
            .where(Assignment.judge_id == ann)
        ).all()
    of_card = [order for group_id, order in orders if group_id == first[0].group_id]
    assert len(of_card) == PER_RECORD and all(order == of_card[0] for order in of_card)


def test_a_program_judges_the_passage_that_a_question_is_about(
    store: Store, tmp_path: Path
) -> None:
    study_id = make_asked_study(store, tmp_path, [record(0)], [ROLE])
    with store.read() as session:
        ids = list(session.scalars(select(StudyItem.item_id).where(StudyItem.study_id == study_id)))
        shown = show_items(session, ids, 1)
    asked = {each.view.candidates[int(str(each.view.about))] for each in shown}
    assert len(asked) == 4


def test_items_given_to_another_person_stay_one_card(store: Store, tmp_path: Path) -> None:
    study_id = make_asked_study(store, tmp_path, [record(n) for n in range(3)], overlap=1)
    ann, ben = judge(store, "ann"), judge(store, "ben")
    held = given(store, study_id, ann, 2)
    with store.write() as session:
        done = reassign(session, study_id, ann, ben)
        session.commit()
    assert (done.moved, done.returned) == (len(held), 0)
    theirs = given(store, study_id, ben, 2)
    for start in range(0, len(theirs), PER_RECORD):
        assert len({one.candidates for one in theirs[start : start + PER_RECORD]}) == 1


@pytest.mark.long
def test_people_who_answer_at_random_and_leave_end_with_the_overlap(
    store: Store, tmp_path: Path
) -> None:
    study_id = make_asked_study(store, tmp_path, [record(n) for n in range(6)], [ROLE], overlap=3)
    people = [judge(store, f"judge {n}") for n in range(5)]
    chance, minutes = random.Random(3), 0.0
    for _ in range(400):
        minutes += 3
        one = chance.choice(people)
        held = given(store, study_id, one, 2, minutes=minutes)
        if held:
            send(store, study_id, one, *((each, "2") for each in held[: chance.randrange(6)]))
    with store.read() as session:
        rows = session.execute(select(StudyItem.places, StudyItem.taken)).all()
        kept = session.execute(
            select(Judgment.item_id, Judgment.judge_id).where(Judgment.study_id == study_id)
        ).all()
    assert rows == [(3, 3)] * 24
    assert len(kept) == len(set(kept)) == 72


def test_gold_and_qualification_take_grades(store: Store, tmp_path: Path) -> None:
    rows = [record(n) for n in range(3)] + [record(3, part="gold", explanation="because")]
    study_id = make_asked_study(store, tmp_path, rows, [ROLE])
    ann = judge(store, "ann")
    cards = given(store, study_id, ann, 9)
    assert len(cards) == 16  # gold is among them, and nothing says which
    send(store, study_id, ann, *((one, "2") for one in cards))
    with store.read() as session:
        (row,) = judge_quality(session, study_id)
    assert (row.gold_right, row.gold_seen) == (1, 4)  # of the four passages one is the positive


def test_gold_is_scored_over_several_cards_however_many_questions_a_card_has(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """Who waits for one card at a time would read a pause after it as "that was gold"."""
    store, seen = sqlite_store, []
    rows = [record(n, part="gold") for n in range(4)]
    study_id = make_asked_study(store, tmp_path, rows, [ROLE], overlap=1)
    ann = judge(store, "ann")
    with store.write() as session:
        set_rules(session, study_id, gold_action="pause")
        every = update(StudyItem).where(StudyItem.study_id == study_id)
        session.execute(every.values(taken=StudyItem.places))  # all places are taken by others
        session.commit()
        groups = session.scalars(select(Item.group_id).distinct()).all()
    for group_id in groups[:3]:
        with store.write() as session:
            of_card = StudyItem.item_id.in_(select(Item.id).where(Item.group_id == group_id))
            session.execute(update(StudyItem).where(of_card).values(taken=0))
            session.commit()
        for one in given(store, study_id, ann):
            send(store, study_id, ann, (one, "ambiguous"))
            with store.write() as session:
                now = own_progress(session, study_id, ann)
                pause_on_failed_gold(session, study_id, ann, answered=now.done, left=now.left)
                session.commit()
                seen.append(session.get_one(StudyJudge, (study_id, ann)).state)
    assert seen == ["active"] * 11 + ["paused"]  # after three cards of four grades


def test_who_saw_others_answers_on_a_card_is_given_no_other_question_of_it(
    store: Store, tmp_path: Path
) -> None:
    study_id = make_asked_study(store, tmp_path, [record(0)], overlap=3)
    for name, grade in (("ann", "2"), ("ben", "1")):
        one = judge(store, name)
        card = given(store, study_id, one)
        send(store, study_id, one, *((each, grade) for each in card if each.about is not None))
    cleo = judge(store, "cleo")
    with store.write() as session:
        listed = ids_to_adjudicate(session, study_id, "cleo")
        assert listed
        lease_items(session, study_id, cleo, 1)  # between the list and its view
        view_item(session, study_id, listed[0], "cleo")
        session.commit()
        states = select(Assignment.state).where(Assignment.judge_id == cleo).distinct()
        assert session.scalars(states).all() == ["expired"]
        assert own_progress(session, study_id, cleo).left == 0
    assert given(store, study_id, cleo) == []


def test_a_card_that_the_adjudicator_was_given_in_part_is_not_listed_at_all(
    store: Store, tmp_path: Path
) -> None:
    """Of a card that others began there is only the rest: its grades would tell the pick."""
    study_id = make_asked_study(store, tmp_path, [record(0)], overlap=2)
    for name, grade in (("ann", "2"), ("ben", "1")):
        one = judge(store, name)
        card = given(store, study_id, one)
        send(store, study_id, one, *((each, grade) for each in card if each.about is not None))
        given(store, study_id, judge(store, "dora"), minutes=60)  # frees what was left
        with store.write() as session:
            return_leases(session, study_id, judge(store, "dora"))
            session.commit()
    cleo = judge(store, "cleo")
    rest = given(store, study_id, cleo, minutes=60)
    assert 0 < len(rest) < PER_RECORD
    with store.read() as session:
        assert ids_to_adjudicate(session, study_id, "cleo") == []
        assert ids_to_adjudicate(session, study_id, "eve") != []


def test_the_browser_gets_texts_once_and_neither_kinds_nor_expected_answers(
    sqlite_store: Store, tmp_path: Path
) -> None:
    study_id = make_asked_study(sqlite_store, tmp_path, [record(n) for n in range(3)])
    data = card_data(study_id, [])
    items = data["items"]
    assert len(items) == 3 * PER_RECORD
    assert sum("candidates" in item for item in items) == 3
    whole = {"token", "instruction", "query", "candidates", "langs", "thread", "question", "about"}
    for number, item in enumerate(items):
        is_first = number % PER_RECORD == 0
        assert set(item) == (
            whole if is_first else {"token", "thread", "question", "about", "same"}
        )
        assert set(item["question"]) == {"name", "kind", "text", "labels"}
    sent = str([{**item, "candidates": ()} for item in items])
    assert not any(label in sent for label in LABELS)
    assert len(QUESTIONS) == 4


def test_people_who_differ_on_a_grade_are_adjudicated_on_it(store: Store, tmp_path: Path) -> None:
    study_id = make_asked_study(store, tmp_path, [record(0)], [ROLE])
    for name, grade in (("ann", "2"), ("ben", "1")):
        one = judge(store, name)
        card = given(store, study_id, one)
        values = [grade if "Text 0" in each.candidates[each.about] else "0" for each in card]
        send(store, study_id, one, *zip(card, values, strict=True))
    with store.write() as session:
        (item_id,) = ids_to_adjudicate(session, study_id, "cleo")
        shown = view_item(session, study_id, item_id, "cleo")
        assert shown.options == ("0", "1", "2", "ambiguous")
        assert shown.votes == (0, 1, 1, 0)
        assert "Text 0" in shown.candidates[shown.about]
