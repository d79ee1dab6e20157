"""An answer is stored under the guidelines that were before the judge, not under those of now."""

from typing import Any

import pytest
from app_pages import card_data as data_on_page
from app_pages import open_page, redraw_fragments, sign_in, words
from patient_annotator import Person, World, make_world
from sqlalchemy import select
from study_world import make_world as make_run
from study_world import sampled_study

from app.access.session_user import cookie_holder
from app.judge.actions import card_data
from app.operations.judging.card import acknowledge
from db.assignment.members import pause_judge, readmit_judge
from db.errors import BadInput
from db.store import schema
from db.store.store import Store
from db.study.gold_items import add_gold_item
from db.study.judgments import get_or_create_judge
from db.study.quality import judge_quality
from db.study.studies import write_guideline
from db.tables import Account, Guideline, GuidelineReading, Judge, Judgment, StudyItem


def write(world: World, body: str) -> None:
    """As a curator does."""
    with world.store.write() as session:
        write_guideline(session, world.study_id, body)
        session.commit()


def versions(store: Store) -> list[int]:
    """The version of each judgment, in order."""
    with store.read() as session:
        query = select(Guideline.version).join(Judgment, Judgment.guideline_id == Guideline.id)
        return list(session.scalars(query.order_by(Judgment.id)))


def read_by(store: Store, name: str) -> list[int]:
    """The versions that a judge is recorded to have read."""
    with store.read() as session:
        query = (
            select(Guideline.version)
            .join(GuidelineReading, GuidelineReading.guideline_id == Guideline.id)
            .join(Judge, Judge.id == GuidelineReading.judge_id)
            .where(Judge.name.startswith(name))
        )
        return sorted(session.scalars(query))


@pytest.fixture
def world(store: Store, monkeypatch: pytest.MonkeyPatch) -> World:
    return make_world(store, monkeypatch, items=6)


