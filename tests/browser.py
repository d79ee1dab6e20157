"""A headless Chromium for tests, with an empty profile and no traffic of its own."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial

from playwright.sync_api import Browser, Page, expect, sync_playwright
from waiting import until

PROGRAM = "/usr/bin/chromium"
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PATIENCE = 90_000  # milliseconds: a loaded machine draws slowly, and a test must not mind
PAINTED_AND_READ = """card => card.dataset.painted !== undefined
  && performance.now() - Number(card.dataset.painted) > 330"""

expect.set_options(timeout=PATIENCE)


@contextmanager
def chromium_browser() -> Iterator[Browser]:
    """The browser, closed at the end."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
        yield browser
        browser.close()


def wait_past_dwell(page: Page) -> None:
    """Until the card's item was painted for longer than the guard against quick keys asks."""
    card = page.locator(".card")
    while not card.evaluate(PAINTED_AND_READ):
        page.wait_for_timeout(20)


wait_until = partial(until, seconds=PATIENCE / 1000)


def settled(page: Page) -> None:
    """Until the app has drawn the page and runs nothing."""
    page.set_default_timeout(PATIENCE)
    page.wait_for_selector('[data-testid="stMain"] h1')
    page.wait_for_selector('[data-testid="stStatusWidget"]', state="detached")
    # the widget above comes late on a loaded machine: the texts of the page before may still stand
    page.wait_for_selector('[data-testid="stApp"][data-test-script-state="notRunning"]')
