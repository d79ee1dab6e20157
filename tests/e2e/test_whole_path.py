"""The whole path in a browser against the real server: from a file of pairs to scores.

Everything is done with the mouse and the keyboard on the pages; the store is looked into only at
the end. The training takes two steps, the demo set is cut to its first pairs.
"""

import json
from pathlib import Path

import pytest
from browser import PATIENCE, chromium_browser, settled, wait_past_dwell
from conftest import count_rows
from live_server import serving
from page_hands import open_view
from playwright.sync_api import Page, expect

from db.outcome.overview import overview
from db.store.store import Store

DEMO = Path(__file__).resolve().parent.parent / "data" / "first_demo"
PAIRS = 24
SLOW = 480_000  # milliseconds; a loaded machine embeds slowly


def few_pairs(folder: Path) -> tuple[Path, Path]:
    """The first pairs of the demo set, and all its passages."""
    lines = (DEMO / "pairs.jsonl").read_text().splitlines()[:PAIRS]
    pairs = folder / "pairs.jsonl"
    pairs.write_text("\n".join(lines) + "\n")
    assert "query_id" in json.loads(lines[0])
    return pairs, DEMO / "passages.jsonl"


def judged_in_studies(store: Store) -> int:
    """Judgments that were made in a study, not by the validator."""
    with store.read() as session:
        return overview(session).judgments


def fill(page: Page, key: str, text: str) -> None:
    """Type into a field and leave it."""
    field = page.locator(f".st-key-{key.replace('.', '-')} input")
    field.fill(text)
    field.press("Tab")
    settled(page)


def press(page: Page, key: str) -> None:
    page.locator(f".st-key-{key.replace('.', '-')} button").first.click()
    settled(page)


def wait_for_job(page: Page, key: str) -> None:
    """Until the job beside the form is done."""
    job = page.locator(f".st-key-{key}-job")
    expect(job.get_by_text("done", exact=True).first).to_be_visible(timeout=SLOW)
    settled(page)


@pytest.mark.browser
@pytest.mark.timeout(1500)
@pytest.mark.long
def test_from_pairs_to_a_trained_and_evaluated_model_by_mouse_and_keyboard(
    chromium: Path, sqlite_store: Store, tmp_path: Path
) -> None:
    pairs, passages = few_pairs(tmp_path)
    with serving(tmp_path / "served") as server, chromium_browser() as browser:
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE)
        page.goto(server.url)
        settled(page)

        open_view(page, "Datasets")
        fill(page, "datasets.name", "demo")
        fill(page, "datasets.licence", "CC0-1.0")
        uploads = page.locator('input[type="file"]')
        uploads.nth(0).set_input_files(pairs)
        uploads.nth(1).set_input_files(passages)
        expect(page.get_by_text("passages would be imported")).to_be_visible()  # both are there
        press(page, "datasets.submit")
        expect(page.get_by_text(f"demo: {PAIRS} pairs")).to_be_visible(timeout=SLOW)

        open_view(page, "Curate")
        press(page, "curate.start")
        wait_for_job(page, "curate-follow")
        assert count_rows(sqlite_store, "group_text") > 0

        open_view(page, "Studies")
        fill(page, "studies.items", "6")
        press(page, "studies.create_button")
        expect(page.get_by_text("6 items × 3 judges")).to_be_visible()
        press(page, "studies.start")
        wait_for_job(page, "studies-follow")

        open_view(page, "Judge")
        expect(page.locator(".card .pick").first).to_be_visible()
        first = page.locator(".card").get_attribute("data-item")
        wait_past_dwell(page)
        page.get_by_role("button", name="Passage 1 is the most relevant").click()
        expect(page.locator(".card")).not_to_have_attribute("data-item", first or "")
        expect(page.get_by_text("saved", exact=True).first).to_be_visible()
        assert judged_in_studies(sqlite_store) == 1

        open_view(page, "Agreement")  # who judges in an open study sees no figures over its items
        expect(page.get_by_text("Every judged item is hidden from you.")).to_be_visible()
        open_view(page, "Studies")
        press(page, "studies.closed")
        open_view(page, "Agreement")
        page.get_by_role("tab", name="Pairs").click()
        expect(page.get_by_text("Pairs of judges", exact=True)).to_be_visible()

        open_view(page, "Diversity")
        press(page, "diversity.start")
        wait_for_job(page, "diversity-follow")
        figure = page.get_by_test_id("stPlotlyChart").first
        expect(figure).to_contain_text("APS (lower is more diverse)")

        open_view(page, "Coverage")
        press(page, "coverage.start")
        wait_for_job(page, "coverage-follow")
        expect(page.locator(".st-key-coverage-map")).to_be_visible()

        open_view(page, "Groups")
        expect(page.locator(".card .triplet")).to_have_count(3)
        wait_past_dwell(page)
        page.keyboard.press("a")
        expect(page.locator(".badge")).to_have_text("saved")

        open_view(page, "Releases")
        press(page, "releases.start")
        wait_for_job(page, "releases-follow")
        expect(page.get_by_text("Dataset card", exact=True)).to_be_visible()

        open_view(page, "Train")
        fill(page, "train.max_steps", "2")
        press(page, "train.start")
        wait_for_job(page, "train-job")
        expect(page.get_by_text("Checkpoints", exact=True)).to_be_visible()

        open_view(page, "Evaluations")
        press(page, "evaluations.submit")
        wait_for_job(page, "evaluations-follow")
        expect(page.get_by_text("held-out")).not_to_have_count(0)

        open_view(page, "Home")
        expect(page.locator(".st-key-home-light-5")).to_contain_text("→", timeout=SLOW)

    for table, least in (("pair", PAIRS), ("judgment", 7), ("review", 1), ("release", 1)):
        assert count_rows(sqlite_store, table) >= least
    assert count_rows(sqlite_store, "evaluation") == 2
