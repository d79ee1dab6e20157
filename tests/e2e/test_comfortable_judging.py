"""A day on the card: German, a reload, signed out in the middle, other keys; and axe-core."""

import re
from collections.abc import Iterator

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from browser import PATIENCE, settled, wait_past_dwell, wait_until
from full_store import fill
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect
from restartable import Restartable
from sqlalchemy import select, update
from study_world import judgments, make_world, sampled_study

from app.kit.menu import MENU
from db.people.accounts import add_account, sign_out_everywhere
from db.store.store import Store
from db.tables import ItemMessage, Passage

pytestmark = [
    pytest.mark.browser,
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]
PASSWORD = "correct horse battery"
WCAG = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
# What is Streamlit's own, by rule and the element's HTML: its menu's list has a <div> in between,
# disabled labels are pale (exempt in WCAG, but axe cannot tell), and its colours of code.
OF_STREAMLIT = (
    ("list", r'^<ul class="st-emotion-cache|stSidebarNav'),
    ("listitem", r'^<li class="st-emotion-cache'),
    ("color-contrast", r'^<span class="token'),
    ("color-contrast", r"^<p>(Releases|Sources|Compare with)</p>$"),
)


# Pages with style sheets of our own, and one full of captions: the others have the theme's colours.
IN_THE_DARK_TOO = {"home", "groups", "judge", "adjudicate", "coverage", "train"}


@pytest.fixture(scope="module")
def study_id(store: Store) -> int:
    """Six items of long passages, one of them Hebrew, in a full store."""
    fill(store)
    run_id = make_world(store, 6, name="comfort")
    with store.write() as session:
        long = "The town burned in 1702 and was rebuilt on the old foundations. " * 12
        hebrew = "העיר ברגן הייתה הנמל הגדול בנורווגיה עד המאה התשע־עשרה. " * 6
        session.execute(update(Passage).values(text=Passage.text + " " + long))
        is_last = Passage.external_id.like("%-distractor_2")
        session.execute(update(Passage).where(is_last).values(text=hebrew))
        # a place for the person of the axe test too, to whom items are leased
        study = sampled_study(session, run_id=run_id, items=6, overlap=2, name="comfort")
        session.commit()
        return study.id


@pytest.fixture
def person(browser: Browser) -> Iterator[BrowserContext]:
    """A browser whose person reads German."""
    context = browser.new_context(viewport={"width": 1280, "height": 800}, locale="de-DE")
    context.set_default_timeout(PATIENCE)
    yield context
    context.close()


def ours(page: Page) -> list[str]:
    """axe-core's violations of WCAG 2.2 A and AA, and headings that skip a level, on the page that
    are not Streamlit's."""
    page.evaluate(AXE_SCRIPT)
    found = page.evaluate(
        "tags => axe.run(document, { resultTypes: ['violations'],"
        " runOnly: { type: 'tag', values: tags }, rules: { 'heading-order': { enabled: true } } })",
        WCAG,
    )
    return [
        f"{page.url} {rule['id']}: {node['html'][:200]}"
        for rule in found["violations"]
        for node in rule["nodes"]
        if not any(
            rule["id"] == name and re.search(html, node["html"]) for name, html in OF_STREAMLIT
        )
    ]


def clean_in_both_themes(page: Page) -> None:
    """axe-core finds nothing on the page, light and dark: for those with forms of our own."""
    for scheme in ("dark", "light"):
        page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        assert ours(page) == []


