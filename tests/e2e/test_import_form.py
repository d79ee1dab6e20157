"""Clicks of a person who does not wait: an import that a further file interrupts."""

import json
from pathlib import Path

import pytest
from browser import settled
from page_hands import fill, open_view, place
from playwright.sync_api import Browser, expect
from restartable import Restartable

PAIRS, PASSAGES = 24, 60_000  # enough passages to be still importing when the next file comes

pytestmark = [pytest.mark.browser, pytest.mark.long]


def write_pairs(path: Path, first: int) -> Path:
    rows = ({"query": f"what is {n}?", "passage_id": f"p{n}"} for n in range(first, first + PAIRS))
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_an_import_is_made_that_the_next_file_interrupts(
    served: Restartable, browser: Browser, tmp_path: Path
) -> None:
    passages = tmp_path / "passages.jsonl"
    rows = ({"passage_id": f"p{n}", "text": f"{n} is a number"} for n in range(PASSAGES))
    passages.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(served.url)
    settled(page)
    open_view(page, "Datasets")
    fill(page, "datasets.name", "quick")
    uploads = page.locator('input[type="file"]')
    uploads.nth(1).set_input_files(passages)
    page.get_by_test_id("stFileChipName").get_by_text("passages.jsonl").wait_for()
    uploads.nth(0).set_input_files(write_pairs(tmp_path / "train-00000-of-00002.jsonl", 0))
    expect(page.get_by_text(f"{PAIRS} pairs and {PASSAGES:,} passages would be")).to_be_visible()
    second = write_pairs(tmp_path / "train-00001-of-00002.jsonl", PAIRS)
    place(page, "datasets.submit").get_by_role("button").click()
    page.get_by_role("progressbar").first.wait_for()
    uploads.nth(0).set_input_files(second)
    expect(page.get_by_text(f"quick: {2 * PAIRS} pairs")).to_be_visible()