def test_a_judge_sees_what_changed_since_the_version_they_read(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_run(sqlite_store, 6)
    with sqlite_store.write() as session:
        text = "# Rules\nA figure is needed.\nBe quick."
        study_id = sampled_study(session, run_id=run_id, items=4, overlap=1, guidelines=text).id
        session.commit()
    sign_in(sqlite_store, monkeypatch, "annotator")
    open_page("judge", study=str(study_id))
    with sqlite_store.write() as session:
        write_guideline(session, study_id, "not seen by this judge")
        write_guideline(session, study_id, "# Rules\nA figure with its year is needed.\nBe quick.")
        session.commit()
    at = open_page("judge", study=str(study_id))
    (shown,) = [each.value for each in at.code]
    assert shown == "-A figure is needed.\n+A figure with its year is needed."
    assert "since version 1" in words(at)
    at.button(f"judge.have_read_{study_id}_3").click().run()
    with sqlite_store.read() as session:
        (row,) = judge_quality(session, study_id)
    assert row.guidelines == 3


def test_answers_on_a_card_from_before_keep_its_version(world: World) -> None:
    ann = Person(world, "ann")
    ann.ask()
    on_the_way = [ann.event(token) for token in ann.tokens()[:4]]
    write(world, "Look twice.")
    ann.ask(*on_the_way)
    assert set(ann.data["acknowledged"].values()) == {""}
    assert versions(world.store) == [1, 1, 1, 1]


def test_no_item_comes_before_the_new_version_is_acknowledged(world: World) -> None:
    ann, tab = Person(world, "ann"), Person(world, "ann")
    ann.ask()
    held = ann.tokens()
    tab.ask()
    write(world, "Look twice.")
    ann.ask()
    assert (ann.data["items"], ann.data["unread"], ann.data["guidelines"]) == ([], True, 1)
    assert "read them above" in ann.data["message"] and ann.data["left"] > 0
    assert read_by(world.store, "ann") == [1]
    for _ in range(2):  # a click that arrives twice
        acknowledge(cookie_holder(), world.study_id, 2)
    ann.ask()
    assert (ann.tokens(), ann.data["unread"], ann.data["guidelines"]) == (held, False, 2)
    ann.answer(held[0])
    tab.ask(tab.event(held[1]))  # what this tab showed is version 1 still
    tab.ask(tab.event(held[2]))
    assert versions(world.store) == [2, 1, 2]
    assert read_by(world.store, "ann") == [1, 2]


def test_a_version_written_meanwhile_is_to_be_read_too(world: World) -> None:
    ann = Person(world, "ann")
    ann.ask()
    write(world, "Look twice.")
    write(world, "Look thrice.")
    ann.ask()
    acknowledge(cookie_holder(), world.study_id, 2)
    ann.ask()
    assert ann.data["unread"]
    acknowledge(cookie_holder(), world.study_id, 3)
    ann.ask()
    assert ann.data["guidelines"] == 3 and ann.tokens()
    with pytest.raises(BadInput, match="no version 4"):
        acknowledge(cookie_holder(), world.study_id, 4)


@pytest.mark.parametrize("forged", [0, 2, -1, 2**40, "one", True])
def test_a_version_that_was_not_shown_is_refused(world: World, forged: Any) -> None:
    ann = Person(world, "ann")
    ann.ask()
    write(world, "Look twice.")
    entry = ann.event(ann.tokens()[0], guidelines=forged)
    ann.ask(entry)
    assert ann.data["acknowledged"][entry["event"]]
    assert versions(world.store) == []


def test_an_answer_without_a_version_counts_as_what_was_last_read(world: World) -> None:
    """Of a card from before the server was updated."""
    ann, bob = Person(world, "ann"), Person(world, "bob")
    ann.ask()
    write(world, "Look twice.")
    ann.ask(ann.event(ann.tokens()[0], guidelines=None))
    bob.ask()  # who begins now is shown the newest
    bob.answer(bob.tokens()[0])
    assert versions(world.store) == [1, 2]
    assert (read_by(world.store, "ann"), read_by(world.store, "bob")) == ([1], [2])


def test_examples_of_a_qualification_wait_for_it_as_items_do(world: World) -> None:
    with world.store.write() as session:
        gold = select(StudyItem.item_id).where(StudyItem.part == "gold").limit(3)
        for item_id in session.scalars(gold).all():
            add_gold_item(session, world.study_id, item_id, "training", "positive", "because")
        session.commit()
    ann = Person(world, "ann")
    ann.ask()
    (example,) = ann.data["items"]
    entry = ann.event(example["token"], kind="example", round=example["round"])
    write(world, "Look twice.")
    ann.ask(entry)
    assert ann.data["acknowledged"] == {entry["event"]: ""} and len(ann.data["feedback"]) == 1
    assert (ann.data["items"], ann.data["unread"]) == ([], True)
    assert versions(world.store) == [1]
    acknowledge(cookie_holder(), world.study_id, 2)
    ann.ask()
    assert len(ann.data["items"]) == 1 and ann.data["qualification"]


def test_who_judged_before_the_upgrade_has_read_what_they_judged_under(world: World) -> None:
    ann, bob = Person(world, "ann"), Person(world, "bob")
    ann.ask()
    ann.answer(ann.tokens()[0])
    bob.ask()
    write(world, "Look twice.")
    schema.downgrade(world.store, "0020")
    schema.upgrade(world.store)
    ann.ask()
    assert ann.data["unread"] and ann.data["guidelines"] == 1
    bob.ask()  # held items, answered none: no answer of theirs is mistaken
    assert not bob.data["unread"] and bob.data["guidelines"] == 2


def test_the_page_shows_the_new_version_and_goes_on_once_it_is_confirmed(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_run(sqlite_store, 6)
    with sqlite_store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=4, overlap=1).id
        session.commit()
    sign_in(sqlite_store, monkeypatch, "annotator")
    at = open_page("judge", study=str(study_id))
    assert data_on_page(at)["items"]
    with sqlite_store.write() as session:
        write_guideline(session, study_id, "Look **twice**.")
        session.commit()
    at.run()
    assert "Look **twice**." in words(at) and not data_on_page(at)["items"]
    at.button(f"judge.have_read_{study_id}_2").click().run()
    assert data_on_page(at)["items"]
    assert not [one for one in at.button if str(one.key).startswith("judge.have_read")]


def test_what_was_drawn_is_recorded_and_not_what_was_written_before_the_first_lease(
    world: World,
) -> None:
    ann = Person(world, "ann")
    write(world, "Look twice.")  # between drawing the page and leasing its first items
    ann.sit_down()
    data = card_data(world.study_id, [], guidelines=1)
    assert (data["items"], data["unread"], data["guidelines"]) == ([], True, 1)
    assert read_by(world.store, "ann") == [1]
    acknowledge(cookie_holder(), world.study_id, 2)
    data = card_data(world.study_id, [], guidelines=1)  # the page is drawn as it was
    assert data["items"] and (data["unread"], data["guidelines"]) == (False, 2)
    assert read_by(world.store, "ann") == [1, 2]


def judged_page(store: Store, monkeypatch: pytest.MonkeyPatch) -> int:
    """A study for a signed-in annotator."""
    run_id = make_run(store, 6)
    with store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=4, overlap=1).id
        session.commit()
    sign_in(store, monkeypatch, "annotator")
    return study_id


def test_guidelines_written_while_the_page_is_drawn_are_shown_before_the_first_item(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study_id = judged_page(sqlite_store, monkeypatch)
    drawn: list[int | None] = []

    def written_just_before(*args: Any, **fields: Any) -> dict[str, Any]:
        if not drawn:
            with sqlite_store.write() as session:
                write_guideline(session, study_id, "Look **twice**.")
                session.commit()
        drawn.append(fields.get("guidelines"))
        return card_data(*args, **fields)

    monkeypatch.setattr("app.judge.card.card_data", written_just_before)
    at = open_page("judge", study=str(study_id))
    assert read_by(sqlite_store, "a annotator") == [1]
    assert "Look **twice**." in words(at) and not data_on_page(at)["items"]
    at.button(f"judge.have_read_{study_id}_2").click().run()
    assert data_on_page(at)["items"] and drawn[-1] == 2


def test_guidelines_written_between_two_requests_are_not_recorded_for_a_page_of_before(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A judge who was paused reads version 1 on a page whose head is not drawn again."""
    study_id = judged_page(sqlite_store, monkeypatch)
    with sqlite_store.write() as session:
        account = session.scalars(select(Account)).one()
        judge = get_or_create_judge(session, account.name, kind="person", account_id=account.id)
        pause_judge(session, study_id, judge.id, "a moment, please")
        session.commit()
    at = open_page("judge", study=str(study_id))
    assert not data_on_page(at)["items"] and read_by(sqlite_store, "a annotator") == []
    with sqlite_store.write() as session:
        readmit_judge(session, study_id, judge.id)
        write_guideline(session, study_id, "Look **twice**.")
        session.commit()
    redraw_fragments(at, monkeypatch)
    assert data_on_page(at)["unread"] and not data_on_page(at)["items"]
    assert read_by(sqlite_store, "a annotator") == [1]
