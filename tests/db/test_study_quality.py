import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest
from leases import next_item
from sqlalchemy import select
from study_world import backdate_leases, make_world, sampled_study

from db.assignment import answering, guidelines, members, progress, qualification
from db.assignment.answering import Decision
from db.corpus.texts import texts_of
from db.errors import BadInput, Refused
from db.review.reviews import approve_group
from db.shape import INF_IR
from db.store.store import Store
from db.study import adjudication, gold_items, quality, rules, studies
from db.study.judgments import get_or_create_judge, judgment_frame
from db.tables import (
    Assignment,
    Event,
    Example,
    Group,
    Item,
    Judgment,
    OpenedGroup,
    Study,
    StudyItem,
    utc_now,
)


def make_study(store: Store, *, items: int = 4, overlap: int = 2, spare: int = 6) -> int:
    """A study, and `spare` approved groups that are not in it."""
    run_id = make_world(store, items + spare)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=items, overlap=overlap)
        used = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        for group_id in session.scalars(select(Group.id).where(Group.id.not_in(used))):
            approve_group(session, group_id, reviewed_by="rita")
        session.commit()
        return study.id


def judge(store: Store, name: str) -> int:
    with store.write() as session:
        found = get_or_create_judge(session, name, kind="person").id
        session.commit()
        return found


def settle(store: Store, study_id: int, **settings: object) -> None:
    with store.write() as session:
        study = session.get_one(Study, study_id)
        study.settings = {**study.settings, **settings}
        session.commit()


def answer(
    store: Store,
    study_id: int,
    judge_id: int,
    *,
    label: str = "",
    seconds: float = 5,
    note: str = "",
) -> int | None:
    """Take the next item and answer it, with that label where it is one of its candidates."""
    with store.write() as session:
        item = next_item(session, study_id, judge_id)
        if item is None:
            return None
        query = select(Assignment.order_shown).where(Assignment.token == item.token)
        order = session.scalars(query).one()
        row = session.get_one(StudyItem, (study_id, item.item_id))
        wanted = row.gold_choice if label == "gold" and row.gold_choice else label
        position = order.index(wanted) if wanted in order else None
        backdate_leases(session, minutes=1)
        now = utc_now()
        decision = Decision(
            event_id=f"{judge_id}/{item.item_id}",
            item_id=item.item_id,
            position=position,
            shown_at=now - timedelta(seconds=seconds),
            decided_at=now,
            note=note,
        )
        answering.submit_decision(session, study_id, judge_id, decision)
        session.commit()
        return item.item_id


def train(store: Store, study_id: int, judge_id: int, *, right: bool) -> list[bool]:
    """Go through one round of the training."""
    result = []
    with store.write() as session:
        for _ in range(qualification.qualification_state(session, study_id, judge_id).total):
            example = qualification.next_example(session, study_id, judge_id)
            assert example is not None
            row = session.get_one(StudyItem, (study_id, example.item_id))
            query = select(Example.order_shown).where(Example.token == example.token)
            order = session.scalars(query).one()
            position = order.index(str(row.gold_choice)) if right else None
            feedback = qualification.answer_example(
                session, study_id, judge_id, example.token, position
            )
            assert feedback.explanation
            result.append(feedback.is_right)
        session.commit()
    return result


def draw(store: Store, study_id: int, part: str, count: int) -> None:
    with store.write() as session:
        gold_items.sample_gold_items(session, study_id, part, count)
        session.commit()


def test_nothing_is_judged_before_the_training_is_passed(store: Store) -> None:
    study_id = make_study(store)
    draw(store, study_id, "training", 6)
    settle(store, study_id, training_items=3)
    ann = judge(store, "ann")
    with store.write() as session, pytest.raises(Refused, match="qualification comes first"):
        next_item(session, study_id, ann)
    assert train(store, study_id, ann, right=False) == [False] * 3
    with store.read() as session:
        state = qualification.qualification_state(session, study_id, ann)
    assert (state.passed, state.round, state.answered) == (False, 1, 0)
    assert train(store, study_id, ann, right=True) == [True] * 3
    with store.read() as session:
        assert qualification.qualification_state(session, study_id, ann).passed
        told = session.scalars(select(Event).where(Event.name == "judgment.stored")).all()
        # an event for each answer, without its choice
        assert [(one.actor, one.data) for one in told] == [("ann", {"study": study_id})] * 6
        stored = {str(number) for number in session.scalars(select(Judgment.id))}
        assert {one.noun_id for one in told} <= stored and len({one.noun_id for one in told}) == 6
    assert answer(store, study_id, ann) is not None
    with store.read() as session:
        assert len(judgment_frame(session, study_id)) == 1
        assert session.scalars(select(Judgment.study_id)).all() == [study_id] * 7