@pytest.mark.slow
def test_axe_finds_nothing_of_ours_on_any_page(
    study_id: int, served: Restartable, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    found: list[str] = []
    for view in MENU:
        page.emulate_media(color_scheme="light")
        parameter = f"?study={study_id}" if view.name in ("judge", "adjudicate") else ""
        page.goto(f"{served.url}/{'' if view.name == 'home' else view.name}{parameter}")
        settled(page)
        for scheme in ("light", "dark") if view.name in IN_THE_DARK_TOO else ("light",):
            page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            dark = "getComputedStyle(document.querySelector('.stApp')).colorScheme"
            page.wait_for_function(f"() => {dark}.includes('{scheme}')")
            page.wait_for_timeout(500)
            found += [f"{scheme} {one}" for one in ours(page)]
        page.emulate_media(color_scheme="light")
        page.set_viewport_size({"width": 390, "height": 900})
        page.wait_for_timeout(500)
        found += [f"390 px {one}" for one in ours(page)]
        wide = "(part => part.scrollWidth > part.clientWidth)(document.querySelector('.stMain'))"
        found += [f"390 px {view.name}: wider than the screen"] if page.evaluate(wide) else []
        if view.name == "judge":
            for label in ("None of them", "Skip", "Undo"):
                button = page.locator(".card").get_by_role("button", name=label)
                found += [] if button.is_visible() and in_sight(button) else [f"390 px {label}"]
        page.set_viewport_size({"width": 1280, "height": 900})
    page.close()
    assert found == []


def in_sight(part: Locator) -> bool:
    """Whether all of it is within the window, without scrolling."""
    return bool(
        part.evaluate(
            "node => { const at = node.getBoundingClientRect(); return at.top >= 0 && at.left >= 0"
            " && at.bottom <= innerHeight && at.right <= innerWidth; }"
        )
    )


def test_a_day_in_german_loses_nothing_to_a_reload_or_the_end_of_the_session(
    store: Store, study_id: int, served: Restartable, person: BrowserContext
) -> None:
    with store.write() as session:
        add_account(session, "ann", PASSWORD, role="annotator", actor="test")
        session.commit()
    page = person.new_page()
    page.on("dialog", lambda dialog: dialog.accept())
    page.goto(f"{served.url}/judge?study={study_id}")
    clean_in_both_themes(page)
    page.get_by_label("Name").fill("ann")
    page.get_by_label("Passwort").fill(PASSWORD)
    page.get_by_role("button", name="Anmelden").click()
    card = page.locator(".card")
    expect(card.get_by_text("0 beantwortet · 6 für Sie übrig")).to_be_visible()
    expect(page.locator("html")).to_have_attribute("lang", "de")

    hebrew = page.locator('.passage .text[lang="he"]')
    assert hebrew.evaluate("node => getComputedStyle(node).direction") == "rtl"
    page.mouse.move(800, 600)
    page.mouse.wheel(0, 2000)
    page.wait_for_timeout(500)
    assert 0 <= page.locator(".question").evaluate("node => node.getBoundingClientRect().top") < 80

    wait_past_dwell(page)
    first = card.get_attribute("data-item")
    page.keyboard.press("1")
    expect(page.locator(".badge")).to_have_text("gespeichert")
    page.reload()
    expect(card.get_by_text("1 beantwortet · 5 für Sie übrig")).to_be_visible()
    page.keyboard.press("z")
    expect(card).to_have_attribute("data-item", first or "")
    expect(page.locator(".banner")).to_contain_text("Ihre Antwort war: Text 1")
    wait_past_dwell(page)
    page.keyboard.press("2")
    wait_until(lambda: len(judgments(store, study_id)) == 2)

    page.keyboard.press("m")
    page.keyboard.type("Gilt das?")
    page.get_by_role("button", name="Senden").click()
    page.keyboard.press("Escape")
    page.locator(".question").focus()
    page.keyboard.press("n")
    page.keyboard.type("halb geschr")
    with store.write() as session:
        sign_out_everywhere(session, "ann", actor="test")
        session.commit()
    page.keyboard.press("Escape")
    wait_past_dwell(page)
    current = card.get_attribute("data-item")
    page.locator(".frame").get_by_role("button", name="Notiz").click()
    page.get_by_label("Ihre Nachricht").fill("Noch eine Frage")
    page.get_by_role("button", name="Senden").click()
    form = page.locator("form.sign-in")
    form.get_by_label("Name").fill("ann")
    form.get_by_label("Passwort").fill("falsch und lang genug")
    form.get_by_role("button", name="Anmelden").click()
    expect(form.get_by_role("alert")).to_have_text("Name oder Passwort ist falsch.")
    form.get_by_label("Passwort").fill(PASSWORD)
    form.get_by_role("button", name="Anmelden").click()
    expect(form).to_have_count(0)
    expect(card).to_have_attribute("data-item", current or "")
    expect(page.get_by_label("Notiz für die Studienleitung")).to_have_value("halb geschr")

    def messages() -> list[str]:
        with store.read() as session:
            return list(session.scalars(select(ItemMessage.body).order_by(ItemMessage.id)))

    wait_until(lambda: messages() == ["Gilt das?", "Noch eine Frage"])
    page.locator(".frame").get_by_role("button", name="Hilfe").click()
    page.get_by_role("button", name="Taste ändern für: überspringen").click()
    page.keyboard.press("x")
    page.keyboard.press("x")
    expect(page.get_by_role("group", name="Warum überspringen?")).to_be_visible()
    page.keyboard.press("Escape")
    wait_past_dwell(page)
    page.keyboard.press("0")
    wait_until(lambda: len(judgments(store, study_id)) == 3)
    assert judgments(store, study_id)[-1].note == "halb geschr"
    for path in ("account", "sign-out", "invitation/used"):
        page.goto(f"{served.url}/{path}")
        clean_in_both_themes(page)
