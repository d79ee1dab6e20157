"""The review card in a real browser: keys, a held key, an edit that is refused, a killed server."""

from itertools import count

import pytest
from browser import PATIENCE, wait_past_dwell, wait_until
from playwright.sync_api import Browser, Page, expect
from records_world import make_run
from restartable import Restartable
from sqlalchemy import select

from db.run.group_detail import get_group
from db.store.store import Store
from db.tables import Group, Review

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]

NUMBERS = count()
NASTY = "<script>document.title='x'</script> **bold** $\\LaTeX$ שלום 🙂"


def new_run(store: Store, kept: int) -> int:
    name = f"books {next(NUMBERS)}"
    return make_run(store, kept=kept, dropped=0, unwritten=0, name=name, offline=False)


def open_card(browser: Browser, server: Restartable, run_id: int) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{server.url}/review?run={run_id}")
    expect(page.locator(".card .triplet")).to_have_count(3)
    return page


def group_on_screen(page: Page) -> int:
    return int(page.locator(".card").get_attribute("data-group") or 0)


def reviews(store: Store, run_id: int) -> list[Review]:
    with store.read() as session:
        query = select(Review).join(Group, Group.id == Review.group_id)
        return list(session.scalars(query.where(Group.run_id == run_id).order_by(Review.id)))


def press(page: Page, key: str) -> int:
    """Press a key when the group has stood long enough; which group that was."""
    wait_past_dwell(page)
    group_id = group_on_screen(page)
    page.keyboard.press(key)
    return group_id


def test_keys_review_the_group_on_the_screen_and_undo_says_it_anew(
    store: Store, served: Restartable, browser: Browser
) -> None:
    run_id = new_run(store, 6)
    page = open_card(browser, served, run_id)
    approved = press(page, "a")
    assert group_on_screen(page) != approved
    rejected = press(page, "r")
    page.keyboard.type("the query is vague")
    page.keyboard.press("Enter")
    put_off = press(page, "l")
    assert put_off not in (approved, rejected) and group_on_screen(page) != put_off
    page.keyboard.press("z")
    expect(page.locator(".banner")).to_contain_text("rejected (the query is vague)")
    assert group_on_screen(page) == rejected
    press(page, "a")
    expect(page.locator(".badge")).to_have_text("saved")
    told = [(row.group_id, row.action, row.is_current) for row in reviews(store, run_id)]
    assert told == [
        (approved, "approve", True),
        (rejected, "reject", False),
        (rejected, "approve", True),
    ]
    page.close()


def test_a_held_key_and_a_burst_review_nothing_that_nobody_read(
    store: Store, served: Restartable, browser: Browser
) -> None:
    run_id = new_run(store, 12)
    page = open_card(browser, served, run_id)
    wait_past_dwell(page)
    for _ in range(10):  # a held key: repeats after the first
        page.keyboard.down("a")
    page.keyboard.up("a")
    for _ in range(10):
        page.keyboard.press("a")
    expect(page.locator(".badge")).to_have_text("saved")
    wait_until(lambda: len(reviews(store, run_id)) >= 1)
    stored = reviews(store, run_id)
    # Every review is of a group of its own; how many were read long enough is the clock's.
    assert len({row.group_id for row in stored}) == len(stored) <= 11
    page.close()


def test_an_edit_is_checked_and_what_was_written_is_kept(
    store: Store, served: Restartable, browser: Browser
) -> None:
    run_id = new_run(store, 3)
    page = open_card(browser, served, run_id)
    edited = press(page, "e")
    box = page.get_by_label("Query Q-")
    original = box.input_value()
    box.fill(original.replace("printed", "wrote"))  # what Q+ says: the rules refuse it
    page.keyboard.press("Control+Enter")
    expect(page.locator(".problem")).to_contain_text("refuse the edit")
    page.get_by_role("button", name="edit again").click()
    expect(page.get_by_label("Query Q-")).to_have_value(original.replace("printed", "wrote"))
    assert group_on_screen(page) == edited
    wait_past_dwell(page)
    page.get_by_label("Query Q-").fill(f"{original} {NASTY}")
    page.keyboard.press("Control+Enter")
    wait_until(lambda: len(reviews(store, run_id)) == 1)
    with store.read() as session:
        assert get_group(session, edited).triplets["query_negative"].query == f"{original} {NASTY}"
    assert reviews(store, run_id)[0].before == {"query_negative": original}
    page.goto(f"{served.url}/review?run={run_id}&group={edited}")
    expect(page.locator(".card")).to_have_attribute("data-group", str(edited))
    expect(page.get_by_text(NASTY)).to_be_visible()
    assert page.title() != "x"
    page.close()


@pytest.mark.long
def test_what_was_decided_while_the_server_was_down_is_stored_once_it_is_back(
    store: Store, served: Restartable, browser: Browser
) -> None:
    run_id = new_run(store, 5)
    page = open_card(browser, served, run_id)
    served.kill()
    decided = [press(page, "a"), press(page, "a")]
    expect(page.locator(".badge")).to_have_text("2 unsent")
    served.start()
    wait_until(lambda: len(reviews(store, run_id)) == 2)
    expect(page.locator(".badge")).to_have_text("saved")
    assert [row.group_id for row in reviews(store, run_id)] == decided
    page.close()