def test_who_fails_every_round_is_paused_until_a_curator_lets_them_in(store: Store) -> None:
    study_id = make_study(store)
    draw(store, study_id, "training", 6)
    settle(store, study_id, training_items=2)
    ann = judge(store, "ann")
    for _ in range(rules.StudyRules().training_rounds):
        train(store, study_id, ann, right=False)
    with store.write() as session:
        with pytest.raises(Refused, match="not passed in 3 rounds"):
            next_item(session, study_id, ann)
        members.readmit_judge(session, study_id, ann)
        session.commit()
    assert train(store, study_id, ann, right=True) == [True, True]
    assert answer(store, study_id, ann) is not None


def test_gold_comes_between_the_items_and_never_counts(store: Store) -> None:
    study_id = make_study(store, items=6, overlap=1)
    draw(store, study_id, "gold", 2)
    ann = judge(store, "ann")
    given = []
    while (item_id := answer(store, study_id, ann, label="gold")) is not None:
        given.append(item_id)
    assert len(given) == 8
    with store.read() as session:
        assert len(judgment_frame(session, study_id)) == 6
        (row,) = quality.judge_quality(session, study_id)
        assert (row.gold_right, row.gold_seen, row.judged) == (2, 2, 6)
        gold = {i for i in given if session.get_one(StudyItem, (study_id, i)).part == "gold"}
        assert studies.summarise_study(session, study_id).done == 6
    assert len(gold) == 2


def test_gold_has_any_place_and_as_many_judgments_as_the_others(store: Store) -> None:
    study_id = make_study(store, items=12, overlap=2, spare=4)
    draw(store, study_id, "gold", 4)
    with store.read() as session:
        rows = session.scalars(select(StudyItem).order_by(StudyItem.position)).all()
        assert [row.position for row in rows] == list(range(16))
        assert {(row.places, row.taken) for row in rows} == {(2, 0)}
    people = [judge(store, name) for name in ("ann", "bob", "cem")]
    for person in people:
        with store.read() as session:
            before = progress.own_progress(session, study_id, person)
        totals = set()
        while answer(store, study_id, person) is not None:
            with store.read() as session:
                now = progress.own_progress(session, study_id, person)
            totals.add(now.done + now.left)
        assert totals <= {before.done + before.left}
    with store.read() as session:
        assert {row.taken for row in session.scalars(select(StudyItem))} == {2}
        assert session.query(Judgment).count() == 32


@pytest.mark.long
def test_every_place_of_a_gold_item_is_as_likely(sqlite_store: Store) -> None:
    found: Counter[int] = Counter()
    study_id = make_study(sqlite_store, items=4, overlap=1, spare=1)
    with sqlite_store.write() as session:
        for _ in range(500):
            with session.begin_nested() as trial:
                (item_id,) = gold_items.sample_gold_items(session, study_id, "gold", 1)
                found[session.get_one(StudyItem, (study_id, item_id)).position] += 1
                trial.rollback()
            session.expire_all()
    assert set(found) == set(range(5)) and min(found.values()) > 60 and max(found.values()) < 145


def test_gold_is_added_only_where_items_are_left_to_hide_among(store: Store) -> None:
    study_id = make_study(store, items=4, overlap=2)
    ann, bob = judge(store, "ann"), judge(store, "bob")
    for _ in range(2):
        answer(store, study_id, ann)
    draw(store, study_id, "gold", 2)
    with store.read() as session:
        of_gold = select(StudyItem.position).where(StudyItem.part == "gold")
        assert min(session.scalars(of_gold)) > 1
    while answer(store, study_id, ann) is not None:
        pass
    with pytest.raises(BadInput, match="add items to the study first"):
        draw(store, study_id, "gold", 1)
    answered = [answer(store, study_id, bob) for _ in range(6)]
    assert len(set(answered)) == 6


