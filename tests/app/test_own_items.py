"""Home invites to a study that closes with its last answer, and then shows the agreement."""

from urllib.parse import parse_qs

import pytest
from app_pages import cookies_of, open_page, send_cookies
from leases import next_item
from sqlalchemy import select
from streamlit.runtime.context import ContextProxy
from streamlit.testing.v1 import AppTest
from study_world import make_world, sampled_study

from app.home import path
from app.home.path import Step
from app.text.languages import COOKIE
from db.assignment.answering import Decision, find_assignment, submit_decision
from db.store.store import Store
from db.study.judgments import get_or_create_judge, of_person, record_judgment
from db.study.rules import set_rules
from db.tables import Item, Judge, StudyItem
from db.values import LOCAL_ADMIN


def invited(store: Store, name: str = "world", language: str = "") -> int:
    """A study of two items that closes by itself; the validator chose P+ for each."""
    run_id = make_world(store, 6, name=name)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=2, overlap=1, name="Two *items*")
        set_rules(session, study.id, closes_when_done=True)
        if language:
            study.settings = study.settings | {"language": language}
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


def answer_next(store: Store, study_id: int, choice: str, person: str = LOCAL_ADMIN) -> None:
    with store.write() as session:
        known = session.scalar(select(Judge.id).where(of_person(person)))
        judge = known or get_or_create_judge(session, person, kind="person").id
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
    assert "you and the validator chose the same passage in **1 of 2**" in shown
    assert "Two \\*items\\*" in shown  # a name is text, no markup
    (rows,) = [frame.value for frame in page.dataframe if "You chose" in frame.value]
    assert len(rows) == 1 and "P2-" in rows["You chose"][0]
    assert "P+" in rows["The validator chose"][0]


def test_a_study_that_stays_open_is_no_invitation(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 6)
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=2, overlap=1)
        session.commit()
    assert "eserved for you" not in texts(sqlite_store)


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
        assert "Reserved for you: 2" in texts(sqlite_store)
        answer_next(sqlite_store, study_id, "positive")
        assert ways_to_judge(open_page("home")) == ["Go on judging"]
    # another next step: the invitation is one of the links below it
    (linked, button) = ways_to_judge(open_page("home"))
    assert linked == f"study={study_id}" and "udg" not in button


def test_the_invitation_is_to_the_items_in_the_visitor_s_language(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever loaded the demo has no say in it: its items are in several languages."""
    spoken = {invited(sqlite_store, name, code): code for name, code in (("a", "de"), ("b", "es"))}
    newest = max(spoken)
    send_cookies(monkeypatch, {})
    for language, wanted in (("de", "de"), ("es-MX", "es"), ("en-GB", spoken[newest])):
        monkeypatch.setattr(ContextProxy, "locale", language)
        (link,) = [each.proto for each in open_page("home").main if "eserved" in str(each.proto)]
        assert spoken[int(parse_qs(link.query_string)["study"][0])] == wanted


def test_an_annotator_reads_the_invitation_and_the_agreement_in_their_language(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    study_id = invited(sqlite_store)
    cookies = cookies_of(sqlite_store, "annotator")
    send_cookies(monkeypatch, cookies | {COOKIE: "de"})
    shown = texts(sqlite_store)
    assert "Für Sie reserviert: 2" in shown and "eserved" not in shown
    for choice in ("positive", "query_negative"):
        answer_next(sqlite_store, study_id, choice, "a annotator")
    page = open_page("home")
    assert any("denselben Text gewählt: **1 von 2**" in each.value for each in page.markdown)
    (rows,) = [frame.value for frame in page.dataframe]
    assert list(rows)[:2] == ["Ihre Wahl", "Wahl des Prüfmodells"]
