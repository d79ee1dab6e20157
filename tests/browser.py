"""A headless Chromium for tests, with an empty profile and no traffic of its own."""

from collections.abc import Iterator
from contextlib import contextmanager

from playwright.async_api import async_playwright
from playwright.sync_api import Browser, Page, sync_playwright

from app.menu import MENU

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


@contextmanager
def chromium_browser() -> Iterator[Browser]:
    """The browser, closed at the end."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
        yield browser
        browser.close()


def settled(page: Page) -> None:
    """Until the app has drawn the page and runs nothing."""
    page.wait_for_selector('[data-testid="stMain"] h1')
    page.wait_for_selector('[data-testid="stStatusWidget"]', state="detached")


async def visit_every_page(url: str) -> None:
    """Open every page of the menu once."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
        page = await browser.new_page()
        for view in MENU:
            await page.goto(f"{url}/{'' if view.name == 'home' else view.name}")
            await page.wait_for_selector('[data-testid="stMain"] h1')
        await browser.close()