def test_every_round_of_the_qualification_has_other_examples(store: Store) -> None:
    study_id = make_study(store)
    draw(store, study_id, "training", 6)
    settle(store, study_id, training_items=2, training_rounds=5)
    ann = judge(store, "ann")
    for _ in range(3):
        train(store, study_id, ann, right=False)
    with store.read() as session:
        rounds: dict[int, set[int]] = {}
        for example in session.scalars(select(Example)):
            rounds.setdefault(example.round, set()).add(example.item_id)
        assert [len(items) for items in rounds.values()] == [2, 2, 2]
        assert len(set.union(*rounds.values())) == 6
    with store.write() as session:
        with pytest.raises(Refused, match="no new examples for another"):
            next_item(session, study_id, ann)
        members.readmit_judge(session, study_id, ann)
        session.commit()
    train(store, study_id, ann, right=False)
    with store.read() as session:
        again = session.scalars(select(Example.item_id).where(Example.round == 3)).all()
    assert set(again) == rounds[0]  # those seen longest ago


def test_a_later_round_asks_nothing_about_a_pair_that_an_earlier_one_explained(
    store: Store,
) -> None:
    """The explanation of one question about a record tells of the others."""
    study_id = make_study(store)
    draw(store, study_id, "training", 4)
    with store.write() as session:
        rows = session.scalars(select(StudyItem).where(StudyItem.part == "training")).all()
        for row in rows:
            group_id = session.get_one(Item, row.item_id).group_id
            sibling = select(Item).where(Item.group_id == group_id, Item.id != row.item_id)
            other = session.scalars(sibling.limit(1)).one()
            gold_items.add_gold_item(session, study_id, other.id, "training", "positive", "why")
        session.commit()
    settle(store, study_id, training_items=2, training_rounds=5)
    for name in ("ann", "bea", "carl"):
        person = judge(store, name)
        train(store, study_id, person, right=False)
        train(store, study_id, person, right=False)
        with store.read() as session:
            groups: dict[int, set[int]] = {}
            shown = select(Example.round, Item.group_id).join(Item, Item.id == Example.item_id)
            for number, group_id in session.execute(shown.where(Example.judge_id == person)):
                groups.setdefault(number, set()).add(group_id)
        assert groups[0] and groups[1] and not groups[0] & groups[1]


def test_every_sampled_example_has_an_explanation_of_its_own(store: Store) -> None:
    study_id = make_study(store)
    draw(store, study_id, "training", 4)
    with store.read() as session:
        rows = session.scalars(select(StudyItem).where(StudyItem.part == "training")).all()
        for row in rows:
            item = session.get_one(Item, row.item_id)
            texts = texts_of(session, [item.group_id])[item.group_id]
            instruction, query, _ = INF_IR.scenarios[item.scenario].signs
            assert f"“{texts[query]}”" in row.explanation
            assert f"“{texts[instruction]}”" in row.explanation
            assert " is for the instruction “" in row.explanation
    assert len({row.explanation for row in rows}) == 4


@pytest.mark.parametrize("at", [0, 16])
def test_missed_gold_pauses_after_as_many_answers_wherever_it_was(store: Store, at: int) -> None:
    study_id = make_study(store, items=21, overlap=1, spare=4)
    draw(store, study_id, "gold", 4)
    settle(store, study_id, gold_action="pause")
    with store.write() as session:
        rows = session.scalars(select(StudyItem).order_by(StudyItem.position)).all()
        gold, main = (
            [row for row in rows if (row.part == "gold") == is_gold] for is_gold in (1, 0)
        )
        for position, row in enumerate([*main[:at], *gold, *main[at:]]):
            row.position = position
        session.commit()
    ann = judge(store, "ann")
    paused_after = None
    for number in range(1, 25):
        try:
            answer(store, study_id, ann)
        except Refused as refused:
            assert refused.code == "paused_by_gold" and "0 of 4 gold items" in str(refused)
            paused_after = number - 1
            break
        with store.write() as session:
            members.pause_on_failed_gold(session, study_id, ann, answered=number, left=25 - number)
            session.commit()
    assert paused_after == rules.SCORED_TOGETHER
    with store.read() as session:
        event = session.scalars(select(Event).where(Event.name == "study.pause_judge")).one()
        assert (event.noun_id, event.data["judge"], event.data["rule"]) == (
            str(study_id),
            ann,
            "gold",
        )


def test_too_few_approved_groups_for_gold_are_counted(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store, spare=2)
    with pytest.raises(BadInput, match="has 2: approve more"):
        draw(sqlite_store, study_id, "gold", 3)


