"""Clicks and page changes of five journeys, counted in Chromium on the real pages.

    .venv/bin/python bench/journeys.py [--home DIR] [--only NAME …]

On copies of the demo's store (--home, or without it a demo of its own). Each journey starts on
Home. Counted are a person's clicks (a chosen file is one), fields typed into, keys pressed on a
card, and changes of the page, as paths in the address. Training ends at its button: it
counts as a click, and no job is started. Prints a row per journey as JSON, then a table.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from demo_app import HOME_HELP, ROOT, chromium_browser, demo_app, settle
from playwright.sync_api import Browser, Page, expect

sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from browser import PATIENCE, wait_past_dwell  # noqa: E402
from page_hands import fill, place, press, unfold  # noqa: E402
from second_run import make_second_run  # noqa: E402

from app.kit.menu import MENU  # noqa: E402
from db.people.accounts import add_account  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402

owners_process(True)

DEMO = ROOT / "tests" / "data" / "first_demo"
PASSWORD = "correct horse battery"
JOB_MS = 900_000  # a run of 12 pairs, on a machine that does other things too
WATCH = "addEventListener('click', (event) => event.isTrusted && window.infClicked(), true)"


@dataclass
class Counted:
    """What a person did."""

    clicks: int = 0
    fields: int = 0
    keys: int = 0
    pages: int = 0


class Person:
    """A browser of one person, which counts from `start` on."""

    def __init__(self, browser: Browser, url: str, counted: Counted) -> None:
        self.url, self.counted = url, counted
        context = browser.new_context(viewport={"width": 1280, "height": 900}, locale="en-GB")
        self.page: Page = context.new_page()
        self.page.set_default_timeout(PATIENCE)
        self.is_counting, self.path = False, ""
        context.expose_binding("infClicked", lambda _: self.count("clicks"))
        self.page.add_init_script(WATCH)
        self.page.on("framenavigated", lambda _: self.look())

    def count(self, what: str, number: int = 1) -> None:
        """Add to what is counted, once this person has started."""
        if self.is_counting:
            setattr(self.counted, what, getattr(self.counted, what) + number)

    def look(self) -> None:
        """Count a new path of the address."""
        path = urlsplit(self.page.url).path
        if path != self.path:
            self.path = path
            self.count("pages")

    def start(self) -> None:
        """From Home on, everything counts."""
        self.page.goto(f"{self.url}/")
        settle(self.page)
        self.path, self.is_counting = urlsplit(self.page.url).path, True

    def open(self, title: str) -> None:
        """Open a page by its menu entry, and by its tab where the entry opens another page."""
        section = next(view.section for view in MENU if view.title == title)
        place(self.page, "frame-menu").get_by_role("link", name=section, exact=True).click()
        tab = place(self.page, "frame-tabs").get_by_role("link", name=title, exact=True)
        heading = self.page.get_by_role("heading", level=1, name=title, exact=True)
        expect(tab.or_(heading).first).to_be_visible()
        settle(self.page)
        if not heading.count():
            tab.click()
            expect(heading).to_be_visible()
            settle(self.page)

    def unfold(self, title: str) -> None:
        """Open an expander: one click, however often a page that still draws folds it again."""
        before = self.counted.clicks
        unfold(self.page, title)
        self.counted.clicks = min(self.counted.clicks, before + 1)

    def choose_last(self, key: str) -> None:
        """Pick the last option of a select box: two clicks, however often it closes again."""
        before, wanted = self.counted.clicks, self.page.get_by_role("option")
        while not wanted.count():
            place(self.page, key).get_by_role("combobox").first.click()
            self.page.wait_for_timeout(500)
        wanted.last.click()
        settle(self.page)
        self.counted.clicks = before + 2

    def fill(self, key: str, text: str) -> None:
        """Type into a field."""
        fill(self.page, key, text)
        self.count("fields")

    def upload(self, number: int, path: Path) -> None:
        """Choose a file, which a person does by a click and the system's dialogue."""
        self.page.locator('input[type="file"]').nth(number).set_input_files(path)
        self.page.get_by_test_id("stFileChipName").get_by_text(path.name).wait_for()
        self.count("clicks")

    def key(self, name: str) -> None:
        """Press a key on a card."""
        wait_past_dwell(self.page)
        self.page.keyboard.press(name)
        self.count("keys")

    def next(self, name: str) -> None:
        """Follow a link or button of the page, past the menu."""
        main = self.page.get_by_test_id("stMain")
        main.get_by_role("link", name=name).or_(main.get_by_role("button", name=name)).first.click()
        settle(self.page)


def wait_for_job(page: Page, key: str) -> None:
    """Until the job that is followed under this key is done."""
    shown = place(page, f"{key}-job").get_by_text("done", exact=True)
    expect(shown.first).to_be_visible(timeout=JOB_MS)
    settle(page)


def import_to_training(person: Person, folder: Path) -> None:
    """Own file of pairs to a trained model: import, curate, release, train."""
    page = person.page
    lines = (DEMO / "pairs.jsonl").read_text(encoding="utf-8").splitlines()[:12]
    passages = {
        row["passage_id"]: row["text"]
        for row in map(json.loads, (DEMO / "passages.jsonl").read_text().splitlines())
    }
    own = folder / "own.csv"
    rows = [json.loads(line) for line in lines]
    cells = [(row["query_id"], row["query"], passages[row["passage_id"]]) for row in rows]
    quoted = [",".join('"' + str(cell).replace('"', '""') + '"' for cell in one) for one in cells]
    own.write_text("\n".join(["query_id,query,passage", *quoted]) + "\n", encoding="utf-8")
    person.open("Datasets")
    person.unfold("Import")
    person.fill("datasets.name", "own")
    person.fill("datasets.licence", "CC0-1.0")
    person.upload(0, own)
    press(page, "datasets.submit")
    expect(page.get_by_text("own: 12 pairs").first).to_be_visible()
    person.next("Curate the pairs of own")
    press(page, "curate.start")
    wait_for_job(page, "curate.follow")
    person.next("Release what was kept")
    press(page, "releases.start")
    wait_for_job(page, "releases.follow")
    person.next("Train on it")
    expect(place(page, "train.start").locator("button").first).to_be_visible()
    person.count("clicks")  # its button


