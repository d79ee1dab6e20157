"""The card in a real browser: fast keys, held keys, undo, a killed server, a cut network."""

from itertools import count

import pytest
from browser import PATIENCE, wait_past_dwell, wait_until
from playwright.sync_api import Browser, Page, expect
from restartable import Restartable
from sqlalchemy import select
from study_world import item_of_token, judgments, make_world, sampled_study

from db.store.store import Store
from db.tables import Assignment, Item, Passage

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]


NUMBERS = count()


def make_study(store: Store, items: int) -> int:
    name = f"desk {next(NUMBERS)}"
    run_id = make_world(store, max(items, 4), name=name)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=items, overlap=1, name=name)
        session.commit()
        return study.id


def open_card(browser: Browser, server: Restartable, study_id: int, *, width: int = 1280) -> Page:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{server.url}/judge?study={study_id}")
    expect(page.locator(".card .pick").first).to_be_visible()
    return page


def warns_on_leaving(page: Page) -> bool:
    """Whether the page asks to stay when its tab is closed or reloaded."""
    leaving = "new Event('beforeunload', { cancelable: true })"
    return bool(page.evaluate(f"() => !window.dispatchEvent({leaving})"))


def item_on_screen(store: Store, page: Page) -> int:
    return item_of_token(store, page.locator(".card").get_attribute("data-item"))


def test_keys_decide_the_item_that_is_on_the_screen(
    store: Store, served: Restartable, browser: Browser
) -> None:
    study_id = make_study(store, 8)
    page = open_card(browser, served, study_id)
    told: dict[int, str] = {}
    for key in ("1", "2", "3", "0"):
        wait_past_dwell(page)
        item_id = item_on_screen(store, page)
        shown = page.locator(".passage .text").all_inner_texts()
        told[item_id] = shown[int(key) - 1] if key != "0" else "none"
        page.keyboard.press(key)
        assert item_on_screen(store, page) != item_id
    expect(page.locator(".badge")).to_have_text("saved")
    stored = judgments(store, study_id)
    assert len(stored) == 4
    with store.read() as session:
        for judgment in stored:
            item = session.get_one(Item, judgment.item_id)
            by_label = {c["label"]: c["passage_id"] for c in item.candidates}
            text = "none"
            if judgment.choice != "none":
                text = session.get_one(Passage, by_label[judgment.choice]).text
            assert text == told[judgment.item_id]
            assert judgment.shown_at is not None and judgment.shown_at < judgment.decided_at
    page.close()


def test_a_burst_of_keys_and_a_held_key_never_judge_what_nobody_saw(
    store: Store, served: Restartable, browser: Browser
) -> None:
    study_id = make_study(store, 60)
    page = open_card(browser, served, study_id)
    wait_past_dwell(page)
    for _ in range(50):
        page.keyboard.press("1")
        page.wait_for_timeout(30)
    expect(page.locator(".badge")).to_have_text("saved")
    for judgment in judgments(store, study_id):
        assert judgment.shown_at is not None
        assert (judgment.decided_at - judgment.shown_at).total_seconds() >= 0.29
    wait_past_dwell(page)
    before = len(judgments(store, study_id))
    for _ in range(40):  # a key held down: Chromium repeats it
        page.keyboard.down("2")
        page.wait_for_timeout(50)
    page.keyboard.up("2")
    expect(page.locator(".badge")).to_have_text("saved")
    assert len(judgments(store, study_id)) == before + 1
    page.close()


def test_undo_changes_the_answer_and_keeps_the_first(
    store: Store, served: Restartable, browser: Browser
) -> None:
    study_id = make_study(store, 4)
    page = open_card(browser, served, study_id)
    wait_past_dwell(page)
    item_id = item_on_screen(store, page)
    page.keyboard.press("1")
    wait_past_dwell(page)
    other = item_on_screen(store, page)
    page.keyboard.press("z")
    assert item_on_screen(store, page) == item_id
    wait_past_dwell(page)
    page.keyboard.press("3")
    assert item_on_screen(store, page) == other
    wait_until(lambda: len(judgments(store, study_id)) == 2)
    first, second = judgments(store, study_id)
    assert (first.item_id, second.item_id, second.replaces_id) == (item_id, item_id, first.id)
    assert second.choice == second.order_shown[2]
    page.close()