def test_fast_answers_and_notes_are_counted_per_judge(store: Store) -> None:
    study_id = make_study(store, items=4)
    ann, bob = judge(store, "ann"), judge(store, "bob")
    for seconds in (0.5, 0.6, 9, 10):
        answer(store, study_id, ann, seconds=seconds, note="hm" if seconds == 9 else "")
    answer(store, study_id, bob, seconds=7)
    with store.read() as session:
        first, second = quality.judge_quality(session, study_id)
    assert (first.name, first.judged, first.too_fast, first.notes) == ("ann", 4, 0.5, 1)
    assert first.median_seconds == pytest.approx(9, abs=0.1)
    assert (second.name, second.judged, second.too_fast) == ("bob", 1, 0.0)


def test_a_paused_judge_gives_back_what_they_hold(store: Store) -> None:
    study_id = make_study(store, items=1, overlap=1)
    ann, bob = judge(store, "ann"), judge(store, "bob")
    with store.write() as session:
        item = next_item(session, study_id, ann)
        assert item is not None
        assert next_item(session, study_id, bob) is None
        members.pause_judge(session, study_id, ann, "away today")
        taken = next_item(session, study_id, bob)
        assert taken is not None and taken.item_id == item.item_id
        with pytest.raises(Refused, match="away today"):
            next_item(session, study_id, ann)
        session.commit()


def test_more_overlap_opens_finished_items_again(store: Store) -> None:
    study_id = make_study(store, items=2, overlap=1)
    ann, bob = judge(store, "ann"), judge(store, "bob")
    while answer(store, study_id, ann) is not None:
        pass
    assert answer(store, study_id, bob) is None
    with store.write() as session:
        studies.extend_overlap(session, study_id, 2)
        with pytest.raises(BadInput, match="can only be raised"):
            studies.extend_overlap(session, study_id, 1)
        session.commit()
    assert answer(store, study_id, bob) is not None


def test_the_overlap_can_be_raised_where_gold_of_before_was_judged_by_many(store: Store) -> None:
    """Migration 0020 fills such gold; it stays full, as it would be all that is left to give."""
    study_id = make_study(store)
    with store.write() as session:
        row = session.scalars(select(StudyItem).where(StudyItem.study_id == study_id)).first()
        assert row is not None
        key = (row.study_id, row.item_id)
        row.part, row.places, row.taken = "gold", 9, 9
        session.flush()
        studies.extend_overlap(session, study_id, 4)
        session.commit()
    with store.read() as session:
        assert session.get_one(StudyItem, key).places == 9
        main = select(StudyItem.places).where(
            StudyItem.study_id == study_id, StudyItem.part == "main"
        )
        assert set(session.scalars(main)) == {4}


def test_judgments_keep_the_version_of_the_guidelines_they_were_made_under(store: Store) -> None:
    study_id = make_study(store)
    ann = judge(store, "ann")
    answer(store, study_id, ann)
    with store.write() as session:
        assert studies.write_guideline(session, study_id, studies.GUIDELINES).version == 1
        assert studies.write_guideline(session, study_id, "Read **all** of it.").version == 2
        guidelines.acknowledge(session, study_id, ann, 2)
        session.commit()
    answer(store, study_id, ann)
    with store.read() as session:
        first, second = session.scalars(select(Judgment.guideline_id).order_by(Judgment.id))
    assert first != second


def test_disputes_come_first_and_the_decision_is_a_judge_of_its_own(store: Store) -> None:
    study_id = make_study(store, items=3, overlap=2)
    ann, bob = judge(store, "ann"), judge(store, "bob")
    items = [answer(store, study_id, ann, label="positive") for _ in range(3)]
    labels = ["positive", "query_negative", "positive"]
    for number, label in enumerate(labels):
        answer(store, study_id, bob, label=label, note="unsure" if number == 2 else "")
    with store.write() as session:
        assert adjudication.disputed_ids(session, study_id) == [items[1], items[2]]
        disputed = adjudication.get_disputed(session, study_id, items[1] or 0)
        assert {(one.judge, one.choice) for one in disputed.answers} == {
            ("ann", "positive"),
            ("bob", "query_negative"),
        }
        for _ in range(2):
            adjudication.adjudicate(session, study_id, items[1] or 0, "positive", by="cora")
        adjudication.adjudicate(session, study_id, items[1] or 0, "none", by="dan", note="neither")
        session.commit()
        disputed = adjudication.get_disputed(session, study_id, items[1] or 0)
        assert (disputed.decision, disputed.decided_by) == ("none", "dan")
        assert adjudication.disputed_ids(session, study_id, open_only=True) == [items[2]]
        assert len(judgment_frame(session, study_id)) == 6
        assert {row.judge for row in judgment_frame(session, study_id)} == {"ann", "bob"}
        with pytest.raises(BadInput):
            adjudication.adjudicate(session, study_id, items[1] or 0, "other", by="cora")


