"""The card when things go wrong around it: no network, two tabs, a closed study, a hostile text."""

import hashlib
import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest
from asked_study import QUERY_OK, ROLE, make_asked_study, record
from browser import PATIENCE, wait_past_dwell, wait_until
from playwright.sync_api import Browser, BrowserContext, Page, expect
from restartable import Restartable
from sqlalchemy import select
from study_world import item_of_token, judgments, make_world, sampled_study

from db.store.store import Store
from db.study import studies
from db.tables import Guideline, Judge, StudyItem, utc_now
from db.values import LOCAL_ADMIN

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]
NUMBERS = count()


def make_study(store: Store, items: int, *, guidelines: str = studies.GUIDELINES) -> int:
    name = f"trouble {next(NUMBERS)}"
    run_id = make_world(store, items, name=name)
    with store.write() as session:
        study = sampled_study(
            session, run_id=run_id, items=items, overlap=1, name=name, guidelines=guidelines
        )
        session.commit()
        return study.id


@pytest.fixture
def person(browser: Browser) -> Iterator[BrowserContext]:
    """One person's browser: their tabs share cookies and storage."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


def open_tab(person: BrowserContext, served: Restartable, study_id: int) -> Page:
    page = person.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{served.url}/judge?study={study_id}")
    expect(page.locator(".card .pick").first).to_be_visible()
    return page


def decide(store: Store, page: Page, key: str) -> int:
    """Press the key when the item may be judged; the item."""
    wait_past_dwell(page)
    item_id = item_of_token(store, page.locator(".card").get_attribute("data-item"))
    page.keyboard.press(key)
    return item_id


def test_what_is_decided_without_a_network_is_kept_and_stored_once_when_it_is_back(
    store: Store, served: Restartable, person: BrowserContext
) -> None:
    study_id = make_study(store, 8)
    page = open_tab(person, served, study_id)
    told = [decide(store, page, "1")]
    expect(page.locator(".badge")).to_have_text("saved")
    person.set_offline(True)
    for number, key in enumerate(("2", "3", "0"), start=1):
        told.append(decide(store, page, key))
        expect(page.locator(".badge")).to_have_text(f"{number} unsent")
    assert [judgment.item_id for judgment in judgments(store, study_id)] == told[:1]
    person.set_offline(False)
    expect(page.locator(".badge")).to_have_text("saved")
    told.append(decide(store, page, "1"))
    wait_until(lambda: len(judgments(store, study_id)) >= len(told))
    stored = judgments(store, study_id)
    assert [judgment.item_id for judgment in stored] == told
    assert len(set(told)) == len(told)
    for judgment, position in zip(stored, (0, 1, 2, None, 0), strict=True):
        wanted = "none" if position is None else judgment.order_shown[position]
        assert (judgment.choice, judgment.replaces_id) == (wanted, None)
    with store.read() as session:
        taken = dict(
            session.execute(
                select(StudyItem.item_id, StudyItem.taken).where(StudyItem.study_id == study_id)
            ).all()
        )
    assert all(taken[item_id] == 1 for item_id in told)


def test_grades_given_without_a_network_are_kept_in_their_places_and_one_is_undone(
    store: Store, served: Restartable, person: BrowserContext, tmp_path: Path
) -> None:
    """Two cards of five questions: yes or no about the query, then a grade for each passage."""
    rows = [record(number) for number in range(2)]
    study_id = make_asked_study(store, tmp_path, rows, [QUERY_OK, ROLE], overlap=1)
    page = person.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{served.url}/judge?study={study_id}")
    expect(page.locator(".card")).to_contain_text("Is it a real query?")
    told = {decide(store, page, "1"): "yes"}
    expect(page.locator(".badge")).to_have_text("saved")
    person.set_offline(True)
    for key in ("2", "0", "1"):
        told[decide(store, page, key)] = key
    expect(page.locator(".badge")).to_contain_text("unsent")
    last = next(reversed(told))
    page.keyboard.press("z")
    assert decide(store, page, "0") == last
    told[last] = "0"
    told[decide(store, page, "2")] = "2"
    assert len(told) == 5 and len(judgments(store, study_id)) == 1
    person.set_offline(False)
    told[decide(store, page, "0")] = "no"  # the first question of the next card
    expect(page.locator(".badge")).to_have_text("saved")
    wait_until(lambda: {one.item_id for one in judgments(store, study_id)} == set(told))
    current = [one for one in judgments(store, study_id) if one.is_current]
    assert {one.item_id: one.choice for one in current} == told
    assert len(current) == len(told)


def test_what_waited_in_a_browser_when_the_scope_lost_the_name_is_sent(
    store: Store, served: Restartable, person: BrowserContext
) -> None:
    """Unsent answers of an earlier version lie in the browser under a scope made of the name."""
    study_id = make_study(store, 4)
    page = open_tab(person, served, study_id)
    token = page.locator(".card").get_attribute("data-item")
    with store.read() as session:
        judge = session.scalars(select(Judge).where(Judge.name == LOCAL_ADMIN)).one()
        named = f"{judge.id} {judge.name} {judge.created_at}".encode()
    formerly, event = hashlib.sha256(named).hexdigest()[:16], "0123456789abcdef"
    entry = {"event": event, "kind": "pick", "study": study_id, "token": token, "position": 0}
    entry["decided"] = utc_now().isoformat()
    left = {f"inf-card/{formerly}/out/{event}": json.dumps(entry)}
    page.evaluate("left => Object.assign(localStorage, left)", left)
    page.reload()
    item_id = item_of_token(store, token)
    wait_until(lambda: [one.item_id for one in judgments(store, study_id)] == [item_id])
    expect(page.locator(".badge")).to_have_text("saved")
    waiting = "Object.keys(localStorage).filter((name) => name.startsWith('inf-card/')).length"
    assert page.evaluate(waiting) == 0


def test_of_two_tabs_of_one_judge_the_first_answer_stands_and_nothing_is_judged_twice(
    store: Store, served: Restartable, person: BrowserContext
) -> None:
    study_id = make_study(store, 4)
    first, second = (open_tab(person, served, study_id) for _ in range(2))
    item_id = decide(store, first, "1")
    wait_until(lambda: len(judgments(store, study_id)) == 1)
    assert decide(store, second, "2") == item_id
    expect(second.locator(".card .problems")).to_contain_text("the first answer stands")
    for _ in range(3):
        decide(store, second, "3")
    expect(second.locator(".card .nothing")).to_be_visible()
    wait_until(lambda: len(judgments(store, study_id)) == 4)
    stored = judgments(store, study_id)
    assert len({judgment.item_id for judgment in stored}) == 4
    by_item = {judgment.item_id: judgment for judgment in stored}
    assert by_item[item_id].choice == by_item[item_id].order_shown[0]
    expect(second.locator(".badge")).to_have_text("saved")


def test_a_tab_that_was_open_when_the_study_closed_is_told_and_stores_nothing(
    store: Store, served: Restartable, person: BrowserContext
) -> None:
    study_id = make_study(store, 4)
    page = open_tab(person, served, study_id)
    decide(store, page, "1")
    wait_until(lambda: len(judgments(store, study_id)) == 1)
    with store.write() as session:
        studies.set_status(session, study_id, "closed")
        session.commit()
    decide(store, page, "2")
    expect(page.get_by_text("is closed").first).to_be_visible()
    decided = judgments(store, study_id)
    assert len(decided) == 1


def test_html_in_the_guidelines_is_shown_as_text_and_does_nothing(
    store: Store, served: Restartable, person: BrowserContext
) -> None:
    hostile = (
        "Read **everything**.\n\n<script>window.broken = 1</script>\n\n"
        '<img src="x" onerror="window.broken = 2">\n\n<iframe srcdoc="<p>in a frame</p>"></iframe>'
        "\n\n[click](javascript:window.broken=3)\n\n<style>.card { display: none }</style>"
    )
    study_id = make_study(store, 4, guidelines=hostile)
    page = open_tab(person, served, study_id)
    page.get_by_role("button", name="Guidelines (version 1)").click()
    shown = page.locator('[data-testid="stPopoverBody"]')
    expect(shown.locator("strong", has_text="everything")).to_be_visible()
    expect(shown).to_contain_text("window.broken = 1")
    assert shown.locator("script, img, iframe, style").count() == 0
    assert shown.locator('a[href^="javascript"]').count() == 0
    assert page.evaluate("window.broken") is None
    expect(page.locator(".card .pick").first).to_be_visible()


def test_guidelines_that_changed_are_read_before_the_next_item(
    store: Store, served: Restartable, person: BrowserContext
) -> None:
    study_id = make_study(store, 8)
    page = open_tab(person, served, study_id)
    decide(store, page, "1")
    expect(page.locator(".badge")).to_have_text("saved")
    person.set_offline(True)
    with store.write() as session:
        studies.write_guideline(session, study_id, "Judge **only** what the passage says.")
        session.commit()
    decide(store, page, "2")
    expect(page.locator(".badge")).to_have_text("1 unsent")
    wait_past_dwell(page)
    shown = page.locator(".card").get_attribute("data-item")
    page.keyboard.press("n")
    page.get_by_label("Note for the curator").fill("a note half written")
    page.keyboard.press("Escape")
    person.set_offline(False)
    notice = page.get_by_role("heading", name="New guidelines: version 2")
    expect(notice).to_be_visible()
    expect(page.locator(".card .pick")).to_have_count(0)
    expect(page.locator(".badge")).to_have_text("saved")
    page.keyboard.press("1")  # nothing to answer
    page.get_by_role("button", name="I have read them").click()
    expect(notice).to_have_count(0)
    expect(page.get_by_role("button", name="Guidelines (version 2)")).to_be_visible()
    expect(page.locator(".card .pick").first).to_be_visible()
    assert page.locator(".card").get_attribute("data-item") == shown
    expect(page.get_by_label("Note for the curator")).to_have_value("a note half written")
    decide(store, page, "3")
    expect(page.locator(".badge")).to_have_text("saved")
    with store.read() as session:
        versions = dict(session.execute(select(Guideline.id, Guideline.version)).all())
    given = [versions[one.guideline_id or 0] for one in judgments(store, study_id)]
    assert given == [1, 1, 2]