def test_note_flag_and_skip_reach_the_store_and_typing_judges_nothing(
    store: Store, served: Restartable, browser: Browser
) -> None:
    study_id = make_study(store, 4)
    page = open_card(browser, served, study_id)
    wait_past_dwell(page)
    page.keyboard.press("n")
    page.keyboard.type("1 or 2? <b>unsure</b>")
    assert judgments(store, study_id) == []
    page.keyboard.press("Escape")
    page.keyboard.press("f")
    page.keyboard.press("4")  # the reason, not a passage
    page.keyboard.press("2")
    wait_past_dwell(page)
    skipped = item_on_screen(store, page)
    page.keyboard.press("s")
    page.keyboard.press("1")
    wait_until(lambda: len(judgments(store, study_id)) == 1)
    (judgment,) = judgments(store, study_id)
    assert (judgment.note, judgment.flagged) == ("1 or 2? <b>unsure</b>", True)
    assert judgment.reason == "bad_text"

    def is_skipped() -> bool:
        with store.read() as session:
            query = select(Assignment).where(Assignment.item_id == skipped)
            found = session.scalars(query).one()
            return (found.state, found.reason) == ("skipped", "unclear")

    wait_until(is_skipped)
    page.close()


def test_the_mouse_does_everything_on_a_narrow_screen_and_every_button_has_a_name(
    store: Store, served: Restartable, browser: Browser
) -> None:
    study_id = make_study(store, 5)
    page = open_card(browser, served, study_id, width=800)

    def click(name: str) -> int:
        wait_past_dwell(page)
        item_id = item_on_screen(store, page)
        page.locator(".card").get_by_role("button", name=name, exact=True).click()
        return item_id

    click("Help")
    expect(page.locator(".help")).to_contain_text("none of them")
    click("Shared words")
    expect(page.locator(".question + .passages mark").first).to_be_visible()
    click("Differences")
    expect(page.locator(".passages mark").first).to_be_visible()
    click("Note")
    page.get_by_label("Note for the curator").fill("by mouse")
    click("Flag")
    click("a text is damaged or unreadable")
    first = click("Passage 2 is the most relevant")
    second = click("None of them")
    click("Undo")
    expect(page.locator(".banner")).to_contain_text("You answered: none of them")
    assert item_on_screen(store, page) == second
    click("Passage 1 is the most relevant")
    click("Skip")
    click("no passage is right")
    expect(page.locator(".badge")).to_have_text("saved")
    wait_until(lambda: len(judgments(store, study_id)) == 3)
    told = [
        (one.item_id, one.order_shown.index(one.choice))
        for one in judgments(store, study_id)
        if one.choice != "none"
    ]
    assert told == [(first, 1), (second, 0)]
    assert (judgments(store, study_id)[0].note, judgments(store, study_id)[0].flagged) == (
        "by mouse",
        True,
    )
    main = page.get_by_test_id("stMain")
    assert main.evaluate("node => node.scrollWidth <= node.clientWidth")
    page.close()


@pytest.mark.slow
def test_what_was_decided_while_the_server_was_dead_is_stored_when_it_is_back(
    store: Store, served: Restartable, browser: Browser
) -> None:
    study_id = make_study(store, 10)
    page = open_card(browser, served, study_id)
    wait_past_dwell(page)
    served.kill()
    decided = []
    for key in ("1", "2", "3"):
        wait_past_dwell(page)
        decided.append(item_on_screen(store, page))
        page.keyboard.press(key)
    expect(page.locator(".badge")).to_have_text("3 unsent")
    assert judgments(store, study_id) == []
    served.start()
    wait_until(lambda: len(judgments(store, study_id)) == 3)
    assert [judgment.item_id for judgment in judgments(store, study_id)] == decided
    page.close()


def test_what_was_unsent_survives_a_reload(
    store: Store, served: Restartable, browser: Browser
) -> None:
    study_id = make_study(store, 10)
    page = open_card(browser, served, study_id)
    wait_past_dwell(page)
    served.kill()
    decided = item_on_screen(store, page)
    page.keyboard.press("2")
    expect(page.locator(".badge")).to_have_text("1 unsent")
    assert warns_on_leaving(page)
    page.on("dialog", lambda dialog: dialog.accept())
    served.start()
    page.goto(f"{served.url}/judge?study={study_id}")
    wait_until(lambda: len(judgments(store, study_id)) == 1)
    assert judgments(store, study_id)[0].item_id == decided
    expect(page.locator(".badge")).to_have_text("saved")
    assert not warns_on_leaving(page)
    page.close()


def test_passages_are_text_in_the_card_too(
    store: Store, served: Restartable, browser: Browser
) -> None:
    study_id = make_study(store, 4)
    nasty = "<script>window.broken = 1</script> $\\LaTeX$ **bold** שלום 🦉 " + "long " * 10_000
    with store.write() as session:
        for passage in session.scalars(select(Passage)):
            passage.text = nasty
        session.commit()
    page = open_card(browser, served, study_id)
    assert page.locator(".passage .text").first.evaluate("node => node.textContent") == nasty
    page.keyboard.press("h")
    assert page.locator(".passage .text").first.evaluate("node => node.textContent") == nasty
    assert page.evaluate("window.broken") is None
    page.close()