def test_examples_of_groups_that_the_judge_reviewed_are_left_out(store: Store) -> None:
    study_id = make_study(store)
    draw(store, study_id, "training", 3)
    settle(store, study_id, training_items=2)
    ann, rita = judge(store, "ann"), judge(store, "rita")  # rita approved the groups
    with store.write() as session:
        row = session.scalars(select(StudyItem).where(StudyItem.part == "training")).first()
        assert row is not None
        known = row.item_id
        group_id = session.get_one(Item, known).group_id
        session.add(OpenedGroup(group_id=group_id, opened_by="ann", place="groups"))
        session.commit()
    train(store, study_id, ann, right=True)
    with store.write() as session:
        shown = set(session.scalars(select(Example.item_id)))
        assert len(shown) == 2 and known not in shown
        with pytest.raises(Refused, match="groups of all examples"):
            qualification.next_example(session, study_id, rita)


def test_the_group_of_an_example_is_not_given_as_an_item(store: Store) -> None:
    study_id = make_study(store, items=1)
    ann, bob = judge(store, "ann"), judge(store, "bob")
    with store.write() as session:
        main = session.scalars(select(StudyItem.item_id)).one()
        mine = session.get_one(Item, main)
        query = select(Item).where(Item.group_id == mine.group_id, Item.id != main)
        example = session.scalars(query).first()
        assert example is not None
        gold_items.add_gold_item(session, study_id, example.id, "training", "positive", "why")
        session.commit()
    train(store, study_id, ann, right=True)
    assert answer(store, study_id, ann) is None
    settle(store, study_id)
    with store.write() as session:
        members.add_member(session, study_id, bob).passed_at = utc_now()
        session.commit()
    assert answer(store, study_id, bob) == main


def test_two_tabs_that_begin_a_round_at_the_same_moment_share_it(store: Store) -> None:
    study_id = make_study(store)
    draw(store, study_id, "training", 6)
    settle(store, study_id, training_items=2)
    ann = judge(store, "ann")

    def other_tab() -> str:
        with store.write() as session:
            example = qualification.next_example(session, study_id, ann)
            session.commit()
            assert example is not None
            return example.token

    with ThreadPoolExecutor(1) as pool:
        with store.write() as session:
            example = qualification.next_example(session, study_id, ann)
            shown = pool.submit(other_tab)
            time.sleep(0.3)  # it waits for this transaction
            session.commit()
        assert example is not None and shown.result(30) == example.token
    with store.read() as session:
        assert len(session.scalars(select(Example.id)).all()) == 2


def test_who_fails_gold_or_is_too_fast_is_flagged_with_the_reason(store: Store) -> None:
    study_id = make_study(store, items=12, overlap=3)
    settle(store, study_id, too_fast_seconds=2.0, gold_threshold=0.7)
    calm, fast = judge(store, "calm"), judge(store, "fast")
    for _ in range(12):
        answer(store, study_id, calm, seconds=5)
        answer(store, study_id, fast, seconds=0.5)
    with store.read() as session:
        assert quality.flagged_people(session, study_id) == {"fast": "100% of answers under 2 s"}
        each = next(one for one in quality.judge_quality(session, study_id) if one.name == "calm")
        rules_now = rules.rules_of(session.get_one(Study, study_id))
    poor = each.model_copy(update={"gold_right": 1, "gold_seen": 4})
    assert quality.flag_reason(poor, rules_now) == "gold 1 of 4 right"
    too_few = poor.model_copy(update={"gold_seen": 2})
    assert quality.flag_reason(too_few, rules_now) == ""
    assert quality.flag_reason(poor.model_copy(update={"kind": "model"}), rules_now) == ""
    few = each.model_copy(update={"too_fast": 1.0, "timed": quality.MIN_TIMED - 1})
    assert quality.flag_reason(few, rules_now) == ""
