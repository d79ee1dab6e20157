"""The frame in a browser: the chosen dataset stays in the URL, and back is one step."""

import re

import pytest
from browser import settled
from full_store import fill
from page_hands import choose, open_view, place
from playwright.sync_api import Browser, Page, Route, WebSocketRoute, expect
from restartable import Restartable
from study_world import make_world

from db.store.store import Store

pytestmark = [pytest.mark.browser, pytest.mark.long]
CHOICE = "frame.dataset"


@pytest.fixture(scope="module")
def two(store: Store) -> Store:
    """The full store, and a later dataset."""
    fill(store)
    make_world(store, 5, name="another")
    return store


class Held:
    """What the server sends to a page, which can be held back."""

    def __init__(self, page: Page) -> None:
        self._is_held = False
        self._late: list[str | bytes] = []
        page.route_web_socket(re.compile("/_stcore/stream"), self._connect)

    def hold(self) -> None:
        """Deliver nothing from now on."""
        self._is_held = True

    def release(self) -> None:
        """Deliver what was held, in order, and what comes."""
        assert self._late, "nothing was held back"
        while self._late:
            self._socket.send(self._late.pop(0))
        self._is_held = False

    def _connect(self, socket: WebSocketRoute) -> None:
        self._socket = socket
        socket.connect_to_server().on_message(self._receive)

    def _receive(self, message: str | bytes) -> None:
        if self._is_held:
            self._late.append(message)
        else:
            self._socket.send(message)


def expect_dataset(page: Page, name: str) -> None:
    """The URL names the dataset, soon: the page's next run writes it, and `settled` right after a
    click may still see the run before (3 of 44 times on a busy machine, by up to 0.11 s)."""
    expect(page).to_have_url(re.compile(rf"[?&]dataset={re.escape(name)}(&|$)"))


