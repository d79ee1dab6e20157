"""The workbench in a real browser: keys, a rescue, a refused edit, a killed server, axe-core."""

import os
import re
import signal
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from browser import PATIENCE, wait_past_dwell, wait_until
from curation_runs import add_dataset, run_curation
from exporting import export, rows_of
from openai_server import Server
from playwright.sync_api import Browser, Page, expect
from records_world import make_run
from restartable import Restartable
from sqlalchemy import select

from app.operations.groups import PAGE
from db.run.group_detail import get_group
from db.store.store import Store
from db.tables import Group, Review

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]

NUMBERS = count()
BY_HAND = {
    "Instruction I+": "Find the author of this book.",
    "Instruction I-": "Find the year of this book.",
    "Query Q-": "who printed this book",
    "Passage P1-": "It came out in the year 1909.",
    "Passage P2-": "It was printed by a printer in Leeds.",
}
NASTY = "<script>document.title='x'</script> **bold** $\\LaTeX$ שלום 🙂"


def new_run(store: Store, kept: int) -> int:
    name = f"books {next(NUMBERS)}"
    return make_run(store, kept=kept, dropped=0, unwritten=0, name=name, offline=False)


def open_card(browser: Browser, server: Restartable, run_id: int, **wanted: object) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{server.url}/groups?{urlencode({'run': run_id} | wanted)}")
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


def reject(page: Page) -> int:
    """Reject the group with a reason; which group that was."""
    group_id = press(page, "r")
    page.keyboard.type("the query is vague")
    page.keyboard.press("Enter")
    return group_id


def test_keys_review_the_group_on_the_screen_and_undo_takes_it_back(
    store: Store, served: Restartable, browser: Browser
) -> None:
    run_id = new_run(store, 6)
    page = open_card(browser, served, run_id)
    expect(page.get_by_text("0 of 6 groups reviewed")).to_be_visible()
    approved = press(page, "a")
    expect(page.locator(".card")).not_to_have_attribute("data-group", str(approved))
    expect(page.get_by_text("1 of 6 groups reviewed · 1 approved")).to_be_visible()
    rejected = reject(page)
    passed = press(page, "j")
    assert passed not in (approved, rejected)
    expect(page.locator(".card")).not_to_have_attribute("data-group", str(passed))
    page.keyboard.press("k")
    expect(page.locator(".card")).to_have_attribute("data-group", str(passed))
    page.keyboard.press("u")
    expect(page.locator(".card")).to_have_attribute("data-group", str(rejected))
    press(page, "a")
    expect(page.locator(".badge").first).to_have_text("saved")
    wait_until(lambda: len(reviews(store, run_id)) == 3)
    told = [
        (row.group_id, row.action, row.is_current, row.undone_at is not None)
        for row in reviews(store, run_id)
    ]
    assert told == [
        (approved, "approve", True, False),
        (rejected, "reject", False, True),
        (rejected, "approve", True, False),
    ]
    page.close()


def test_after_the_last_group_of_the_list_the_next_one_comes(
    store: Store, served: Restartable, browser: Browser
) -> None:
    """Of all groups it is on the next page; of those to review, the list has moved up."""
    run_id = new_run(store, PAGE + 3)
    with store.read() as session:
        ids = session.scalars(select(Group.id).where(Group.run_id == run_id).order_by(Group.id))
        last, following, third = ids.all()[PAGE - 1 : PAGE + 2]
    page = open_card(browser, served, run_id, group=last)
    assert press(page, "a") == last
    expect(page.locator(".card")).to_have_attribute("data-group", str(following))
    page.close()
    page = open_card(browser, served, run_id, group=following, verdict="kept", review="none")
    assert press(page, "a") == following
    expect(page.locator(".card")).to_have_attribute("data-group", str(third))
    page.close()


def test_a_selection_holds_over_the_pages_of_the_list(
    store: Store, served: Restartable, browser: Browser
) -> None:
    run_id = new_run(store, PAGE + 2)
    page = open_card(browser, served, run_id)
    boxes = page.locator(".rows input[type=checkbox]")
    first = page.locator(".rows button.row").first.get_attribute("data-row")
    boxes.first.check()
    page.get_by_role("button", name="Next page of groups").click()
    expect(boxes).to_have_count(2)
    last = page.locator(".rows button.row").last.get_attribute("data-row")
    boxes.last.check()
    expect(page.locator(".bulk strong")).to_have_text("2 selected")
    # the list is drawn anew: what was typed and asked stays
    page.get_by_role("button", name="Approve …").click()
    page.get_by_label("Reason to reject").fill("another language")
    page.get_by_role("button", name="Previous page of groups").click()
    expect(boxes).to_have_count(PAGE)
    expect(page.get_by_label("Reason to reject")).to_have_value("another language")
    expect(page.locator(".preview")).to_contain_text("Approve 2: now 2 not reviewed.")
    page.get_by_role("button", name="Approve 2", exact=True).click()
    wait_until(lambda: len(reviews(store, run_id)) == 2)
    told = {(f"row-{row.group_id}", row.action) for row in reviews(store, run_id)}
    assert told == {(first, "approve"), (last, "approve")}
    page.close()


