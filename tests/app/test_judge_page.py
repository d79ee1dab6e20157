import json
from datetime import timedelta
from pathlib import Path
from typing import Any

from app_pages import people_of, select_people
from conftest import count_rows
from leases import next_item
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from study_world import make_world, sampled_study

import app
from app.judge.actions import card_data
from db.assignment import members
from db.assignment.answering import Decision, submit_decision
from db.review.reviews import approve_group
from db.store.store import Store
from db.study import gold_items, studies
from db.study.judgments import get_or_create_judge
from db.tables import (
    AdjudicationView,
    Assignment,
    Example,
    Group,
    Item,
    Judge,
    Judgment,
    Passage,
    StudyItem,
    utc_now,
)

MAIN = Path(app.__file__).parent / "server" / "main.py"


def make_study(store: Store, items: int = 3) -> int:
    run_id = make_world(store, max(items, 4))
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=items, overlap=1)
        session.commit()
        return study.id


def open_page(name: str = "judge/page.py") -> AppTest:
    page = AppTest.from_file(str(MAIN), default_timeout=180)
    page.run()
    return page.switch_page(f"../{name}").run()


def sent(page: AppTest) -> str:
    """Everything that went to the browser but the card's script, which is always the same."""
    for element in page.main:
        if element.type == "bidi_component":
            element.proto.ClearField("js_content")
    return " ".join(str(element.proto) for element in page.main)


def card_of(page: AppTest, name: str = "judging") -> dict[str, Any]:
    """The data that the page sends to the card."""
    (found,) = (
        one.proto
        for one in page.main
        if one.type == "bidi_component" and name in one.proto.component_name
    )
    data: dict[str, Any] = json.loads(found.json)
    return data


def entry(study_id: int, item: dict[str, Any], position: int | None, **about: Any) -> Any:
    """What the card sends for a decision on the item."""
    return {
        "event": f"event-{item['token']}",
        "kind": "example" if "round" in item else "pick",
        "study": study_id,
        "token": item["token"],
        "position": position,
        "shown": "2026-01-01T10:00:00.000Z",
        "decided": "2026-01-01T10:00:04.500Z",
    } | about


def test_nothing_sent_to_the_browser_tells_a_role(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store, items=1)
    with sqlite_store.write() as session:
        for number, passage in enumerate(session.scalars(select(Passage))):
            passage.text = f"text {number}"
        for item in session.scalars(select(Item)):
            item.instruction = "Find it."
        session.commit()
    texts = [sent(open_page())]
    (item,) = card_data(study_id, [])["items"]
    told = card_data(study_id, [entry(study_id, item, 2)], before="")
    texts += [json.dumps(told), sent(open_page("judge/answers_page.py"))]
    for words in texts:
        assert "Find it." in words and "text " in words
        for secret in ("positive", "negative", "distractor", "kept", "dropped", "verdict"):
            assert secret not in words


def test_after_a_reload_the_card_gets_the_last_answers_on_request(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store, items=3)
    first, second, _ = card_data(study_id, [])["items"]
    told = [entry(study_id, first, 1, note="so"), entry(study_id, second, None)]
    assert card_data(study_id, told)["past"] == []
    past = card_data(study_id, [], before="")["past"]
    assert [one["item"]["token"] for one in past] == [second["token"], first["token"]]
    assert [one["entry"]["position"] for one in past] == [None, 1]
    assert past[1]["item"]["candidates"] == first["candidates"]
    older = card_data(study_id, [], before=second["token"])["past"]
    assert [one["item"]["token"] for one in older] == [first["token"]]


def test_who_answers_too_late_reads_one_sentence_on_it(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store, items=1)
    (item,) = card_data(study_id, [])["items"]
    with sqlite_store.write() as session:
        assignment = session.scalars(select(Assignment)).one()
        assignment.lease_until = utc_now() - timedelta(minutes=1)
        other = get_or_create_judge(session, "bob", kind="person")
        taken = next_item(session, study_id, other.id)
        assert taken is not None and taken.item_id == assignment.item_id
        session.commit()
    told = card_data(study_id, [entry(study_id, item, 0)], language="de")
    assert list(told["acknowledged"].values()) == [""]
    (notice,) = told["notices"].values()
    assert "zählt aber nicht" in notice and notice.count(".") == 1


def test_a_study_closed_meanwhile_stores_nothing_and_says_so(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store, items=1)
    (item,) = card_data(study_id, [])["items"]
    with sqlite_store.write() as session:
        studies.set_status(session, study_id, "closed")
        session.commit()
    told = card_data(study_id, [entry(study_id, item, 0)])
    assert "is closed" in next(iter(told["acknowledged"].values())) and told["items"] == []
    assert "is closed" in told["message"]
    assert count_rows(sqlite_store, "judgment") == 0


def test_without_an_open_study_the_page_says_what_to_do(sqlite_store: Store) -> None:
    page = open_page()
    assert not page.exception
    assert "No study is open" in page.markdown[0].value