def test_the_dataset_goes_with_the_menu_the_tabs_and_back_and_is_one_step_each(
    two: Store, served: Restartable, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{served.url}/?dataset=world")
    settled(page)
    steps = page.evaluate("history.length")
    for number, title in enumerate(("Groups", "Agreement", "Coverage", "Jobs", "Train"), 1):
        open_view(page, title)
        expect_dataset(page, "world")
        if title in ("Groups", "Agreement"):  # the others are reached through their entry
            assert page.evaluate("history.length") == steps + number
    open_view(page, "Groups")
    choose(page, CHOICE, "another")
    expect_dataset(page, "another")
    expect(page.get_by_text("5 groups").first).to_be_visible()
    page.go_back()
    expect(place(page, CHOICE).get_by_role("combobox")).to_have_value("world")
    page.go_back()
    expect(page.get_by_role("heading", level=1, name="Train")).to_be_visible()
    settled(page)
    expect_dataset(page, "world")


def test_back_twice_at_once_is_two_steps_back_when_the_answer_to_the_first_comes_late(
    two: Store, served: Restartable, browser: Browser
) -> None:
    """The browser still shows the later dataset in the select box, and sends it with the second
    step: it was taken for a choice, and written into the address."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    answers = Held(page)
    page.goto(f"{served.url}/train?dataset=world")
    settled(page)
    open_view(page, "Groups")
    choose(page, CHOICE, "another")
    expect_dataset(page, "another")  # else Back would leave out a step
    settled(page)
    answers.hold()
    page.go_back()
    page.wait_for_timeout(3_000)  # the server has answered, the browser has not heard it
    page.go_back()
    page.wait_for_timeout(3_000)
    answers.release()
    expect(page.get_by_role("heading", level=1, name="Train")).to_be_visible()
    settled(page)
    expect_dataset(page, "world")
    expect(place(page, "frame-dataset").get_by_role("combobox")).to_have_value("world")


def test_back_before_a_slow_answer_comes_shows_the_page_that_was_left(
    two: Store, served: Restartable, browser: Browser
) -> None:
    """Streamlit answers with the hash of a figure that the browser still had when it asked, and has
    dropped after the answer before: the page stood still, "Cached ForwardMsg MISS"."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    answers = Held(page)
    page.goto(f"{served.url}/groups?dataset=world")
    settled(page)
    open_view(page, "Train")
    answers.hold()
    place(page, "train.new").locator("summary").click()  # the page is drawn again
    page.wait_for_timeout(3_000)
    page.go_back()
    page.wait_for_timeout(3_000)
    answers.release()
    expect(page.get_by_role("heading", level=1, name="Groups", exact=True)).to_be_visible()
    settled(page)
    expect_dataset(page, "world")


def test_the_current_entry_and_tab_are_named_and_a_phone_folds_the_menu_after_a_click(
    two: Store, served: Restartable, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": 400, "height": 800})
    page.goto(f"{served.url}/coverage?dataset=world")
    settled(page)
    tabs = page.get_by_role("navigation", name="Tabs")
    expect(tabs.locator('[aria-current="page"]')).to_have_text("Coverage")
    page.get_by_test_id("stExpandSidebarButton").click()
    menu = page.get_by_role("navigation", name="Menu")
    expect(menu.locator('[aria-current="page"]')).to_contain_text("Insight")
    menu.get_by_role("link", name="Data", exact=True).click()
    settled(page)
    expect(page.get_by_test_id("stExpandSidebarButton")).to_be_visible()
    expect(page.get_by_role("heading", level=1, name="Datasets")).to_be_visible()
    expect_dataset(page, "world")


@pytest.mark.parametrize("width", [1280, 800, 400])
def test_the_dataset_can_be_chosen_at_every_width(
    two: Store, served: Restartable, browser: Browser, width: int
) -> None:
    """Beside a folded menu Streamlit's header lay over it."""
    page = browser.new_page(viewport={"width": width, "height": 800})
    for name in ("groups", "studies"):
        page.goto(f"{served.url}/{name}?dataset=world")
        settled(page)
        place(page, "frame-dataset").get_by_role("combobox").click(timeout=20_000)
        expect(page.get_by_role("option")).to_have_count(2)


@pytest.mark.parametrize("width", [1280, 800])
def test_a_page_does_not_move_while_it_comes(
    two: Store, served: Restartable, browser: Browser, width: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": 900})
    page.add_init_script(
        "window.shift = 0; new PerformanceObserver((list) => {"
        " for (const each of list.getEntries()) window.shift += each.value;"
        "}).observe({ type: 'layout-shift', buffered: true });"
    )
    for name in ("", "groups", "agreement"):
        page.goto(f"{served.url}/{name}?dataset=world")
        settled(page)
        page.wait_for_timeout(1_500)
        assert page.evaluate("window.shift") < 0.1, name


@pytest.mark.parametrize("width", [1280, 800])
def test_what_is_below_a_form_stays_when_the_code_of_its_fields_comes_late(
    two: Store, served: Restartable, browser: Browser, width: int
) -> None:
    """On a loaded machine figures came before the fields, and moved by 105 px."""
    page = browser.new_page(viewport={"width": width, "height": 900})
    held: list[Route] = []
    fields = re.compile(r"/static/js/(Selectbox|Multiselect|NumberInput)\.")
    page.route(fields, lambda each: held.append(each))
    page.goto(f"{served.url}/diversity?dataset=world")
    below = place(page, "diversity.start")
    expect(below.get_by_role("button")).to_be_visible()
    before = below.bounding_box()
    assert held and page.locator(".st-key-diversity-seed [data-testid=stSkeleton]").count()
    for each in held:
        each.continue_()
    page.unroute_all()
    settled(page)
    expect(place(page, "diversity.seed").get_by_role("spinbutton")).to_be_visible()
    after = below.bounding_box()
    assert before is not None and after is not None
    assert abs(after["y"] - before["y"]) < 1


def test_the_tabs_of_agreement_stay_in_place_while_what_is_in_one_comes(
    two: Store, served: Restartable, browser: Browser
) -> None:
    """The tab was empty at first, so the page shorter, and the tabs half a window lower."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{served.url}/agreement?dataset=world")
    settled(page)
    tabs = page.get_by_role("tablist")
    tabs.evaluate("(each) => each.scrollIntoView({ block: 'start' })")
    page.evaluate(
        "window.places = new Set(); const look = () => { window.places.add(Math.round("
        "document.querySelector('[role=tablist]').getBoundingClientRect().top));"
        "requestAnimationFrame(look); }; look();"
    )
    before = tabs.bounding_box()
    assert before is not None and before["y"] < 450
    for name, shown in (("Items", "Confusion matrix"), ("Judges", "Per judge")):
        page.get_by_role("tab", name=name).click()
        expect(page.get_by_role("heading", name=shown)).to_be_visible()
        settled(page)
    assert page.evaluate("[...window.places]") == [round(before["y"])]


EVALUATED = """(part) => performance.getEntriesByType("resource")
  .some((file) => file.initiatorType === "script" && file.name.includes(`/${part}.`))"""


def test_the_code_of_figures_is_ready_before_a_page_with_one_is_opened_but_not_beside_a_card(
    two: Store, served: Restartable, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{served.url}/jobs")
    page.wait_for_function(EVALUATED, arg="PlotlyChart")
    page.wait_for_function(EVALUATED, arg="DataFrame")
    page.goto(f"{served.url}/judge")
    settled(page)
    page.wait_for_timeout(1000)
    assert not page.evaluate(EVALUATED, "PlotlyChart")
    page.close()


def test_an_address_that_is_no_page_says_so_in_our_style(
    two: Store, served: Restartable, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(f"{served.url}/no_such_page")
    settled(page)
    expect(page.get_by_role("dialog")).to_contain_text("Page not found")
    expect(page.locator("body > style")).to_have_count(1)


@pytest.mark.parametrize("width", [1280, 800, 400])
def test_the_guidelines_can_be_opened_at_every_width(
    two: Store, served: Restartable, browser: Browser, width: int
) -> None:
    """Beside a folded menu Streamlit's header lay over the head of the Judge page.

    Last in this file: whoever opens Judge is a judge, and sees less on Agreement from then on.
    """
    page = browser.new_page(viewport={"width": width, "height": 800})
    page.goto(f"{served.url}/judge")
    settled(page)
    page.get_by_role("button", name="Guidelines").click(timeout=20_000)
    expect(page.get_by_test_id("stPopoverBody")).to_be_visible()
    head = place(page, "judge-head").get_by_role("heading", level=1).bounding_box()
    bar = page.get_by_test_id("stHeader").bounding_box()
    assert head and bar and (width == 1280 or head["y"] >= bar["y"] + bar["height"] - 1)
