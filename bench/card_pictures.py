"""Pictures of the judging card as an annotator sees it, for docs/concepts/judging-comfort.md.

    .venv/bin/python bench/card_pictures.py [--into docs/pictures] [--only NAME]

A store of its own with items of the demo set (six passages each), a server, Chromium: at 1280 by
800, at widths of 800 and 400 px and at 200 % zoom (of 1280 × 800), light and dark; and the 400 px
page, scrolled, where the question has to stay. Prints as JSON, for each picture, what of the
card is on the screen: the share of the question, of each passage, and whether a text is cut off.
"""

import argparse
import io
import json
import os
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from browser import chromium_browser, settled  # noqa: E402
from card_client import add_annotators  # noqa: E402
from finished_run import finished_run  # noqa: E402
from PIL import Image  # noqa: E402
from playwright.sync_api import Browser, Page  # noqa: E402
from restartable import restartable  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402

from app.access.identity import COOKIE  # noqa: E402
from db.store import schema  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402
from db.study.studies import add_study  # noqa: E402
from db.tables import Group, Item, Pair, Passage  # noqa: E402

owners_process(True)

DEMO = ROOT / "curation" / "demo"
GROUPS = 6
LABELS = ("positive", "instruction_negative", "query_negative")
QUALITY = 72


@dataclass(frozen=True)
class View:
    """A picture: the window in CSS pixels, and how far the page is scrolled."""

    name: str
    width: int
    height: int
    scale: float = 1
    is_scrolled: bool = False


VIEWS = (
    View("1280x800", 1280, 800),
    View("800", 800, 1000),
    View("400", 400, 800),
    View("400-scrolled", 400, 800, is_scrolled=True),
    View("zoom-200", 640, 400, scale=2),
)
# Of each part of the card, the share of its height inside the window; and texts that are cut off.
SEEN = """
() => {
  const all = [...document.querySelectorAll("*")];
  const host = all.find((node) => node.shadowRoot?.querySelector(".card"));
  const card = host.shadowRoot;
  const share = (node) => {
    const box = node.getBoundingClientRect();
    const seen = Math.min(box.bottom, innerHeight) - Math.max(box.top, 0);
    return Math.round(100 * Math.max(0, seen) / box.height) / 100;
  };
  const texts = [...card.querySelectorAll(".text, button")];
  const cut = texts.filter((n) => n.scrollWidth > n.clientWidth + 1).length;
  const own = [...card.querySelectorAll(".passage .text")];
  return {
    question: share(card.querySelector(".question")),
    question_scrolls: (() => {
      const node = card.querySelector(".question");
      return node.scrollHeight > node.clientHeight + 1;
    })(),
    passages: own.map(share),
    passages_that_scroll: own.filter((n) => n.scrollHeight > n.clientHeight + 1).length,
    cut_off: cut,
    sideways: document.documentElement.scrollWidth > innerWidth,
  };
}
"""


def rows(name: str) -> list[dict[str, Any]]:
    lines = (DEMO / name).read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def make_study(session: Session) -> int:
    """Items of six passages: those of the group and three of other groups."""
    texts = {
        row["passage_id"]: row["text"]
        for row in rows("passages.jsonl")
        if row.get("language") == "en"
    }
    of_query = {
        row["query_id"]: texts[row["passage_id"]]
        for row in rows("pairs.jsonl")
        if row["passage_id"] in texts
    }
    written = rows("recording/groups.jsonl")[:GROUPS]
    run = finished_run(session, "demo", provider="recorded", offline=False)
    others = list(dict.fromkeys(of_query.values()))[-3 * GROUPS :]
    items = []
    for number, row in enumerate(written):
        own = (
            of_query[row["query_id"]],
            row["passage_instruction_negative"],
            row["passage_query_negative"],
        )
        passages = [
            Passage(
                dataset_id=run.dataset_id,
                external_id=f"{number}-{place}",
                text=text,
                sha256=f"{number}-{place}",
                origin="seed",
            )
            for place, text in enumerate([*own, *others[3 * number : 3 * number + 3]])
        ]
        session.add_all(passages)
        session.flush()
        pair = Pair(
            dataset_id=run.dataset_id,
            external_id=str(number),
            query=row["query"],
            passage_id=passages[0].id,
        )
        session.add(pair)
        session.flush()
        group = Group(
            run_id=run.id, pair_id=pair.id, state="done", stage="validation", verdict="kept"
        )
        session.add(group)
        session.flush()
        labels = (*LABELS, "distractor_1", "distractor_2", "distractor_3")
        item = Item(
            group_id=group.id,
            scenario="positive",
            expected="positive",
            instruction=row["instruction_positive"],
            query=row["query"],
            candidates=[
                {"passage_id": one.id, "label": label}
                for one, label in zip(passages, labels, strict=True)
            ],
        )
        session.add(item)
        session.flush()
        items.append(item.id)
    study = add_study(session, run_id=run.id, item_ids=items, overlap=2, name="Everyday questions")
    return study.id


def take(browser: Browser, view: View, scheme: str, url: str, cookie: str) -> tuple[bytes, Any]:
    """The picture as PNG, and what of the card it shows."""
    context = browser.new_context(
        viewport={"width": view.width, "height": view.height},
        device_scale_factor=view.scale,
        color_scheme=scheme,  # type: ignore[arg-type]
        locale="en-GB",
    )
    context.add_cookies([{"name": COOKIE, "value": cookie, "url": url}])
    page = context.new_page()
    page.goto(url)
    settled(page)
    page.wait_for_selector(".card .pick", timeout=90_000)
    if view.is_scrolled:
        scroll_down(page)
    page.mouse.move(view.width - 2, view.height - 2)
    page.wait_for_timeout(800)
    found = page.evaluate(SEEN)
    picture = page.screenshot()
    context.close()
    return picture, found


def scroll_down(page: Page) -> None:
    """So far that the third passage begins below the question."""
    page.locator(".passage .text").nth(3).scroll_into_view_if_needed()
    page.wait_for_timeout(300)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--into", type=Path, default=ROOT / "docs" / "pictures")
    parser.add_argument("--only", choices=[view.name for view in VIEWS])
    given = parser.parse_args()
    given.into.mkdir(parents=True, exist_ok=True)
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["INF_HOME"] = folder
        store: Store = open_store(f"sqlite:///{folder}/inf.db")
        schema.upgrade(store)
        with store.write() as session:
            study_id = make_study(session)
            session.commit()
        ((_, cookie),) = add_annotators(store, 1)
        with restartable(Path(folder), store.url) as server, chromium_browser() as browser:
            url = f"{server.url}/judge?study={study_id}"
            for view in VIEWS:
                for scheme in ("light", "dark"):
                    if given.only not in (None, view.name):
                        continue
                    name = f"judging-{view.name}-{scheme}.webp"
                    png, found[name] = take(browser, view, scheme, url, cookie)
                    Image.open(io.BytesIO(png)).save(given.into / name, quality=QUALITY, method=6)
                    found[name]["kilobytes"] = (given.into / name).stat().st_size // 1000
        store.close()
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