def test_what_is_undone_and_decided_anew_before_the_server_answers_is_stored(
    store: Store, served: Restartable, browser: Browser
) -> None:
    run_id = new_run(store, 3)
    page = open_card(browser, served, run_id)
    rejected = reject(page)
    wait_until(lambda: len(reviews(store, run_id)) == 1)
    expect(page.locator(".badge").first).to_have_text("saved")
    page.keyboard.press("k")
    expect(page.locator(".card")).to_have_attribute("data-group", str(rejected))
    page.wait_for_timeout(1500)  # the group's details come anew, with its review
    assert served.process
    os.kill(served.process.pid, signal.SIGSTOP)
    try:
        page.keyboard.press("u")
        press(page, "a")
    finally:
        os.kill(served.process.pid, signal.SIGCONT)
    wait_until(lambda: len(reviews(store, run_id)) == 2)
    rows = [(row.action, row.is_current) for row in reviews(store, run_id)]
    assert rows == [("reject", False), ("approve", True)]
    page.close()


def test_a_dropped_group_is_rescued_with_the_keyboard_and_is_in_the_release(
    store: Store, served: Restartable, browser: Browser, tmp_path: Path
) -> None:
    name = f"books {next(NUMBERS)}"
    run_id = make_run(store, kept=2, dropped=2, unwritten=1, name=name, offline=False)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    # an address of before, with a filter
    page.goto(f"{served.url}/review?run={run_id}&verdict=dropped&review=none")
    expect(page.locator(".card .triplet")).to_have_count(3)
    expect(page).to_have_url(re.compile(r"/groups\?"))
    expect(page.locator(".rows li")).to_have_count(3)
    rescued = press(page, "a")
    press(page, "j")
    lacking = press(page, "a")
    expect(page.locator(".voice")).to_contain_text("lacks I+, Q-, I-, P1-, P2-")
    page.keyboard.press("e")
    for label, text in BY_HAND.items():
        page.get_by_role("textbox", name=label, exact=True).fill(text)
    page.keyboard.press("Control+Enter")
    wait_until(lambda: [row.action for row in reviews(store, run_id)] == ["approve", "edit"])
    expect(page.locator(".label-badge.edited").first).to_be_visible()
    expect(page.locator(".card p.banner")).to_have_count(0)
    assert press(page, "a") == lacking
    wait_until(lambda: len(reviews(store, run_id)) == 3)
    page.close()
    made = export(store, tmp_path / "out", dataset=name, format="jsonl")
    assert (made["groups"], made["rescued"]) == (4, 2)
    (rows,) = rows_of(tmp_path / "out").values()
    assert {rescued, lacking} <= {row["group_id"] for row in rows if row["verdict"] == "dropped"}


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
    expect(page.locator(".badge").first).to_have_text("saved")
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
    page.goto(f"{served.url}/groups?run={run_id}&group={edited}")
    expect(page.locator(".card")).to_have_attribute("data-group", str(edited))
    expect(page.get_by_text(NASTY)).to_be_visible()
    assert page.title() != "x"
    page.close()


@pytest.mark.long
def test_a_text_of_a_list_is_taken_out_and_one_is_added(
    store: Store, served: Restartable, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(store, name="small", pairs=6)
    with Server(schema="taken") as answers:
        monkeypatch.setenv("OPENAI_BASE_URL", answers.url)
        asked: dict[str, Any] = {
            "dataset": "small",
            "provider": "openai",
            "settings": ["model=small"],
        }
        with ThreadPoolExecutor() as aside:  # Playwright holds this thread's event loop
            made = aside.submit(run_curation, store, **asked, recipe="promptriever")
            run_id = made.result()["run_id"]
    with store.read() as session:
        ids = session.scalars(select(Group.id).where(Group.run_id == run_id)).all()
        groups = [get_group(session, each) for each in ids]
    group = next(one for one in groups if "N" in one.texts and len(one.texts) < 6)
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{served.url}/groups?run={run_id}&group={group.id}")
    expect(page.locator(".card .triplet")).to_have_count(1)
    assert group_on_screen(page) == group.id
    expect(page.get_by_text("Add a passage N")).to_be_hidden()
    page.get_by_role("button", name="Edit", exact=True).click()
    page.get_by_label("Add a passage N").fill("Another one, written by hand.")
    page.get_by_role("button", name="Take out Passage N", exact=True).click()
    expect(page.get_by_role("button", name="Put back Passage N", exact=True)).to_be_visible()
    page.get_by_role("button", name="Save edit").click()
    wait_until(lambda: len(reviews(store, run_id)) == 1)
    with store.read() as session:
        now = get_group(session, group.id).texts
    assert sorted(now.values()) == sorted(
        [text for name, text in group.texts.items() if name != "N"]
        + ["Another one, written by hand."]
    )
    page.close()


@pytest.mark.long
def test_what_was_decided_while_the_server_was_down_is_stored_once_it_is_back(
    store: Store, served: Restartable, browser: Browser
) -> None:
    run_id = new_run(store, 5)
    page = open_card(browser, served, run_id)
    served.kill()
    decided = [press(page, "a"), press(page, "a")]
    expect(page.locator(".badge").first).to_have_text("2 unsent")
    served.start()
    wait_until(lambda: len(reviews(store, run_id)) == 2)
    expect(page.locator(".badge").first).to_have_text("saved")
    assert [row.group_id for row in reviews(store, run_id)] == decided
    page.close()
