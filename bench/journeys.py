"""Clicks, fields, keys and seconds of five journeys in Chromium, and the page that says them.

    .venv/bin/python bench/journeys.py [--home DIR] [--only NAME …] [--write]

On copies of the demo's store (--home, or without it a demo of its own) and on an empty one. Counted
are a person's clicks (a chosen file is one), fields typed into, keys pressed on a card, changes of
the page (paths in the address) and seconds, those of jobs included. Prints a row per journey as
JSON; --write puts all five into docs/journeys.md, with their targets.
"""

import argparse
import json
import os
import platform
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from demo_app import HOME_HELP, ROOT, chromium_browser, demo_app, empty_app, settle
from playwright.sync_api import Browser, Page, expect

sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from browser import PATIENCE, wait_past_dwell  # noqa: E402
from hub_server import hub_server  # noqa: E402
from openai_server import Server  # noqa: E402
from page_hands import fill, place, press, unfold  # noqa: E402

from app.kit.menu import MENU  # noqa: E402
from db.people.accounts import add_account  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402

owners_process(True)

DEMO = ROOT / "tests" / "data" / "first_demo"
PASSWORD = "correct horse battery"
JOB_MS = 900_000  # a training, on a machine that does other things too
WATCH = "addEventListener('click', (event) => event.isTrusted && window.infClicked(), true)"


@dataclass
class Counted:
    """What a person did."""

    clicks: int = 0
    fields: int = 0
    keys: int = 0
    pages: int = 0
    seconds: float = 0.0


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

    def start(self, page: str) -> None:
        """From this page on, everything counts."""
        self.page.goto(f"{self.url}/{page}")
        settle(self.page)
        self.path, self.is_counting = urlsplit(self.page.url).path, True

    def open(self, title: str) -> None:
        """Open a page by its menu entry, and by its tab where the entry opens another page."""
        section = next(view.section for view in MENU if view.title == title)
        first = next(view.title for view in MENU if view.section == section)
        place(self.page, "frame-menu").get_by_role("link", name=section, exact=True).click()
        if title != first:  # what stands there meanwhile says nothing: a slow page comes later
            place(self.page, "frame-tabs").get_by_role("link", name=title, exact=True).click()
        heading = self.page.get_by_role("heading", level=1, name=title, exact=True)
        expect(heading).to_be_visible()
        settle(self.page)

    def unfold(self, title: str) -> None:
        """Open an expander: one click, however often a page that still draws folds it again."""
        before = self.counted.clicks
        unfold(self.page, title)
        self.counted.clicks = min(self.counted.clicks, before + 1)

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


def newcomer(person: Person, folder: Path) -> None:
    """See that an instruction moves a passage to the first place, on the first page."""
    swap = place(person.page, "home-swap")
    before = swap.inner_text()
    swap.get_by_role("radio", name="Instruction 2").or_(
        swap.get_by_role("button", name="Instruction 2")
    ).first.click()
    expect(swap).not_to_have_text(before, use_inner_text=True)


def engineer(person: Person, folder: Path) -> None:
    """A CSV with odd columns and a server's URL to the first kept group, without a shell."""
    page = person.page
    passages = {
        row["passage_id"]: row["text"]
        for row in map(json.loads, (DEMO / "passages.jsonl").read_text().splitlines())
    }
    rows = [json.loads(line) for line in (DEMO / "pairs.jsonl").read_text().splitlines()[:6]]
    cells = [("nr", "was man sucht", "beste Stelle")]
    cells += [(row["query_id"], row["query"], passages[row["passage_id"]]) for row in rows]
    quoted = (";".join('"' + str(cell).replace('"', '""') + '"' for cell in one) for one in cells)
    (folder / "odd.csv").write_text("\n".join(quoted) + "\n", encoding="utf-8")
    with Server(models=("small",)) as server:
        person.open("Curate")
        person.upload(0, folder / "odd.csv")
        expect(page.get_by_text("6 pairs and 6 passages would be imported").first).to_be_visible()
        person.fill("datasets.name", "own")
        press(page, "datasets.submit")
        expect(page.get_by_text("1. Pairs · own").first).to_be_visible()
        person.fill("connections.name", "lab")
        person.fill("connections.url", server.url)
        press(page, "connections.submit")
        expect(page.get_by_text("lab answers").first).to_be_visible()
        press(page, "curate.start")
        wait_for_job(page, "curate.follow")
        person.next("Groups")
        kept = page.locator(".bench .title .label-badge.kept")
        kept.or_(page.locator(".bench .row .label-badge.kept")).first.wait_for()
        if not kept.count():  # the first of the list was dropped
            page.locator(".bench .row", has=page.locator(".label-badge.kept")).first.click()
        expect(kept).to_be_visible()


def coordinator(person: Person, folder: Path) -> None:
    """From a run to links for twenty people."""
    page = person.page
    person.next("Let people judge a sample")
    press(page, "studies.create_button")
    person.fill("studies.invite.count", "20")
    press(page, "studies.invite")
    shown = page.get_by_test_id("stCode").filter(has_text="/invitation/")
    assert len(shown.locator("code").inner_text().split()) == 20


def annotator(person: Person, folder: Path) -> None:
    """Thirty items by keys alone."""
    page = person.page
    for number in range(30):
        page.locator(".card .pick").first.wait_for()
        item = page.locator(".card").get_attribute("data-item") or ""
        person.key(str(number % 3 + 1))
        page.wait_for_function(
            "item => document.querySelector('.card')?.dataset.item !== item", arg=item
        )
    page.get_by_text("saved", exact=True).first.wait_for()


