"""The Paper page in a browser: one click downloads a figure or a table, names stay text."""

import re
from pathlib import Path

import pytest
from browser import PATIENCE, settled
from grown_dataset import grown
from measured import described, kept, mapped
from playwright.sync_api import Browser, Page, expect
from restartable import Restartable

from db.store.store import Store

pytestmark = [
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]

NASTY = "<b>$x$</b>_&"
STARTS = {
    "svg": b"<?xml",
    "pdf": b"%PDF",
    "png": b"\x89PNG",
    "csv": b"",
    "tex": b"\\begin{tabular}",
}


@pytest.fixture(scope="module")
def page(store: Store, served: Restartable, browser: Browser) -> Page:
    grown(store, NASTY)
    config = {"datasets": [NASTY]}
    kept(store, config, described(store, **config))
    mapped(store, NASTY)
    found = browser.new_page(viewport={"width": 1280, "height": 900})
    found.set_default_timeout(PATIENCE)
    found.goto(f"{served.url}/paper")
    settled(found)
    return found


def open_tab(page: Page, name: str) -> None:
    page.get_by_role("tab", name=name, exact=True).click()
    settled(page)


def download(page: Page, key: str, kind: str, folder: Path) -> bytes:
    """What one click on a download gives."""
    place = page.locator(f".st-key-{re.sub(r'[^A-Za-z0-9_-]', '-', f'{key}.{kind}')}")
    with page.expect_download() as started:
        place.locator("button:visible").click()  # with a help text Streamlit draws two
    saved = folder / f"file.{kind}"
    started.value.save_as(saved)
    assert started.value.suggested_filename == f"{key.replace('.', '-')}.{kind}"
    return saved.read_bytes()


def test_a_click_downloads_every_kind_of_a_figure(page: Page, tmp_path: Path) -> None:
    for tab, key in (("Models", "paper.figure_5"), ("Coverage", "paper.figure_3b.aps")):
        open_tab(page, tab)
        for kind, start in STARTS.items():
            assert download(page, key, kind, tmp_path).startswith(start)
    for kind in ("svg", "pdf", "png"):
        assert download(page, "paper.figure_3a", kind, tmp_path).startswith(STARTS[kind])


def test_a_click_downloads_a_table_with_names_as_text(page: Page, tmp_path: Path) -> None:
    open_tab(page, "Data")
    latex = download(page, "paper.table_1", "tex", tmp_path).decode()
    assert r"\textless{}b\textgreater{}\$x\$\textless{}/b\textgreater{}\_\&" in latex
    listed = download(page, "paper.table_1", "csv", tmp_path).decode().splitlines()
    assert listed[0].startswith("Source,dataset,")
    assert NASTY in listed[1] and listed[1].startswith("ours,")
    assert {line.split(",")[0] for line in listed[2:]} == {"published"}


NUMBERS = {
    "Data": ("Table 1",),
    "Coverage": ("Figure 3a", "Figure 3b"),
    "Quality": ("Figure 4", "Figure 6"),
    "Models": ("Table 2", "Figure 5"),
    "Further models": ("Table 5",),
    "Ablations": ("Table 3", "Table 4", "Table 6"),
}


def test_every_number_of_the_paper_is_on_one_page_three_screens_high_at_most(page: Page) -> None:
    for tab, names in NUMBERS.items():
        open_tab(page, tab)
        for name in names:
            expect(page.get_by_role("heading", name=re.compile(rf"^{name}: "))).to_be_visible()
        height = page.get_by_test_id("stMain").evaluate("main => main.scrollHeight")
        assert height <= 3 * 900, (tab, height)


def test_a_figure_tells_its_values_at_the_pointer_with_names_as_text(page: Page) -> None:
    open_tab(page, "Coverage")
    figure = page.get_by_test_id("stPlotlyChart").first
    expect(page.locator('[aria-label^="APS (lower is more diverse)"]').first).to_be_attached()
    figure.locator(".bars .point path").first.hover(force=True)
    told = figure.locator(".hoverlayer")
    expect(told).to_contain_text(NASTY)
    expect(told).to_contain_text("instruction")
    assert not figure.locator("b, script").count()


def test_the_ranking_names_its_groups_models_and_series(page: Page) -> None:
    open_tab(page, "Models")
    figure = page.get_by_test_id("stPlotlyChart").first
    for name in ("below 1 B", "e5-base-v2 · published", "p-MRR ×100"):
        expect(figure.get_by_text(name, exact=True)).to_be_visible()
