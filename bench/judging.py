"""Key to the next item painted, in a real Chromium, on the judging card and on the workbench.

    .venv/bin/python bench/judging.py [--items 60] [--only judge|graded|review]

Makes a store of its own, serves it, and on the judging card (a pick; yes/no and grades) and on the
workbench: answers ITEMS
items one after the other, each after the dwell time; presses a key 50 times, 30 ms apart; holds a
key for two seconds. Times are taken in the browser, from the event's capture to after the frame in
which the next item stood on the page. Every stored decision is compared with what was painted when
the key went down: the item (on the judging card its token, all that the browser has of it) and
of a pick also the text at the place that was chosen.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from asked_study import QUERY_OK, ROLE, make_asked_study, record  # noqa: E402
from browser import chromium_browser, wait_past_dwell  # noqa: E402
from playwright.sync_api import Page  # noqa: E402
from records_world import make_run  # noqa: E402
from restartable import restartable  # noqa: E402
from sqlalchemy import select  # noqa: E402
from study_world import make_world, sampled_study  # noqa: E402

from db.store import schema  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402
from db.tables import Assignment, Group, Item, Judgment, Passage, Review  # noqa: E402

owners_process(True)

WATCH = """
({ subject }) => {
  window.times = [];
  window.presses = [];
  const host = [...document.querySelectorAll("*")]
    .find((node) => node.shadowRoot?.querySelector(".card"));
  const card = host.shadowRoot.querySelector(".card");
  const shown = () => card.dataset[subject];
  let pressed = 0;
  for (const kind of ["keydown", "click"])
    window.addEventListener(kind, (event) => {  // on the window: before the card's own listener
      if (!event.isTrusted) return;
      pressed = event.timeStamp;
      window.presses.push({
        on: card.dataset[subject] || "",
        text: card.querySelector(".passage .text")?.textContent,
        painted: card.dataset.painted !== undefined,
      });
    }, true);
  const painted = (done) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(null);
  });
  let last = shown();
  new MutationObserver(() => {
    const now = shown();
    if (!now || now === last || !pressed) return;
    last = now;
    const from = pressed;
    pressed = 0;
    painted(() => window.times.push(performance.now() - from));
  }).observe(card, { attributes: true, childList: true, subtree: true });
}
"""
Decided = list[tuple[str, str | None]]


@dataclass(frozen=True)
class Desk:
    """A card: how its card is asked, and what it stores."""

    path: str
    subject: str
    ready: str
    key: str
    make: Callable[[Store, str, int], int]
    decided: Callable[[Store, int], Decided]


def make_study(store: Store, name: str, items: int) -> int:
    run_id = make_world(store, items, name=name)
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=items, overlap=1, name=name)
        session.commit()
        return study.id


def make_graded(store: Store, name: str, items: int) -> int:
    """Cards of a yes/no question and four grades."""
    rows = [record(number) for number in range(-(-items // 5))]
    with tempfile.TemporaryDirectory() as folder:
        return make_asked_study(store, Path(folder), rows, [QUERY_OK, ROLE], overlap=1)


def graded(store: Store, study_id: int) -> Decided:
    """The token of every answer of the study; a grade has no text that was chosen."""
    is_its = (Assignment.item_id == Judgment.item_id) & (Assignment.judge_id == Judgment.judge_id)
    with store.read() as session:
        query = select(Assignment.token).select_from(Judgment).join(Assignment, is_its)
        rows = session.scalars(query.where(Judgment.study_id == study_id).order_by(Judgment.id))
        return [(token, None) for token in rows]


def judged(store: Store, study_id: int) -> Decided:
    """Token and chosen text of every judgment of the study."""
    is_its = (
        (Assignment.item_id == Judgment.item_id)
        & (Assignment.judge_id == Judgment.judge_id)
        & (Assignment.study_id == Judgment.study_id)
    )
    with store.read() as session:
        rows = session.execute(
            select(Assignment.token, Judgment.choice, Item.candidates)
            .select_from(Judgment)
            .join(Item, Item.id == Judgment.item_id)
            .join(Assignment, is_its)
            .where(Judgment.study_id == study_id)
            .order_by(Judgment.id)
        ).all()
        texts = dict(session.execute(select(Passage.id, Passage.text)).all())
    return [
        (token, next(texts[one["passage_id"]] for one in candidates if one["label"] == choice))
        for token, choice, candidates in rows
    ]


def make_queue(store: Store, name: str, items: int) -> int:
    return make_run(store, kept=items, dropped=0, unwritten=0, name=name, offline=False)


def reviewed(store: Store, run_id: int) -> Decided:
    """Every review of the run by its group; it has no text that was chosen."""
    with store.read() as session:
        query = select(Review.group_id).join(Group, Group.id == Review.group_id)
        rows = session.scalars(query.where(Group.run_id == run_id).order_by(Review.id))
        return [(str(group_id), None) for group_id in rows]


PAGES = {
    "judge": Desk(
        "judge?study=",
        "item",
        ".card .pick",
        "1",
        make_study,
        judged,
    ),
    "graded": Desk("judge?study=", "item", ".card .answer", "1", make_graded, graded),
    "review": Desk(
        "groups?run=",
        "group",
        ".card .triplet",
        "a",
        make_queue,
        reviewed,
    ),
}


def wait_for_times(page: Page, count: int, milliseconds: int = 60_000) -> None:
    page.wait_for_function(f"() => window.times.length >= {count}", timeout=milliseconds)


def open_card(page: Page, url: str, kind: Desk) -> None:
    page.goto(url)
    page.wait_for_selector(kind.ready, timeout=60_000)
    page.evaluate(WATCH, {"subject": kind.subject})
    page.wait_for_timeout(400)


def compare(page: Page, decided: Decided) -> dict[str, int]:
    """Presses, decisions, and the decisions on something else than what was painted."""
    presses: list[dict[str, Any]] = page.evaluate("window.presses")
    seen = {(each["on"], each["text"]) for each in presses if each["painted"]}
    items = {item for item, _ in seen}
    misplaced = sum(
        item not in items if text is None else (item, text) not in seen for item, text in decided
    )
    doubled = len(decided) - len({item for item, _ in decided})
    return {
        "presses": len(presses),
        "decided": len(decided),
        "misplaced": misplaced,
        "doubled": doubled,
    }


def measure_card(page: Page, kind: Desk, store: Store, base: str, items: int) -> dict[str, Any]:
    """One by one, a burst, a held key: each with items of its own."""
    found: dict[str, Any] = {}

    def press_all() -> None:
        for number in range(items):
            wait_past_dwell(page)
            page.keyboard.press(kind.key)
            wait_for_times(page, number + 1)

    def burst() -> None:
        for _ in range(50):
            page.keyboard.press(kind.key)
            page.wait_for_timeout(30)

    def hold() -> None:
        for _ in range(60):  # Chromium's own repeat: the first one is a press
            page.keyboard.down(kind.key)
            page.wait_for_timeout(33)
        page.keyboard.up(kind.key)

    for name, act in (("one_by_one", press_all), ("burst_30_ms", burst), ("held_2_s", hold)):
        subject = kind.make(store, f"{kind.subject} {name}", items + 60)
        open_card(page, f"{base}/{kind.path}{subject}", kind)
        act()
        page.get_by_text("saved", exact=True).wait_for(timeout=60_000)
        found[name] = compare(page, kind.decided(store, subject))
        if act is press_all:
            found[name] |= summarise(page.evaluate("window.times"))
    return found


def summarise(times: list[float]) -> dict[str, float]:
    cut = statistics.quantiles(times, n=20)
    return {"times": len(times), "p50_ms": round(cut[9], 1), "p95_ms": round(cut[18], 1)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=60)
    parser.add_argument("--only", choices=PAGES)
    given = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["INF_HOME"] = folder
        store = open_store(f"sqlite:///{home / 'inf.db'}")
        schema.upgrade(store)
        with restartable(home, store.url) as server, chromium_browser() as browser:
            for name, kind in PAGES.items():
                if given.only in (None, name):
                    page = browser.new_page(viewport={"width": 1280, "height": 900})
                    found[name] = measure_card(page, kind, store, server.url, given.items)
                    page.close()
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
