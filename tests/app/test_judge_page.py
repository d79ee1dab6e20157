import re
from pathlib import Path

import pytest
from conftest import count_rows
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from study_world import make_world, sampled_study

import app
from db.assignment import members
from db.assignment.answering import Decision, submit_decision
from db.assignment.leasing import next_item
from db.review.reviews import approve_group
from db.store.store import Store
from db.study import gold_items, studies
from db.study.adjudication import get_disputed
from db.study.judgments import get_or_create_judge
from db.tables import (
    AdjudicationView,
    Assignment,
    Example,
    Group,
    Item,
    Judge,
    Judgment,
    OpenedGroup,
    Passage,
    StudyItem,
)

MAIN = Path(app.__file__).parent / "server" / "main.py"


def make_study(store: Store, items: int = 3) -> int:
    run_id = make_world(store, max(items, 4))
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=items, overlap=1)
        session.commit()
        return study.id


def open_page() -> AppTest:
    """The Judge page with plain widgets: AppTest does not run the card's JavaScript."""
    page = AppTest.from_file(str(MAIN), default_timeout=180)
    page.session_state["judge.plain"] = True
    page.run()
    return page.switch_page("../judge/page.py").run()


def sent(page: AppTest) -> str:
    """Everything that went to the browser."""
    return " ".join(str(element.proto) for element in page.main)


def picks(page: AppTest) -> list[str]:
    return [button.key for button in page.button if (button.key or "").startswith("judge.pick_")]


def test_an_item_is_judged_and_the_next_one_comes(sqlite_store: Store) -> None:
    make_study(sqlite_store, items=2)
    page = open_page()
    first = picks(page)
    assert len(first) == 5
    page.button(first[2]).click().run()
    assert not page.exception
    assert picks(page) != first
    with sqlite_store.read() as session:
        judgment = session.scalars(select(Judgment)).one()
    assert judgment.choice == judgment.order_shown[2]
    assert judgment.shown_at is not None and judgment.shown_at <= judgment.decided_at
    assert judgment.guideline_id is not None


def test_none_of_them_and_skip_lead_to_the_end(sqlite_store: Store) -> None:
    make_study(sqlite_store, items=2)
    page = open_page()
    none = next(b.key for b in page.button if (b.key or "").startswith("judge.none_"))
    page.button(none).click().run()
    skip = next(b.key for b in page.button if (b.key or "").startswith("judge.skip_"))
    page.button(skip).click().run()
    assert not page.exception
    assert "No items are left for you" in page.success[0].value
    with sqlite_store.read() as session:
        assert session.scalars(select(Judgment.choice)).all() == ["none"]
        assert sorted(session.scalars(select(Assignment.state))) == ["done", "skipped"]


def test_nothing_sent_to_the_browser_tells_a_role(sqlite_store: Store) -> None:
    make_study(sqlite_store, items=1)
    with sqlite_store.write() as session:
        for number, passage in enumerate(session.scalars(select(Passage))):
            passage.text = f"text {number}"
        for item in session.scalars(select(Item)):
            item.instruction = "Find it."
        session.commit()
    words = sent(open_page())
    assert "Find it." in words and "text " in words
    for secret in ("positive", "negative", "distractor", "kept", "dropped", "verdict"):
        assert secret not in words


@pytest.mark.parametrize("text", ["<script>alert(1)</script>", "$\\LaTeX$ **bold**", "שלום 🦉"])
def test_a_passage_is_shown_as_the_text_it_is(sqlite_store: Store, text: str) -> None:
    make_study(sqlite_store, items=1)
    with sqlite_store.write() as session:
        for passage in session.scalars(select(Passage)):
            passage.text = text
        session.commit()
    page = open_page()
    assert not page.exception
    assert "<script>" not in sent(page)


def test_a_study_closed_meanwhile_stores_nothing_and_says_so(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store, items=1)
    page = open_page()
    with sqlite_store.write() as session:
        studies.set_status(session, study_id, "closed")
        session.commit()
    page.button(picks(page)[0]).click().run()
    assert not page.exception
    assert any("closed" in error.value for error in page.error)
    assert count_rows(sqlite_store, "judgment") == 0