def test_a_click_on_my_answers_that_arrives_twice_changes_once(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store, items=1)
    (item,) = card_data(study_id, [])["items"]
    card_data(study_id, [entry(study_id, item, 0)])
    pages = [open_page("judge/answers_page.py") for _ in range(2)]
    for page in pages:
        page.radio(f"answers.choice_{item['token']}").set_value(1)
        page.button(f"answers.change_{item['token']}").click().run()
        assert not page.exception
    with sqlite_store.read() as session:
        made = session.scalars(select(Judgment).order_by(Judgment.id)).all()
        assert [one.choice for one in made] == made[0].order_shown[:2]
        assert [one.is_current for one in made] == [False, True]
        assert session.scalars(select(StudyItem.taken)).all() == [1]


def test_a_message_from_my_answers_reaches_the_curator_and_comes_back(
    sqlite_store: Store,
) -> None:
    study_id = make_study(sqlite_store, items=1)
    (item,) = card_data(study_id, [])["items"]
    card_data(study_id, [entry(study_id, item, 0)])
    page = open_page("judge/answers_page.py")
    page.text_area(f"answers.message_{item['token']}_0").set_value("Is it tea?")
    page.button(f"answers.send_{item['token']}").click().run()
    assert not page.exception and "Is it tea?" in sent(page)
    curator = open_page("studies/page.py")
    (thread,) = (b.key for b in curator.button if (b.key or "").startswith("studies.thread_"))
    curator.button(thread).click().run()
    (box,) = (t.key for t in curator.text_area if (t.key or "").startswith("studies.answer_"))
    curator.text_area(box).set_value("It is.")
    curator.button(box.replace("answer", "send")).click().run()
    assert not curator.exception
    assert card_data(study_id, [])["replies"] == 1
    with sqlite_store.read() as session:  # who opened a thread is not given its item any more
        assert session.scalars(select(AdjudicationView.seen_by)).all() == ["local admin"]
    assert "It is." in sent(open_page("judge/answers_page.py"))
    assert card_data(study_id, [])["replies"] == 0


def approve_the_rest(store: Store, study_id: int) -> None:
    with store.write() as session:
        used = select(Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
        for group_id in session.scalars(select(Group.id).where(Group.id.not_in(used))).all():
            approve_group(session, group_id, reviewed_by="rita")
        gold_items.sample_gold_items(session, study_id, "training", 2)
        session.commit()


def test_the_training_gives_feedback_and_leads_to_the_study(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 6)
    with sqlite_store.write() as session:
        study_id = sampled_study(session, run_id=run_id, items=2, overlap=1).id
        session.commit()
    approve_the_rest(sqlite_store, study_id)
    for _ in range(2):
        (item,) = card_data(study_id, [])["items"]
        with sqlite_store.read() as session:
            example = session.scalars(select(Example).where(Example.token == item["token"])).one()
            row = session.get_one(StudyItem, (study_id, example.item_id))
            right = example.order_shown.index(row.gold_choice)
        told = card_data(study_id, [entry(study_id, item, right)])
        (feedback,) = told["feedback"]
        assert feedback["right"] == feedback["chosen"] == right
    assert feedback["then"] == "card.passed"
    assert len(told["items"]) == 2 and "round" not in told["items"][0]


def test_a_paused_judge_reads_why(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store)
    open_page()
    with sqlite_store.write() as session:
        judge_id = session.scalars(select(Judge.id)).one()
        members.pause_judge(session, study_id, judge_id, "please read the guidelines again")
        session.commit()
    told = card_of(open_page())
    assert "read the guidelines again" in told["message"] and told["items"] == []


def test_a_dispute_is_decided_on_its_page(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store, items=1)
    with sqlite_store.write() as session:
        studies.extend_overlap(session, study_id, 2)
        for name, position in (("ann", 0), ("bob", None)):
            judge = get_or_create_judge(session, name, kind="person")
            item = next_item(session, study_id, judge.id)
            assert item is not None
            decision = Decision(event_id=name, item_id=item.item_id, position=position)
            submit_decision(session, study_id, judge.id, decision)
        session.commit()
    page = open_page("studies/adjudicate_page.py")
    assert not page.exception
    (shown,) = card_of(page, "adjudication")["items"]
    assert shown["votes"][shown["options"].index(None)] == 1
    kept = {key: shown[key] for key in shown if key not in ("instruction", "query", "candidates")}
    for secret in ("positive", "negative", "distractor", "ann", "bob"):
        assert secret not in str(kept)
    page.selectbox("adjudicate.show").set_value("all").run()
    assert not page.exception and len(card_of(page, "adjudication")["items"]) == 1


def test_the_curator_pauses_somebody_and_writes_new_guidelines(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store)
    card_data(study_id, [entry(study_id, card_data(study_id, [])["items"][0], 0)])
    page = open_page("studies/page.py")
    select_people(page, study_id, "local admin")
    page.text_input("studies.reason").set_value("take a break").run()
    page.button("studies.do").click().run()
    assert not page.exception
    (row,) = people_of(page)
    assert (row["state"], row["reason"]) == ("paused", "take a break")
    page.text_area(f"studies.guideline_{study_id}").set_value("Look twice.").run()
    page.button("studies.write_guideline").click().run()
    assert not page.exception
    with sqlite_store.read() as session:
        assert studies.current_guideline(session, study_id).version == 2
