"""Key (or click) to the next item painted, in a real Chromium: the card and the plain page.

`python bench/judging.py [ITEMS]` makes a store of its own, serves it, answers ITEMS items one after
the other on each page, each after the dwell time, and prints p50 and p95. Both times are taken in
the browser: at the event's capture, and after the frame in which the next item stood on the page.
"""

import json
import os
import statistics
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from browser import chromium_browser  # noqa: E402
from playwright.sync_api import Page  # noqa: E402
from playwright.sync_api import TimeoutError as PlaywrightTimeout  # noqa: E402
from restartable import restartable  # noqa: E402
from study_world import make_world  # noqa: E402

from db import schema, studies  # noqa: E402
from db.store import Store, open_store  # noqa: E402

WATCH = """
(isCard) => {
  window.times = [];
  let pressed = 0;
  for (const kind of ["keydown", "click"])
    window.addEventListener(kind, (event) => { if (event.isTrusted) pressed = event.timeStamp; },
      true);  // on the window: before the card's own listener
  const painted = (done) => requestAnimationFrame(() => {
    const channel = new MessageChannel();
    channel.port1.onmessage = done;
    channel.port2.postMessage(null);
  });
  const host = isCard && [...document.querySelectorAll("*")]
    .find((node) => node.shadowRoot?.querySelector(".card"));
  const watched = host ? host.shadowRoot.querySelector(".card") : document.body;
  const shown = () => host ? watched.dataset.item
    : document.querySelector("[class*='st-key-judge-asked']")?.textContent;
  let last = shown();
  new MutationObserver(() => {
    const now = shown();
    if (!now || now === last || !pressed) return;
    last = now;
    const from = pressed;
    pressed = 0;
    painted(() => window.times.push(performance.now() - from));
  }).observe(watched, { attributes: true, childList: true, subtree: true, characterData: true });
}
"""


def make_study(store: Store, name: str, items: int) -> int:
    run_id = make_world(store, items, name=name)
    with store.write() as session:
        study = studies.create_study(session, run_id=run_id, items=items, overlap=1, name=name)
        session.commit()
        return study.id


def wait_for_times(page: Page, count: int, milliseconds: int = 20_000) -> None:
    page.wait_for_function(f"window.times.length >= {count}", timeout=milliseconds)


def measure_card(page: Page, url: str, items: int) -> list[float]:
    page.goto(url)
    page.wait_for_selector(".card .pick", timeout=60_000)
    page.evaluate(WATCH, True)
    for number in range(items):
        page.wait_for_timeout(400)
        page.keyboard.press("123"[number % 3])
        wait_for_times(page, number + 1)
    return list(page.evaluate("window.times"))


def measure_plain(page: Page, url: str, items: int) -> tuple[list[float], int]:
    """The times, and how many clicks led to nothing within five seconds and were made again."""
    lost = 0
    page.goto(url)
    page.wait_for_selector(".card .pick", timeout=60_000)
    page.get_by_text("Plain page").click()
    page.wait_for_selector("[class*='st-key-judge-pick']", timeout=60_000)
    page.wait_for_timeout(1500)
    page.evaluate(WATCH, False)
    for number in range(items):
        page.wait_for_timeout(400)
        while len(page.evaluate("window.times")) <= number:
            page.locator("[class*='st-key-judge-pick'] button:visible").nth(number % 3).click()
            try:
                wait_for_times(page, number + 1, milliseconds=5_000)
            except PlaywrightTimeout:
                lost += 1
    return list(page.evaluate("window.times")), lost


def summarise(times: list[float]) -> dict[str, float]:
    cut = statistics.quantiles(times, n=20)
    return {"items": len(times), "p50_ms": round(cut[9], 1), "p95_ms": round(cut[18], 1)}


def main() -> None:
    items = int(sys.argv[1]) if len(sys.argv) > 1 else 60
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        os.environ["INF_HOME"] = folder
        store = open_store(f"sqlite:///{home / 'inf.db'}")
        schema.upgrade(store)
        card = make_study(store, "card", items + 5)
        plain = make_study(store, "plain", items + 5)
        with restartable(home, store.url) as server, chromium_browser() as browser:
            page = browser.new_page(viewport={"width": 1280, "height": 900})
            times = measure_card(page, f"{server.url}/judge?study={card}", items)
            found = {"card": summarise(times)}
            times, lost = measure_plain(page, f"{server.url}/judge?study={plain}", items)
            found["plain"] = summarise(times) | {"clicks_lost": lost}
    sys.stdout.write(json.dumps(found, indent=2) + "\n")


if __name__ == "__main__":
    main()
