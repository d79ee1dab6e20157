"""A coordinator's two weeks with 20 people and 2,000 items, in a browser: create, invite, follow,
nudge, pause one, change the guidelines, adjudicate, report.
"""

from pathlib import Path

import pytest
from browser import PATIENCE, settled, wait_past_dwell, wait_until
from desk_world import make_team
from page_hands import choose_doing, fill, place, press, select_person, sign_in, unfold
from playwright.sync_api import Browser, Page, expect
from restartable import Restartable
from sqlalchemy import func, select

from db.people.accounts import add_account
from db.store.store import Store
from db.tables import Announcement, Guideline, Invitation, Judge, Judgment, Study, StudyJudge

pytestmark = [
    pytest.mark.browser,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]
PASSWORD = "correct horse battery"
SCREEN, SCREENS = 900, 3
DECIDED = 3
LISTS = """document.querySelectorAll("[data-testid='stDataFrame'], table, ul, ol")"""
TALLEST = f"Math.max(0, ...[...{LISTS}].map((list) => list.clientHeight))"


def come(page: Page, path: str) -> None:
    """Open a page; no list of it is taller than three screens."""
    page.goto(path)
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    settled(page)
    assert_no_tall_list(page)


def assert_no_tall_list(page: Page) -> None:
    found = page.evaluate(TALLEST)
    assert found <= SCREENS * SCREEN, (page.url, found)


def open_all(page: Page) -> None:
    """Unfold everything on the page, and look at what it holds."""
    folded = page.get_by_test_id("stExpander").locator("details:not([open]) > summary")
    for _ in range(folded.count()):
        folded.first.click()
        settled(page)
    assert_no_tall_list(page)


@pytest.mark.long
def test_a_coordinator_leads_a_study_of_twenty_people(
    store: Store, served: Restartable, browser: Browser
) -> None:
    team = make_team(store)
    with store.write() as session:
        add_account(session, "cora", PASSWORD, role="curator", actor="test")
        session.commit()
    page = browser.new_context(viewport={"width": 1280, "height": SCREEN}).new_page()
    page.set_default_timeout(PATIENCE)
    sign_in(page, served.url, "cora", PASSWORD)
    studies = f"{served.url}/studies"

    come(page, studies)  # create
    unfold(page, "New study")
    fill(page, "studies.items", "50")
    press(page, "studies.create_button")
    expect(page.get_by_text("50 items. Judges find it")).to_be_visible()

    unfold(page, "Invite people")
    fill(page, "studies.invite.count", "20")
    press(page, "studies.invite")
    expect(page.get_by_test_id("stCode").filter(has_text="/invitation/")).to_be_visible()

    come(page, f"{studies}?study={team}")  # follow
    expect(page.get_by_text("2 late")).to_be_visible()
    select_person(page, 1)  # nudge
    choose_doing(page, "Write", "Send")
    place(page, "studies.message").locator("textarea").fill("Half of your share is due.")
    page.keyboard.press("Tab")
    settled(page)
    press(page, "studies.do")
    expect(page.get_by_text("Sent to 1 person.")).to_be_visible()

    select_person(page, 0)  # pause one
    choose_doing(page, "Pause")
    fill(page, "studies.reason", "answers at random")
    press(page, "studies.do")
    expect(page.get_by_text("1 judge is paused in this study")).to_be_visible()

    unfold(page, "Guidelines (version 1) and overlap")
    place(page, f"studies.guideline_{team}").locator("textarea").fill("Read all passages first.")
    page.keyboard.press("Tab")
    settled(page)
    press(page, "studies.write_guideline")
    expect(page.get_by_text("Guidelines saved as version 2")).to_be_visible()

    come(page, f"{served.url}/adjudicate?study={team}")
    for _ in range(DECIDED):
        wait_past_dwell(page)
        page.keyboard.press("1")
    decided = select(func.count(Judgment.id)).join(Judge).where(Judge.kind == "adjudicator")

    def decisions() -> int:
        with store.read() as session:
            return session.scalars(decided).one()

    wait_until(lambda: decisions() == DECIDED)

    come(page, f"{studies}?study={team}")
    unfold(page, "Report")
    press(page, "studies.report")
    written = {}
    for kind in ("html", "pdf"):
        button = place(page, f"studies.report_{kind}").get_by_role("button")
        expect(button).to_be_visible()
        with page.expect_download() as saved:
            button.click()
        written[kind] = Path(saved.value.path()).read_bytes()
    for tab in page.get_by_role("tab").all():
        tab.click()
        settled(page)
        assert_no_tall_list(page)
    open_all(page)
    assert f"{DECIDED} items decided by cora ({DECIDED})".encode() in written["html"]
    assert written["pdf"].startswith(b"%PDF")
    for path in ("judge", "answers", f"agreement?study={team}"):
        come(page, f"{served.url}/{path}")
    with store.read() as session:
        made = session.scalars(select(Study).order_by(Study.id.desc())).first()
        assert made is not None and made.id != team
        invited = select(func.count(Invitation.id)).where(Invitation.study_id == made.id)
        assert session.scalar(invited) == 20
        paused = session.scalars(select(StudyJudge).where(StudyJudge.state == "paused")).all()
        assert [one.reason for one in paused] == ["answers at random"]
        bodies = session.scalars(select(Guideline.body).where(Guideline.study_id == team)).all()
        assert bodies[-1] == "Read all passages first."
        assert session.scalars(select(Announcement.body)).all() == ["Half of your share is due."]
