"""A study from a file in a real browser: questions in a table, the card before it is made."""

import json
from pathlib import Path

import pytest
from asked_study import record, write_records
from browser import PATIENCE, wait_past_dwell
from page_hands import choose, fill, place, press, unfold
from playwright.sync_api import Browser, expect
from restartable import Restartable
from sqlalchemy import func, select

from db.store.store import Store
from db.tables import Judgment, Question, Study

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]


def test_the_card_is_tried_before_the_study_is_made(
    store: Store, served: Restartable, browser: Browser, tmp_path: Path
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{served.url}/studies")
    unfold(page, "Study from a file")
    choose(page, "studies.template", "Relevance 0–2")
    file = write_records(tmp_path / "tea.jsonl", [record(1), record(2)])
    place(page, "studies.items_file").locator("input[type=file]").set_input_files(file)
    place(page, "studies.previewed").locator("label").click()
    card = page.locator(".card")
    expect(card).to_contain_text("what is tea 1")
    expect(card).to_contain_text("How relevant is this passage")
    card.get_by_text("what is tea 1").click()  # keys are the card's once it was clicked
    for _ in range(4):  # each passage by its key, and the next by itself
        wait_past_dwell(page)
        page.keyboard.press("2")
    expect(card.locator(".passage")).to_have_count(0)
    fill(page, "studies.file.overlap", "3")
    press(page, "studies.create_of_file")
    page.wait_for_url("**study=*")
    expect(page.get_by_text("2 items. Judges find it on the Judge page.")).to_be_visible()
    with store.read() as session:
        assert session.scalar(select(func.count(Judgment.id))) == 0
        study = session.scalars(select(Study).order_by(Study.id.desc())).first()
        assert study is not None and (study.overlap, study.status) == (3, "open")
        asked = session.scalars(select(Question.name)).all()
        assert "relevance" in asked, json.dumps(asked)
    page.close()
