"""What a person does with mouse and keyboard on our pages, for the journeys in a browser."""

from browser import settled
from playwright.sync_api import Locator, Page, expect
from playwright.sync_api import TimeoutError as PlaywrightTimeout

from app.kit.menu import MENU

SLOW = 240_000  # milliseconds; a loaded machine embeds slowly


def place(page: Page, key: str) -> Locator:
    """The widget or container of a key."""
    return page.locator(f".st-key-{key.replace('.', '-')}")


def open_view(page: Page, title: str) -> None:
    """By the menu and the tabs of its entry, as a person does."""
    menu, tabs = place(page, "frame-menu"), place(page, "frame-tabs")
    listed = menu.get_by_role("link", name=title, exact=True)
    tab = tabs.get_by_role("link", name=title, exact=True)
    section = next(view.section for view in MENU if view.title == title)
    entry = menu.get_by_role("link", name=section, exact=True)
    entry.or_(listed).or_(tab).first.wait_for()  # links come late
    if not listed.count() and not tab.count():
        entry.click()
        tab.wait_for()
    (listed if listed.count() else tab).click()
    expect(page.get_by_role("heading", level=1, name=title, exact=True)).to_be_visible(timeout=SLOW)
    settled(page)


def fill(page: Page, key: str, text: str) -> None:
    """Type into a field and leave it."""
    field = place(page, key).locator("input")
    field.fill(text)
    field.press("Tab")
    settled(page)


def press(page: Page, key: str) -> None:
    place(page, key).locator("button").first.click()
    settled(page)


def sign_in(page: Page, url: str, name: str, password: str) -> None:
    """By the form."""
    page.goto(f"{url}/sign-in")
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(password)
    page.get_by_role("button", name="Sign in").click()
    settled(page)


def choose(page: Page, key: str, option: str) -> None:
    """Open the select box until it stays open (a page still drawing closes it), then pick."""
    wanted = page.get_by_role("option", name=option, exact=True)
    while wanted.count() == 0:
        place(page, key).get_by_role("combobox").first.click()
        page.wait_for_timeout(500)
    wanted.click()
    settled(page)


def unfold(page: Page, title: str) -> None:
    """Open an expander until it stays open: a page that is still drawing folds it again."""
    summary = page.get_by_test_id("stExpander").locator("summary").filter(has_text=title).first
    calm = 0
    while calm < 2:
        is_open = summary.locator("xpath=parent::details[@open]").count() > 0
        calm = calm + 1 if is_open else 0
        if not is_open:
            summary.click()
        page.wait_for_timeout(400)


def wait_for_status(page: Page, key: str, status: str) -> None:
    """Until the job that is followed under this key shows the status."""
    shown = place(page, f"{key}-job").get_by_text(status, exact=True)
    expect(shown.first).to_be_visible(timeout=SLOW)
    settled(page)


def select_person(page: Page, row: int) -> None:
    """Click the box of this row, from 0, of the desk's table of people, which is a canvas.

    What was done before ends with nobody selected and a table drawn anew: a click that comes
    earlier is on the old one and is gone with it. A click that the canvas misses is repeated.
    """
    selected = place(page, "studies-selected")
    expect(selected).to_have_count(0)
    table = page.locator("[class*='st-key-studies-people_']").get_by_test_id("stDataFrame").first
    for patience in (10_000, 30_000, SLOW):
        table.click(position={"x": 16, "y": 35 * (row + 1) + 17})
        try:
            selected.wait_for(timeout=patience)
            break
        except PlaywrightTimeout:
            continue
    expect(selected).to_contain_text("1 person selected")
    settled(page)


def choose_doing(page: Page, what: str, button: str = "") -> None:
    """Choose what the desk does with the selected people, until its button says so (`button`, where
    it has another word): a click before that would do what it said when it was clicked."""
    box = place(page, "studies.doing")
    box.get_by_role("button", name=what, exact=True).or_(
        box.get_by_role("radio", name=what, exact=True)
    ).first.click()
    expect(place(page, "studies.do").get_by_role("button")).to_have_text(button or what)
    settled(page)