def trainer(person: Person, folder: Path) -> None:
    """From a release to a checkpoint on the Hub (a stand-in); two steps of training."""
    page = person.page
    person.next("Train on it")
    person.fill("train.max_steps", "2")
    press(page, "train.start")
    wait_for_job(page, "train.job")
    person.unfold("Push the model to the Hub")
    person.fill("train.model.repo", "ada/mine")
    press(page, "train.model.push_start")
    wait_for_job(page, "train.model.push")


def admin(store: Store) -> None:
    """An account that signs in before the journey."""
    with store.write() as session:
        add_account(session, "ada", PASSWORD, role="admin", actor="bench")
        session.commit()


def study_of_thirty(store: Store) -> None:
    """An annotator's study of the demo's run."""
    from app.access.identity import owner
    from app.operations.judging import studies
    from curation.judging.request import StudyPlan

    with store.write() as session:
        add_account(session, "ada", PASSWORD, role="annotator", actor="bench")
        session.commit()
    studies.create(owner("bench"), StudyPlan(dataset="demo", items=30, overlap=1))


@dataclass(frozen=True)
class Journey:
    """What is walked, from which page, on which store, and how much it may take."""

    walk: Callable[[Person, Path], None]
    start: str
    limit: str
    most: int  # clicks and fields
    prepare: Callable[[Store], None] | None = None
    on_empty: bool = False


JOURNEYS = {
    "newcomer": Journey(newcomer, "", "at most 2 clicks", 2),
    "engineer": Journey(engineer, "", "at most 12 fields and clicks", 12, on_empty=True),
    "coordinator": Journey(coordinator, "curate", "at most 6 fields and clicks", 6, admin),
    "annotator": Journey(annotator, "judge", "keys only", 0, study_of_thirty),
    "trainer": Journey(trainer, "releases", "at most 8 fields and clicks", 8),
}


def walk(browser: Browser, name: str, home: Path | None) -> dict[str, Any]:
    """The journey on a store of its own; what stopped it, if anything."""
    journey, counted = JOURNEYS[name], Counted()
    with (
        hub_server() if name == "trainer" else nullcontext() as hub,
        tempfile.TemporaryDirectory() as folder,
    ):
        if hub is not None:
            os.environ |= {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_writer", "HF_HUB_OFFLINE": "0"}
            os.environ |= {"HF_HUB_DISABLE_XET": "1", "HF_HOME": f"{folder}/hf"}
        with empty_app() if journey.on_empty else demo_app(home) as server:
            if journey.prepare is not None:
                store = open_store(server.environment["INF_DATABASE_URL"])
                os.environ["INF_DATABASE_URL"] = server.environment["INF_DATABASE_URL"]
                journey.prepare(store)
                store.close()
            person = Person(browser, server.url, counted)
            if journey.prepare is not None:
                person.page.goto(f"{server.url}/sign-in")
                person.page.get_by_label("Name").fill("ada")
                person.page.get_by_label("Password").fill(PASSWORD)
                person.page.get_by_role("button", name="Sign in").click()
                settle(person.page)
            person.start(journey.start)
            stopped, began = "", time.perf_counter()
            try:
                journey.walk(person, Path(folder))
            except Exception as error:
                stopped = str(error).splitlines()[0]
            counted.seconds = round(time.perf_counter() - began, 1)
            person.page.context.close()
    met = not stopped and counted.clicks + counted.fields <= journey.most
    return {"journey": name, **asdict(counted), "target_met": met, "stopped": stopped}


PAGE = ROOT / "docs" / "journeys.md"
LEAD = """# Five journeys

After this page you can see how many clicks each kind of user needs, and repeat the walk.

What five people do from the first click to what they came for, walked in Chromium on the real
pages; a field typed into and a key pressed on a card are counted apart from clicks. Seconds are of
one walk on a machine of {cores} cores (mean load {load:.1f}), jobs included: they say
what waits, not how fast a machine of yours is.

| who | what | target | clicks | fields | keys | page changes | seconds |
|---|---|---|---:|---:|---:|---:|---:|
"""


def page_of(rows: list[dict[str, Any]]) -> str:
    """docs/journeys.md."""
    lines = []
    for row in rows:
        journey = JOURNEYS[row["journey"]]
        what = str(journey.walk.__doc__).rstrip(".")
        target = f"{journey.limit}, {'met' if row['target_met'] else 'missed'}"
        numbers = (row[name] for name in ("clicks", "fields", "keys", "pages", "seconds"))
        lines.append(f"| {row['journey']} | {what} | {target} | {' | '.join(map(str, numbers))} |")
    lead = LEAD.format(cores=os.cpu_count(), load=os.getloadavg()[0])
    command = "`.venv/bin/python bench/journeys.py --home DIR --write`"
    return f"{lead}{chr(10).join(lines)}\n\nBy {command} (Python {platform.python_version()}).\n"


def main() -> None:
    """Walk, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--home", type=Path, help=HOME_HELP)
    parser.add_argument("--only", nargs="+", choices=JOURNEYS, default=list(JOURNEYS))
    parser.add_argument("--write", action="store_true", help="write docs/journeys.md")
    given = parser.parse_args()
    rows = []
    with chromium_browser() as browser:
        for name in given.only:
            rows.append(walk(browser, name, given.home))
            print(json.dumps(rows[-1]), flush=True)
    if given.write and not any(row["stopped"] for row in rows):
        PAGE.write_text(page_of(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
