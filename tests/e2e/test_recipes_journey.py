"""Recipes in a browser: a wrong line at its place, a preview, a version, the form of a run."""

from pathlib import Path

import pytest
from browser import PATIENCE, chromium_browser, settled
from curation_runs import add_dataset
from page_hands import SLOW, fill, open_view, place, press
from playwright.sync_api import Page, expect
from restartable import restartable

from app.access.identity import owner
from app.operations import recipes, runs
from app.operations.recipes import RecipeSave
from app.recipes import actions
from curation.recipe.recipe import files_of, renamed
from db.store.store import Store

ADA = owner("ada")
MINE = renamed(files_of("promptriever"), "mine")
FILE = actions.TEXT.format("mine-1", "mine-toml")


def type_file(page: Page, text: str) -> None:
    field = place(page, FILE).locator("textarea")
    field.fill(text)
    field.press("Control+Enter")
    settled(page)


@pytest.mark.browser
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.long
def test_a_recipe_is_mended_previewed_saved_and_taken_for_a_run_in_a_browser(
    chromium: Path, sqlite_store: Store, tmp_path: Path
) -> None:
    add_dataset(sqlite_store, pairs=6)
    recipes.save(ADA, RecipeSave(files=MINE))
    with (
        restartable(tmp_path / "inf-home", sqlite_store.url) as server,
        chromium_browser() as browser,
    ):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        page.set_default_timeout(PATIENCE)
        page.goto(server.url)
        settled(page)
        open_view(page, "Recipes")
        page.goto(f"{server.url}/recipes?recipe=mine")
        settled(page)
        type_file(page, MINE["mine.toml"].replace('"drop text"', '"drop it"'))
        expect(page.get_by_text("mine.toml, line", exact=False).first).to_be_visible()
        expect(place(page, "recipes.preview_start").get_by_role("button")).to_be_disabled()
        type_file(page, MINE["mine.toml"].replace("negation = 1", "negation = 9"))
        press(page, "recipes.preview_start")
        expect(page.get_by_text("kept, ", exact=False)).to_have_count(2, timeout=SLOW)
        expect(page.get_by_text("done", exact=True)).to_have_count(2, timeout=SLOW)
        expect(page.get_by_text("Query · q0", exact=True)).to_be_visible(timeout=SLOW)
        assert recipes.versions(ADA, "mine").total == 1
        fill(page, actions.NOTE.format("mine-1"), "more negations")
        press(page, "recipes.save")
        expect(page.get_by_text("saved as version 2", exact=False).first).to_be_visible()
        with page.expect_download() as saved:
            place(page, "recipes.download").get_by_role("button").click()
        assert saved.value.suggested_filename == "mine.zip"
        page.get_by_role("link", name="Start a run with it").click()
        settled(page)
        expect(place(page, "curate.recipe").locator("input").first).to_have_value("mine")
    assert recipes.versions(ADA, "mine").data[0].note == "more negations"
    assert runs.list_all(ADA).total == 0
