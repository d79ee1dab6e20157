"""The tour in a browser: five steps by mouse, skipped by key, and never there again."""

import pytest
from browser import settled
from full_store import fill
from page_hands import place
from playwright.sync_api import Browser, Page, expect
from restartable import Restartable

from app.kit.frame.tour import ENDED
from db.store.store import Store

pytestmark = [pytest.mark.browser, pytest.mark.long]
SHIFTS = (
    "window.shift = 0; new PerformanceObserver((list) => {"
    " for (const each of list.getEntries()) if (!each.hadRecentInput) window.shift += each.value;"
    "}).observe({ type: 'layout-shift', buffered: true });"
)


def first_look(browser: Browser, url: str, width: int) -> Page:
    """Home in a browser with an empty profile."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.add_init_script(SHIFTS)
    page.goto(url)
    settled(page)
    return page


def card(page: Page, title: str) -> None:
    """Until the step of this title is shown and everything is in its place."""
    heading = place(page, "frame-tour").get_by_role("heading")
    expect(heading).to_have_text(title)
    settled(page)
    page.wait_for_timeout(1_000)


def test_five_steps_are_walked_once_and_move_nothing(
    store: Store, served: Restartable, browser: Browser
) -> None:
    fill(store)
    page = first_look(browser, served.url, 1280)
    card(page, "Tour 1 of 5 · Home")
    for number, name in enumerate(("Data", "Groups", "People", "Models"), 2):
        place(page, "frame-tour").get_by_role("link", name=f"Go on to {name}").click()
        card(page, f"Tour {number} of 5 · {name}")
        assert page.evaluate("window.shift") < 0.1, name
    page.reload()
    card(page, "Tour 5 of 5 · Models")
    page.get_by_role("button", name="Finish the tour").click()
    expect(place(page, "frame-tour")).to_have_text(ENDED)
    served.kill()
    served.start()
    for other in (page, browser.new_page()):  # the second one with an empty profile
        for name in ("", "groups"):
            other.goto(f"{served.url}/{name}")
            settled(other)
            expect(other.get_by_role("heading", level=1)).to_be_visible()
            expect(place(other, "frame-tour")).to_have_count(0)


@pytest.mark.parametrize(("width", "in_menu"), [(1280, True), (800, False)])
def test_it_is_taken_again_and_skipped_by_keys_and_covers_nothing(
    store: Store, served: Restartable, browser: Browser, width: int, in_menu: bool
) -> None:
    page = first_look(browser, served.url, width)
    again = page.get_by_role("button", name="Take the tour again")
    if not in_menu:
        page.get_by_test_id("stExpandSidebarButton").click()
    again.press("Enter")
    if not in_menu:
        card(page, "Tour 1 of 5 · Home")
        page.get_by_test_id("stSidebarCollapseButton").get_by_role("button").click()
    card(page, "Tour 1 of 5 · Home")
    page.reload()
    card(page, "Tour 1 of 5 · Home")
    own, content = (
        place(page, "frame-tour").bounding_box(),
        page.get_by_role("heading", level=1).bounding_box(),
    )
    assert own is not None and content is not None
    if in_menu:
        assert own["x"] + own["width"] <= content["x"]
    else:
        assert own["y"] + own["height"] <= content["y"]
    assert page.evaluate("window.shift") < 0.1
    place(page, "frame-tour").get_by_role("link").focus()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Skip the tour")).to_be_focused()
    page.keyboard.press("Enter")
    expect(place(page, "frame-tour")).to_have_text(ENDED)
    page.wait_for_timeout(1_000)
    assert page.evaluate("window.shift") < 0.1
