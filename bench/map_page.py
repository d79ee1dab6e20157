"""The map of the Coverage page in a browser: seconds to the picture, milliseconds per move.

    .venv/bin/python bench/map_page.py [--points 200000] [--picture FOLDER]

A store is made with one stored map of many texts (seeded heaps of points, four corpora), served
by `inf serve`, and opened in headless Chromium, 1280 pixels wide, without a graphics card. It
reports the seconds from the request to the drawn picture; while the map is moved and zoomed, the
time between two frames of the browser, and from a move of the mouse to the second frame
after it (33 ms at least, of which the two frames are most); how long the words take after the
pointer rests on a point; and how long a box takes until its texts are listed, whose number must be
that of the stored points inside it.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from db.shape import INF_IR

ROOT = Path(__file__).resolve().parent.parent
sys.path[:] = [place for place in sys.path if Path(place).resolve() != Path(__file__).parent]
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from browser import FLAGS, PROGRAM  # noqa: E402
from live_server import serving  # noqa: E402
from playwright.sync_api import Page, sync_playwright  # noqa: E402

from analysis.files.corpora import Corpus  # noqa: E402
from analysis.map.coverage import points_frame, points_table, to_bytes  # noqa: E402
from db.corpus.texts import CorpusText  # noqa: E402
from db.outcome.analyses import get_analysis, store_analysis  # noqa: E402
from db.store import schema  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import open_store  # noqa: E402

owners_process(True)

CORPORA, HEAPS = 4, 40
SIDES = ("Width", "Height")
PATIENCE = 180_000
MAP = ".st-key-coverage-map .map canvas"
RESTED = f"{MAP}[data-rested]"
FRAMES = """() => {
  window.frames_seen = [];
  let last = performance.now();
  const step = now => {
    window.frames_seen.push(now - last); last = now;
    if (window.frames_seen) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}"""
SEEN = "() => { const seen = window.frames_seen; window.frames_seen = null; return seen; }"
TWO_FRAMES = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))"


def fill(points: int) -> None:
    """A map of a number of texts, in the store that the environment names."""

    store = open_store()
    schema.upgrade(store)
    generator = np.random.default_rng(0)
    heap = generator.integers(0, HEAPS, points)
    xy = generator.normal(0, 6, (HEAPS, 2))[heap] + generator.normal(0, 0.7, (points, 2))
    texts = [
        f"text number {number} of heap {heap[number]}, of no meaning" for number in range(points)
    ]
    corpora = [
        Corpus(
            f"corpus {each}",
            "dataset",
            [CorpusText("query", "positive", text) for text in texts[each::CORPORA]],
            shape=INF_IR,
        )
        for each in range(CORPORA)
    ]
    places = dict(zip(texts, xy.astype(np.float32), strict=True))
    result = {
        "model": "none: made for a measurement",
        "seed": 0,
        "points": points,
        "different": points,
        "corpora": [{"corpus": each.name, "run_id": None, "offline": True} for each in corpora],
        "fields": {},
        "covered": [],
    }
    with store.write() as session:
        store_analysis(
            session,
            kind="coverage",
            inputs_sha256="bench",
            config={},
            result=result,
            payload=to_bytes(points_table(corpora, places, set())),
        )
        session.commit()


def measure(page: Page, url: str) -> None:
    """Open the page, drag, zoom, hover and select, and print what it took."""
    page.set_default_timeout(PATIENCE)
    began = time.perf_counter()
    page.goto(f"{url}/coverage")
    page.locator(RESTED).wait_for()
    print(f"from the request to the drawn map: {time.perf_counter() - began:.1f} s", flush=True)
    drawn = page.locator(MAP)
    drawn.scroll_into_view_if_needed()
    box = drawn.bounding_box()
    assert box is not None
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    _follow(page, "dragged", lambda number: page.mouse.move(x + 8 * number, y + 4 * number))
    page.mouse.up()
    _follow(page, "zoomed", lambda number: page.mouse.wheel(0, -60 if number < 20 else 60))
    page.locator(RESTED).wait_for()
    _hover(page, x, y)
    _select(page, x, y)


def _hover(page: Page, x: float, y: float) -> None:
    """From the rest of the pointer on a point to its triplet."""
    words = page.locator(".st-key-coverage-map .tooltip:not([hidden])")
    page.mouse.move(x + 20, y + 20)
    for step in range(60):
        began = time.perf_counter()
        page.mouse.move(x + 20 + 4 * step, y + 20)
        page.wait_for_timeout(1000)
        if words.count():
            break
    words.wait_for()
    page.mouse.move(x, y + 200)
    page.mouse.move(x + 20 + 4 * step, y + 20)
    began = time.perf_counter()
    words.wait_for()
    print(f"from the rest of the pointer to the words: {time.perf_counter() - began:.2f} s")


def _select(page: Page, x: float, y: float) -> None:
    """From the end of a box to the list of its texts, as many as are stored inside."""
    page.locator(".map button[data-mode=box]").click()
    page.mouse.move(x - 150, y - 150)
    page.mouse.down()
    page.mouse.move(x + 150, y + 150, steps=5)
    began = time.perf_counter()
    page.mouse.up()
    note = page.get_by_text("texts of 0 groups")
    note.wait_for()
    seconds = time.perf_counter() - began
    view = json.loads(page.locator(RESTED).get_attribute("data-view") or "")
    width, height = (page.locator(MAP).evaluate(f"it => it.client{each}") for each in SIDES)
    per_pixel = (view["x"][1] - view["x"][0]) / width
    middle = [(view[side][0] + view[side][1]) / 2 for side in ("x", "y")]
    with open_store().read() as session:
        points = points_frame(get_analysis(session, 1).payload or b"")
    reach = 150 * per_pixel
    inside = (abs(points["x"] - middle[0]) <= reach) & (abs(points["y"] - middle[1]) <= reach)
    print(
        f"from a box to its list: {seconds:.2f} s; {note.inner_text()}, about "
        f"{int(inside.sum()):,} of the stored lie there ({height} pixels high)",
        flush=True,
    )


def _follow(page: Page, what: str, move: object) -> None:
    page.evaluate(FRAMES)
    moves = []
    for number in range(30):
        began = time.perf_counter()
        move(number)  # type: ignore[operator]
        page.evaluate(TWO_FRAMES)
        moves.append(1000 * (time.perf_counter() - began))
    frames = [each for each in page.evaluate(SEEN) if each > 0]
    print(
        f"{what}: a frame every {statistics.median(frames):.0f} ms "
        f"(95 of 100 within {np.quantile(frames, 0.95):.0f} ms), a move and two frames "
        f"{statistics.median(moves):.0f} ms",
        flush=True,
    )


def main() -> None:
    """Serve the map and measure it."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--points", type=int, default=200_000)
    parser.add_argument("--picture", type=Path, help="Keep a picture of the page in this folder.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        os.environ["INF_HOME"] = str(folder / "home")
        os.environ.pop("INF_DATABASE_URL", None)
        fill(arguments.points)
        with serving(folder / "serve", INF_HOME=os.environ["INF_HOME"]) as server:
            browser = playwright.chromium.launch(executable_path=PROGRAM, args=FLAGS)
            page = browser.new_page(viewport={"width": 1280, "height": 1000})
            print(f"{arguments.points:,} points")
            measure(page, server.url)
            if arguments.picture:
                page.screenshot(path=arguments.picture / f"map_{arguments.points}.png")
            browser.close()


if __name__ == "__main__":
    main()
