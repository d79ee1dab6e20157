"""The Train form checks what is typed while it is typed, and takes nothing away from the typist."""

import pytest
from browser import settled
from full_store import fill
from page_hands import place
from playwright.sync_api import Browser, expect
from restartable import Restartable

from db.jobs import jobs
from db.store.store import Store


@pytest.mark.browser
@pytest.mark.long
def test_a_wrong_value_is_told_while_it_is_typed_and_going_on_makes_it_right(
    served: Restartable, store: Store, browser: Browser
) -> None:
    """20 groups, 2 held out, are 3 batches of 8: 2 epochs are 6 steps, 1e1 are 30, 21e1 are 630."""
    fill(store)
    with store.read() as session:
        before = len(jobs.list_jobs(session))
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{served.url}/train")
    settled(page)
    launch = place(page, "train.start").get_by_role("button")
    if not launch.is_visible():
        page.get_by_text("New training", exact=True).click()
    field = place(page, "train.epochs").locator("input")
    expect(page.get_by_text("about 6 steps", exact=False)).to_be_visible()
    field.click()
    field.press("Control+a")
    page.keyboard.type("1e", delay=30)
    wrong = page.get_by_text("epochs='1e': a number is needed", exact=True)
    expect(wrong).to_have_count(2)  # in its place, and above the button
    expect(launch).to_be_disabled()
    expect(page.get_by_text("about 6 steps", exact=False)).to_have_count(0)
    expect(field).to_be_focused()
    page.keyboard.type("1")
    expect(page.get_by_text("about 30 steps", exact=False)).to_be_visible()
    expect(wrong).to_have_count(0)
    expect(launch).to_be_enabled()
    expect(field).to_be_focused()
    field.press("Home")
    page.keyboard.type("2")
    expect(page.get_by_text("about 630 steps", exact=False)).to_be_visible()
    assert field.evaluate("field => field.selectionStart") == 1
    page.keyboard.type("x3", delay=900)  # each is sent while the page is drawn for the one before
    expect(place(page, "train.epochs").locator("input")).to_have_value("2x31e1")
    expect(page.get_by_text("epochs='2x31e1'", exact=False).first).to_be_visible()
    expect(field).to_be_focused()
    assert field.evaluate("field => field.selectionStart") == 3
    with store.read() as session:
        assert len(jobs.list_jobs(session)) == before
    page.close()
