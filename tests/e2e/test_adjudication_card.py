"""Adjudication by keys in a real browser: blind, the next item by itself, over a killed server."""

import pytest
from browser import PATIENCE, wait_past_dwell, wait_until
from leases import next_item
from playwright.sync_api import Browser, Page, expect
from restartable import Restartable
from sqlalchemy import select
from study_world import make_world, sampled_study

from db.assignment.answering import Decision, submit_decision
from db.store.store import Store
from db.study.judgments import get_or_create_judge
from db.tables import AdjudicationView, Judge, Judgment

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]
ITEMS = 6


@pytest.fixture(scope="module")
def study_id(store: Store) -> int:
    """A study on whose every item two people differ."""
    run_id = make_world(store, ITEMS, name="disputed")
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=ITEMS, overlap=2, name="disputed")
        for name, position in (("ann", 0), ("ben", None)):
            judge = get_or_create_judge(session, name, kind="person").id
            while shown := next_item(session, study.id, judge):
                decision = Decision(f"{name}{shown.item_id}", shown.item_id, position, note="so so")
                submit_decision(session, study.id, judge, decision)
        session.commit()
        return study.id


def decisions(store: Store) -> dict[str, Judgment]:
    """The decisions that stand, by the token of their item."""
    with store.read() as session:
        rows = session.execute(
            select(AdjudicationView.token, Judgment)
            .join(Judgment, Judgment.item_id == AdjudicationView.item_id)
            .join(Judge, Judge.id == Judgment.judge_id)
            .where(Judge.kind == "adjudicator", Judgment.is_current)
        )
        return dict(rows.all())


def open_card(page: Page, served: Restartable, study_id: int) -> None:
    page.goto(f"{served.url}/adjudicate?study={study_id}")
    expect(page.locator(".card .pick").first).to_be_visible()


def test_disputed_items_are_decided_by_keys_and_nothing_is_lost_to_a_killed_server(
    store: Store, served: Restartable, browser: Browser, study_id: int
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    open_card(page, served, study_id)
    card = page.locator(".card")
    expect(page.locator(".votes").filter(has_text="chosen by 1")).to_have_count(2)
    expect(page.locator(".remark")).to_have_count(2)
    for name in ("ann", "ben"):
        assert name not in page.locator(".below").inner_text()
    expected: dict[str, str] = {}

    def press(key: str) -> None:
        wait_past_dwell(page)
        token = card.get_attribute("data-item") or ""
        assert token not in expected
        shown = page.locator(".passage .text").all_inner_texts()
        expected[token] = shown[int(key) - 1] if key in "123456789" else key
        page.keyboard.press(key)
        expect(card).not_to_have_attribute("data-item", token)

    press("1")
    press("0")
    served.kill()
    press("2")
    press("v")
    served.start()
    expect(page.locator(".badge")).to_have_text("saved", timeout=60_000)
    wait_until(lambda: len(decisions(store)) == 4)
    # set aside, then undo of the last decision
    wait_past_dwell(page)
    aside = card.get_attribute("data-item") or ""
    page.keyboard.press("s")
    expect(card).not_to_have_attribute("data-item", aside)
    page.keyboard.press("z")
    wait_past_dwell(page)
    changed = card.get_attribute("data-item") or ""
    assert expected[changed] == "v"
    page.keyboard.press("a")
    expected[changed] = "a"
    press("3")
    expect(page.locator(".nothing")).to_contain_text("set aside")
    # another tab, before which the last item stands, and a reload: what was set aside comes again
    page.reload()
    expect(card).to_have_attribute("data-item", aside)
    page.keyboard.press("w")
    expect(page.locator(".votes.role")).to_have_count(len(page.locator(".passage").all()))
    expect(page.locator(".votes").filter(has_text="ann")).to_have_count(1)
    press("1")
    expect(page.locator(".nothing")).to_contain_text("No items to decide")
    expect(page.locator(".badge")).to_have_text("saved")
    stored = decisions(store)
    assert set(stored) == set(expected) and len(stored) == ITEMS
    words = {"0": "none", "v": "several", "a": "ambiguous"}
    for token, made in stored.items():
        assert made.shown_at is not None and made.shown_at < made.decided_at
        assert made.detail == {"revealed": token == aside}
        if expected[token] in words:
            assert made.choice == words[expected[token]]
        else:
            assert made.choice in made.order_shown
    page.close()


def test_a_second_tab_cannot_decide_what_the_first_has_decided(
    store: Store, served: Restartable, browser: Browser
) -> None:
    run_id = make_world(store, 4, name="tabs")
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=1, overlap=2, name="tabs")
        for name, position in (("ann", 0), ("ben", None)):
            judge = get_or_create_judge(session, name, kind="person").id
            shown = next_item(session, study.id, judge)
            assert shown is not None
            submit_decision(session, study.id, judge, Decision(f"t{name}", shown.item_id, position))
        session.commit()
        study_id = study.id
    context = browser.new_context(viewport={"width": 800, "height": 900})
    context.set_default_timeout(PATIENCE)
    one, other = context.new_page(), context.new_page()
    for page in (one, other):
        open_card(page, served, study_id)
        wait_past_dwell(page)
    one.keyboard.press("1")
    expect(one.locator(".badge")).to_have_text("saved")
    other.keyboard.press("2")
    expect(other.locator(".problem")).to_contain_text("decided meanwhile")
    with store.read() as session:
        query = (
            select(Judgment)
            .join(Judge)
            .where(Judge.kind == "adjudicator", Judgment.study_id == study_id)
        )
        (stands,) = session.scalars(query)
        assert stands.choice == stands.order_shown[0]
    context.close()
