"""Home invites to a study that closes with its last answer, and then shows the agreement."""

import pytest
from app_pages import open_page
from leases import next_item
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from study_world import make_world, sampled_study

from app.home import path
from app.home.path import Step
from db.assignment.answering import Decision, find_assignment, submit_decision
from db.store.store import Store
from db.study.judgments import get_or_create_judge, record_judgment
from db.study.rules import set_rules
from db.tables import Item, StudyItem
from db.values import LOCAL_ADMIN


def invited(store: Store) -> int:
    """A study of two items that closes by itself; the validator chose P+ for each."""
    run_id = make_world(store, 6)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=2, overlap=1, name="Two *items*")
        set_rules(session, study.id, closes_when_done=True)
        validator = get_or_create_judge(session, "validator", kind="model").id
        chosen = select(Item).join(StudyItem, StudyItem.item_id == Item.id)
        for item in session.scalars(chosen.where(StudyItem.study_id == study.id)):
            record_judgment(
                session,
                judge_id=validator,
                item_id=item.id,
                choice="positive",
                order_shown=[each["label"] for each in item.candidates],
                event_id=f"validator/{item.id}",
                run_id=run_id,
            )
        session.commit()
        return study.id


def answer_next(store: Store, study_id: int, choice: str) -> None:
    with store.write() as session:
        judge = get_or_create_judge(session, LOCAL_ADMIN, kind="person").id
        item = next_item(session, study_id, judge)
        assert item is not None
        place = find_assignment(session, study_id, judge, item.item_id).order_shown.index(choice)
        submit_decision(session, study_id, judge, Decision(f"e{item.item_id}", item.item_id, place))
        session.commit()


def texts(store: Store) -> str:
    page = open_page("home")
    assert not page.exception
    return "\n".join(each.value for each in (*page.markdown, *page.caption))


def invitation() -> str:
    """The link to the user's own items, where another step is next."""
    linked = [each.proto.label for each in open_page("home").main if str(each.type) == "page_link"]
    (label,) = [each for each in linked if "reserved" in each]
    return str(label.replace("\\", ""))


def test_home_invites_and_shows_the_agreement_only_after_the_last_answer(
    sqlite_store: Store,
) -> None:
    study_id = invited(sqlite_store)
    assert invitation() == "2 items reserved for you in Two *items*"
    answer_next(sqlite_store, study_id, "positive")
    assert invitation() == "1 item reserved for you in Two *items*"
    assert "chose the same" not in texts(sqlite_store)
    answer_next(sqlite_store, study_id, "query_negative")
    page = open_page("home")
    shown = "\n".join(each.value for each in page.markdown)
    assert "you and the validator chose the same passage in **1 of 2 items**" in shown
    assert "Two \\*items\\*" in shown  # a name is text, no markup
    (rows,) = [frame.value for frame in page.dataframe if "You chose" in frame.value]
    assert len(rows) == 1 and "P2-" in rows["You chose"][0]
    assert "P+" in rows["The validator chose"][0]


def test_a_study_that_stays_open_is_no_invitation(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 6)
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=2, overlap=1)
        session.commit()
    assert "reserved for you" not in texts(sqlite_store)


def ways_to_judge(page: AppTest) -> list[str]:
    """What leads to an item: the links with their study, and the button of the next step."""
    linked = [each.proto for each in page.main if str(each.type) == "page_link"]
    next_step = [each.label for each in page.button if each.key == "home.next"]
    own = [each.query_string for each in linked if each.page == "judge" and each.query_string]
    return own + next_step


def test_items_that_are_the_next_step_are_described_there_and_stand_on_home_once(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study_id = invited(sqlite_store)
    parameters = {"study": str(study_id)}
    judging = Step("judge", "Judge", "unknown", "0 of 2", "Judge them", "", parameters)
    with monkeypatch.context() as patched:
        patched.setattr(path, "_curate", lambda *_: [judging])
        assert ways_to_judge(open_page("home")) == ["Judge them"]
        assert "2 items reserved for you" in texts(sqlite_store)
        answer_next(sqlite_store, study_id, "positive")
        assert ways_to_judge(open_page("home")) == ["Go on judging"]
    # another next step: the invitation is one of the links below it
    (linked, button) = ways_to_judge(open_page("home"))
    assert linked == f"study={study_id}" and "udg" not in button
