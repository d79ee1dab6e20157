"""The Review page: queues by role, many at once with a confirmation, the page without the card."""

import re

import pytest
from app_pages import open_page, sign_in, words
from records_world import group_ids, make_run
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from study_world import sampled_study

from db.review.reviews import count_reviews, edit_group
from db.store.store import Store
from db.tables import Job, Review, Run

VERDICT = re.compile(r'\\"(kept|dropped)\\"')  # a word of the card's JSON


def sent(page: AppTest) -> str:
    """Everything that went to the browser."""
    return " ".join(str(element.proto) for element in page.main)


def keys(page: AppTest, start: str) -> list[str]:
    return [each.key for each in page.button if (each.key or "").startswith(start)]


def test_an_annotator_reviews_blind_until_a_curator_allows_verdicts(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_run(sqlite_store, kept=2, dropped=2, unwritten=2)
    sign_in(sqlite_store, monkeypatch, "annotator")
    page = open_page("review")
    assert "not reviewed" in page.selectbox(key="review.queue_blind").options
    told = sent(page)
    assert "offline:embedding" not in told and "validation" not in told
    assert not VERDICT.search(told)
    assert not keys(page, "review.many") and f"review.verdicts_{run_id}" not in told
    page.toggle(key="review.plain").set_value(True).run()
    assert "4 in this queue" in words(page)
    assert "dropped" not in sent(page) and "chose" not in sent(page)
    page.button(key=keys(page, "review.approve-")[0]).click().run()
    assert "is approved" in page.success[0].value
    with sqlite_store.write() as session:
        session.get_one(Run, run_id).verdicts_shown = True
        session.commit()
    page = open_page("review")
    assert "dropped, not reviewed" in page.selectbox(key="review.queue_all").options
    assert "offline:embedding" in sent(page) and VERDICT.search(sent(page))


def test_a_curator_sees_verdicts_and_lets_annotators(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_id = make_run(sqlite_store)
    sign_in(sqlite_store, monkeypatch, "curator")
    page = open_page("review")
    assert "offline:embedding chose" in sent(page)
    page.toggle(key=f"review.verdicts_{run_id}").set_value(True).run()
    assert not page.exception
    with sqlite_store.read() as session:
        assert session.get_one(Run, run_id).verdicts_shown


def test_many_are_reviewed_after_a_confirmation_that_names_the_number(sqlite_store: Store) -> None:
    run_id = make_run(sqlite_store, kept=2, dropped=3, unwritten=1)
    page = open_page("review")
    page.selectbox(key="review.queue_all").select("dropped, not reviewed").run()
    assert page.button(key="review.many_reject").disabled
    page.text_input(key="review.many_reason").set_value("all were dropped").run()
    page.button(key="review.many_reject").click().run()
    assert "Reject 4 groups of run" in words(page)
    with sqlite_store.read() as session:
        assert session.scalars(select(Review)).all() == []
    page.button(key="review.many_yes").click().run()
    assert not page.exception
    with sqlite_store.read() as session:
        assert count_reviews(session, run_id) == {"reject": 4}
        reasons = set(session.scalars(select(Review.reason)))
    assert reasons == {"all were dropped"}


def test_edits_wait_for_the_validator_until_it_is_asked(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    from app.jobs import supervisors

    run_id = make_run(sqlite_store)
    group_id = group_ids(sqlite_store, run_id)[0]
    with sqlite_store.write() as session:
        edit_group(session, group_id, {"query_negative": "who sold it"}, reviewed_by="ann")
        session.commit()
    monkeypatch.setattr(supervisors, "ensure_supervisor", lambda store: None)  # starts a process
    page = open_page("review")
    page.selectbox(key="review.queue_all").select("edited, not approved").run()
    assert "not yet validated again" in sent(page)
    page.button(key="review.revalidate").click().run()
    with sqlite_store.read() as session:
        job = session.scalars(select(Job)).one()
    assert (job.kind, job.config) == ("judge", {"run_id": run_id})


def test_the_plain_page_edits_puts_off_and_tells_what_the_rules_say(sqlite_store: Store) -> None:
    run_id = make_run(sqlite_store, kept=2, dropped=0, unwritten=0)
    one, two = group_ids(sqlite_store, run_id)
    page = open_page("review")
    page.toggle(key="review.plain").set_value(True).run()
    page.button(key=f"review.later-{one}").click().run()
    assert keys(page, "review.approve-") == [f"review.approve-{two}"]
    page.text_area(key=f"review.query_negative-{two}").set_value("who wrote book 1")
    save = next(each for each in page.button if each.label == "Save edit")
    save.click().run()
    assert "refuse the edit" in page.error[0].value
    page.text_area(key=f"review.query_negative-{two}").set_value("who sold book 1")
    next(each for each in page.button if each.label == "Save edit").click().run()
    with sqlite_store.read() as session:
        review = session.scalars(select(Review)).one()
    assert (review.group_id, review.before) == (two, {"query_negative": "who printed book 1"})


def test_the_page_counts_the_groups_of_the_run_that_are_hidden(sqlite_store: Store) -> None:
    run_id = make_run(sqlite_store, kept=3, dropped=0, unwritten=0)
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=2, overlap=1)
        session.commit()
    assert "2 groups of the run hidden: you may judge them" in words(open_page("review"))
