"""A person whom Prolific sends, in a browser: link, guidelines, cards by keys, completion code."""

import re
from pathlib import Path

import pytest
from asked_study import QUERY_OK, ROLE, make_asked_study, record
from browser import PATIENCE, settled, wait_past_dwell
from playwright.sync_api import Browser, BrowserContext, Page, expect
from restartable import Restartable
from sqlalchemy import func, select

from db.people.accounts import add_account
from db.people.recruiting import open_recruiting
from db.store.store import Store
from db.tables import Account, Judgment, Study

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]
PLATFORM = "https://app.prolific.com/submissions/complete"
RECORDS, PER_RECORD = 3, 5


def link_of(store: Store, folder: Path) -> tuple[int, str]:
    """A study of three cards of five questions, and the path by which its people come."""
    rows = [record(number) for number in range(RECORDS)]
    study_id = make_asked_study(store, folder, rows, [QUERY_OK, ROLE], overlap=1)
    with store.write() as session:
        add_account(session, "root", "correct horse battery", role="admin", actor="test")
        token = open_recruiting(
            session,
            study_id,
            platform="prolific",
            complete="DONE1",
            screened_out="OUT1",
            people=5,
            quota=None,
            actor="root",
        )
        session.commit()
    return study_id, f"/recruited/{study_id}/{token}?PROLIFIC_PID=5f00000000000000000001"


def come(context: BrowserContext, address: str) -> Page:
    """By the link of one submission, and its button."""
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.goto(f"{address}&SESSION_ID=s111")
    page.get_by_role("button", name="Begin").click()
    settled(page)
    return page


def answer(store: Store, page: Page, *, until: int) -> None:
    """Answer by keys until the store has that many answers; a key that came too soon is pressed
    again for what is on the screen then."""
    card = page.locator(".card")
    while answers(store) < until:
        before = card.get_attribute("data-item")
        if not before:  # the last answer is on its way
            page.wait_for_timeout(100)
            continue
        wait_past_dwell(page)
        page.keyboard.press("1")
        expect(page.locator(".badge")).to_have_text("saved")


def answers(store: Store) -> int:
    with store.read() as session:
        return session.scalar(select(func.count(Judgment.id))) or 0


@pytest.mark.slow
def test_a_person_of_prolific_judges_in_two_tabs_and_two_visits_and_earns_the_code(
    store: Store, served: Restartable, browser: Browser, tmp_path: Path
) -> None:
    study_id, path = link_of(store, tmp_path)
    home = browser.new_context(viewport={"width": 1280, "height": 900})
    first = come(home, served.url + path)
    assert f"/judge?study={study_id}" in first.url
    first.get_by_role("button", name="I have read").click()
    expect(first.locator(".card")).to_contain_text("Is it a real query?")
    answer(store, first, until=PER_RECORD)

    second = come(home, served.url + path)  # another tab: the same person, the next card
    expect(second.locator(".card")).to_contain_text("Is it a real query?")
    expect(second.get_by_role("button", name="I have read")).to_have_count(0)
    answer(store, second, until=PER_RECORD + 2)
    answer(store, first, until=PER_RECORD * 2)  # what the other tab answered is not asked again
    home.close()

    later = browser.new_context(viewport={"width": 1280, "height": 900})  # another browser
    page = come(later, served.url + path)
    answer(store, page, until=PER_RECORD * RECORDS)
    nothing, voice = page.locator(".nothing"), page.locator(".voice")
    expect(nothing).to_be_visible()
    expect(voice).to_have_text(nothing.text_content() or "none")  # it is hidden while it is styled
    assert (
        voice.evaluate("one => getComputedStyle(one).clipPath") != "none"
    )  # read, not shown twice
    later.route(re.compile(re.escape(PLATFORM)), lambda route: route.fulfill(body="thank you"))
    page.get_by_role("link", name="Finish").evaluate("link => link.removeAttribute('target')")
    page.get_by_role("link", name="Finish").click()
    page.wait_for_url(f"{PLATFORM}?cc=DONE1")
    later.close()
    with store.read() as session:
        assert session.scalar(select(func.count(Account.id))) == 2  # root, and one person
        items = session.scalars(select(Judgment.item_id)).all()
        assert len(items) == len(set(items)) == PER_RECORD * RECORDS
        assert session.get_one(Study, study_id).status == "open"