def test_without_an_open_study_the_page_says_what_to_do(sqlite_store: Store) -> None:
    page = open_page()
    assert not page.exception
    assert "No study is open" in page.markdown[0].value


def test_a_click_that_arrives_twice_is_one_judgment(sqlite_store: Store) -> None:
    make_study(sqlite_store, items=1)
    page = open_page()
    other = open_page()
    key = picks(page)[0]
    page.button(key).click().run()
    other.button(key).click().run()
    assert not other.exception
    assert count_rows(sqlite_store, "judgment") == 1
    with sqlite_store.read() as session:
        assert session.scalars(select(StudyItem.taken)).all() == [1]


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
    page = open_page()
    for _ in range(2):
        with sqlite_store.read() as session:
            rows = {
                row.item_id: row.gold_choice
                for row in session.scalars(select(StudyItem).where(StudyItem.part == "training"))
            }
            keys = [b.key for b in page.button if (b.key or "").startswith("judge.example_")]
            query = select(Example).where(Example.token == keys[0].split("_")[1])
            example = session.scalars(query).one()
        right = example.order_shown.index(rows[example.item_id])
        page.button(keys[right]).click().run()
        assert not page.exception
        assert "Correct." in page.success[0].value
        page.button("judge.feedback_read").click().run()
    assert len(picks(page)) == 5


def test_a_paused_judge_reads_why(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store)
    open_page()
    with sqlite_store.write() as session:
        judge_id = session.scalars(select(Judge.id)).one()
        members.pause_judge(session, study_id, judge_id, "please read the guidelines again")
        session.commit()
    page = open_page()
    assert any("read the guidelines again" in error.value for error in page.error)
    assert not picks(page)


def labels_and_captions(page: AppTest) -> str:
    """What the page adds to the texts of an item."""
    html = " ".join(element.proto.body for element in page.get("html"))
    labels = re.findall(r'<p class="inf-label">(.*?)</p>', html)
    return " ".join([*labels, *(each.value for each in page.caption)])


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
    page = open_page().switch_page("../studies/adjudicate_page.py").run()
    assert not page.exception
    for secret in ("positive", "negative", "distractor", "ann", "bob"):
        assert secret not in labels_and_captions(page)
    with sqlite_store.read() as session:
        view = session.scalars(select(AdjudicationView)).one()
    place = view.order_shown.index("query_negative")
    page.button(f"adjudicate.{view.token}_{place}").click().run()
    assert not page.exception
    with sqlite_store.read() as session:
        found = get_disputed(session, study_id, item.item_id)
        made = session.scalars(select(Judgment).order_by(Judgment.id.desc())).first()
        assert made is not None and made.detail == {"revealed": False}
        assert made.order_shown == view.order_shown
    assert (found.decision, found.decided_by) == ("query_negative", "local admin")
    page.button(f"adjudicate.reveal_{view.token}").click().run()
    assert not page.exception
    assert all(name in labels_and_captions(page) for name in ("query negative", "ann", "bob"))
    with sqlite_store.read() as session:
        (opened,) = session.scalars(select(OpenedGroup))
        assert (opened.opened_by, opened.place) == ("local admin", "adjudicate")


def test_the_curator_pauses_somebody_and_writes_new_guidelines(sqlite_store: Store) -> None:
    study_id = make_study(sqlite_store)
    page = open_page()
    page.button(picks(page)[0]).click().run()
    page.switch_page("../studies/page.py").run()
    page.text_input("studies.reason").set_value("take a break").run()
    page.button("studies.pause_judge").click().run()
    assert not page.exception
    assert any("take a break" in warning.value for warning in page.warning)
    page.text_area(f"studies.guideline_{study_id}").set_value("Look twice.").run()
    page.button("studies.write_guideline").click().run()
    assert not page.exception
    with sqlite_store.read() as session:
        assert studies.current_guideline(session, study_id).version == 2
