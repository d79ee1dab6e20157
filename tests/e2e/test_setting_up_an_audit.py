"""The audit of the notes is set up in a browser in five clicks, with nothing else in the store."""

from pathlib import Path

import pytest
from asked_study import record, write_records
from browser import PATIENCE, settled
from page_hands import choose, place, sign_in
from playwright.sync_api import Browser, Locator, expect
from restartable import Restartable
from sqlalchemy import func, select

from db.people.accounts import add_account
from db.store.store import Store
from db.tables import Study, StudyItem

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]
MAX_CLICKS = 5
PASSWORD = "correct horse battery"


def test_the_audit_of_the_notes_is_set_up_in_five_clicks(
    store: Store, served: Restartable, browser: Browser, tmp_path: Path
) -> None:
    """64 records, two people: from the page Studies to a link for each of them, and their cards.

    `inf people add` and `inf serve` came before: two lines, and eight more for the file of items.
    """
    with store.write() as session:
        add_account(session, "cora", PASSWORD, role="curator", actor="test")
        session.commit()
    page = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
    page.set_default_timeout(PATIENCE)
    sign_in(page, served.url, "cora", PASSWORD)
    page.goto(f"{served.url}/studies")
    settled(page)
    clicks = []

    def click(target: Locator, *, until: Locator) -> None:
        """One click of a person, with what it does."""
        clicks.append(str(target))
        settled(page)
        target.click()
        expect(until.first).to_be_visible()
        settled(page)

    choose(page, "studies.template", "Audit: roles of passages")
    clicks += ["the list", "its option"]
    expect(place(page, "studies.questions_audit")).to_be_visible()
    file = write_records(tmp_path / "audit.jsonl", [record(number) for number in range(64)])
    with page.expect_file_chooser() as chosen:
        clicks.append("the file")
        page.get_by_test_id("stFileUploaderDropzone").get_by_role("button").last.click()
    chosen.value.set_files(file)
    create = place(page, "studies.create_of_file").get_by_role("button")
    expect(create).to_be_enabled()
    click(create, until=page.get_by_text("64 items. Judges find it on the Judge page."))
    links = page.get_by_test_id("stCode").filter(has_text="/invitation/")
    click(place(page, "studies.invite").get_by_role("button", name="Create links"), until=links)
    assert len(clicks) <= MAX_CLICKS
    (invited,) = links.all_inner_texts()
    for name, link in zip(("ann", "ben"), invited.split(), strict=False):
        judge = browser.new_context(viewport={"width": 1280, "height": 900}).new_page()
        judge.set_default_timeout(PATIENCE)
        judge.goto(link)
        judge.get_by_label("Name").fill(name)
        for field in judge.locator("input[type=password]").all():
            field.fill(PASSWORD)
        judge.get_by_role("button").first.click()
        expect(judge.locator(".card")).to_contain_text("Is the query acceptable")
        judge.context.close()
    with store.read() as session:
        study = session.scalars(select(Study).order_by(Study.id.desc())).first()
        assert study is not None and study.overlap == 2
        items = select(func.count(StudyItem.item_id)).where(StudyItem.study_id == study.id)
        assert session.scalar(items) == 64 * 6
    page.context.close()