def rescue(person: Person, folder: Path) -> None:
    """Find why groups were dropped, and approve one."""
    page = person.page
    person.open("Groups")
    page.get_by_role("button", name="Dropped, to review").click()
    settle(page)
    page.get_by_text("Dropped, ").first.wait_for()
    page.locator(".card .triplet, .bench .triplet").first.wait_for()
    person.key("a")
    page.get_by_text("saved", exact=True).first.wait_for()


def map_to_action(person: Person, folder: Path) -> None:
    """A topic of the map to its groups in the workbench."""
    page = person.page
    person.open("Coverage")
    table = page.locator('[class*="st-key-coverage-topics"] canvas').first
    table.wait_for()
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 15, box["y"] + 55)
    settle(page)
    link = page.get_by_role("link", name="Open")
    link.first.wait_for()
    link.first.click()
    page.locator(".bench").first.wait_for()
    settle(page)


def compare_runs(person: Person, folder: Path) -> None:
    """Two runs of a dataset, over the pairs that both did."""
    page = person.page
    person.open("Curate")
    person.unfold("Compare with another run")
    person.choose_last("curate.compare")
    expect(page.get_by_text("finished by both").first).to_be_visible()


def audit(person: Person, folder: Path) -> None:
    """A study of two items, two people invited into it, their agreement."""
    page, url, counted = person.page, person.url, person.counted
    person.open("Studies")
    person.unfold("New study")
    person.fill("studies.items", "2")
    person.fill("studies.overlap", "2")
    press(page, "studies.create_button")
    person.unfold("Invite people")
    person.fill("studies.invite.count", "2")
    press(page, "studies.invite")
    shown = page.get_by_test_id("stCode").filter(has_text="/invitation/")
    links = shown.locator("code").inner_text().split()
    browser = page.context.browser
    assert browser is not None
    for number, link in enumerate(links):
        guest = Person(browser, url, counted)
        guest.is_counting, guest.path = True, urlsplit(link).path
        guest.page.goto(url + urlsplit(link).path)
        for label, text in (("Name", f"guest {number}"), ("Password", PASSWORD)):
            guest.page.get_by_label(label).fill(text)
            guest.count("fields")
        guest.page.get_by_role("button", name="Create account").click()
        guest.page.locator(".card .pick").first.wait_for()
        for _ in range(2):
            guest.key("1")
            guest.page.get_by_text("saved", exact=True).first.wait_for()
        guest.page.context.close()
    person.open("Agreement")
    expect(page.get_by_text("Pairs of judges", exact=True).first).to_be_visible()


def second_run(store: Store) -> None:
    """A later run of the demo's dataset."""
    make_second_run(store, 1)


def admin(store: Store) -> None:
    """An account that signs in before the journey."""
    with store.write() as session:
        add_account(session, "ada", PASSWORD, role="admin", actor="bench")
        session.commit()


JOURNEYS: dict[str, tuple[Callable[[Person, Path], None], Callable[[Store], None] | None]] = {
    "own CSV to a trained model": (import_to_training, None),
    "why dropped, rescue one": (rescue, None),
    "map to action": (map_to_action, None),
    "compare two runs": (compare_runs, second_run),
    "audit with two people": (audit, admin),
}


def walk(browser: Browser, name: str, home: Path | None) -> dict[str, Any]:
    """The journey on a store of its own; what stopped it, if anything."""
    journey, prepare = JOURNEYS[name]
    counted = Counted()
    with demo_app(home) as server, tempfile.TemporaryDirectory() as folder:
        if prepare is not None:
            store = open_store(server.environment["INF_DATABASE_URL"])
            prepare(store)
            store.close()
        person = Person(browser, server.url, counted)
        if prepare is admin:
            person.page.goto(f"{server.url}/sign-in")
            person.page.get_by_label("Name").fill("ada")
            person.page.get_by_label("Password").fill(PASSWORD)
            person.page.get_by_role("button", name="Sign in").click()
            settle(person.page)
        person.start()
        stopped = ""
        try:
            journey(person, Path(folder))
        except Exception as error:
            stopped = str(error).splitlines()[0]
        person.page.context.close()
    return {"journey": name, **asdict(counted), "stopped": stopped}


def main() -> None:
    """Walk, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, help=HOME_HELP)
    parser.add_argument("--only", nargs="+", choices=JOURNEYS, default=list(JOURNEYS))
    given = parser.parse_args()
    rows = []
    with chromium_browser() as browser:
        for name in given.only:
            rows.append(walk(browser, name, given.home))
            print(json.dumps(rows[-1]), flush=True)
    print("| journey | clicks | fields | keys | page changes |\n|---|---:|---:|---:|---:|")
    for row in rows:
        if not row["stopped"]:
            numbers = " | ".join(str(row[what]) for what in ("clicks", "fields", "keys", "pages"))
            print(f"| {row['journey']} | {numbers} |")


if __name__ == "__main__":
    main()
