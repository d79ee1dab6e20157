"""What a curator does about a study's judges, in browsers: give items to somebody else, pause, let
in again, ask for more judgments; each is felt at the judge's card and noted in the audit log.
"""

from collections import Counter

import pytest
from browser import PATIENCE, wait_past_dwell, wait_until
from page_hands import choose, choose_doing, fill, press, select_person, sign_in, unfold
from playwright.sync_api import Browser, Page, expect
from restartable import Restartable
from sqlalchemy import select
from study_world import item_of_token, judgments, make_world, sampled_study

from db.people.accounts import add_account
from db.store.store import Store
from db.tables import Assignment, Event, Judge

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]
PASSWORD = "correct horse battery"
ITEMS = 4  # fewer than are leased ahead: the first to come holds them all


def make_study(store: Store) -> int:
    run_id = make_world(store, ITEMS)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=ITEMS, overlap=1)
        for name, role in (("cora", "curator"), ("ada", "annotator"), ("ben", "annotator")):
            add_account(session, name, PASSWORD, role=role, actor="test")
        session.commit()
        return study.id


def come(browser: Browser, server: Restartable, name: str, path: str) -> Page:
    """Sign in in a browser of one's own and open the page."""
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE)
    sign_in(page, server.url, name, PASSWORD)
    page.goto(f"{server.url}/{path}")
    return page


def judge_one(store: Store, page: Page) -> int:
    """Answer the item on the card; which it was."""
    wait_past_dwell(page)
    item_id = item_of_token(store, page.locator(".card").get_attribute("data-item"))
    page.keyboard.press("1")
    return item_id


def held(store: Store, study_id: int) -> dict[str, int]:
    """How many items each judge holds."""
    with store.read() as session:
        query = select(Judge.name).join(Assignment, Assignment.judge_id == Judge.id)
        query = query.where(Assignment.study_id == study_id, Assignment.state == "leased")
        return dict(Counter(session.scalars(query)))


def judge_all(store: Store, page: Page, count: int) -> None:
    page.reload()
    expect(page.locator(".card .pick").first).to_be_visible()
    for _ in range(count):
        judge_one(store, page)
    expect(page.locator(".card .nothing")).to_contain_text("Thank you")
    expect(page.locator(".badge")).to_have_text("saved")


@pytest.mark.long
def test_a_curator_gives_items_away_pauses_lets_in_and_asks_for_more(
    store: Store, served: Restartable, browser: Browser
) -> None:
    study_id = make_study(store)
    ada = come(browser, served, "ada", f"judge?study={study_id}")
    expect(ada.locator(".card .pick").first).to_be_visible()
    ben = come(browser, served, "ben", f"judge?study={study_id}")
    expect(ben.locator(".card .nothing")).to_contain_text("No items are left")
    assert held(store, study_id) == {"ada": ITEMS}

    cora = come(browser, served, "cora", f"studies?study={study_id}")
    select_person(cora, 0)  # ada
    choose_doing(cora, "Reassign items")
    choose(cora, "studies.receiver", "ben")
    press(cora, "studies.do")
    expect(cora.get_by_text(f"{ITEMS} items moved to the other judge")).to_be_visible()
    assert held(store, study_id) == {"ben": ITEMS}
    ben.reload()
    first = judge_one(store, ben)
    wait_until(lambda: [one.item_id for one in judgments(store, study_id)] == [first])

    select_person(cora, 1)  # ben
    choose_doing(cora, "Pause")
    fill(cora, "studies.reason", "on leave")
    press(cora, "studies.do")
    expect(cora.get_by_text("1 judge is paused in this study")).to_be_visible()
    assert held(store, study_id) == {}
    ben.reload()
    expect(ben.locator(".card .nothing")).to_contain_text("You are paused in this study: on leave")

    select_person(cora, 1)
    choose_doing(cora, "Let continue")
    press(cora, "studies.do")
    expect(cora.get_by_text("1 judge may continue")).to_be_visible()
    judge_all(store, ben, ITEMS - 1)

    unfold(cora, "Guidelines (version 1) and overlap")
    fill(cora, "studies.more_overlap", "2")
    press(cora, "studies.extend")
    expect(cora.get_by_text("Every item now gets 2 judgments by people")).to_be_visible()
    judge_all(store, ada, ITEMS)

    with store.read() as session:
        names = dict(session.execute(select(Judge.id, Judge.name)).all())
        rows = session.scalars(select(Assignment).where(Assignment.study_id == study_id)).all()
        done = Counter((row.item_id, names[row.judge_id]) for row in rows if row.state == "done")
        audit = session.scalars(select(Event).where(Event.name.like("study.%"))).all()
        actions = [(row.actor, row.name, row.subject) for row in audit]
    made = Counter((one.item_id, names[one.judge_id]) for one in judgments(store, study_id))
    assert done == made and set(made.values()) == {1} and len(made) == 2 * ITEMS
    assert actions == [
        ("cora", f"study.{action}", f"study {study_id}")
        for action in ("reassign", "pause_judge", "let_in_judge", "overlap")
    ]
