"""Layout shift, first content, settling and bytes of every page, in Chromium.

    .venv/bin/python bench/page_speed.py [--home DIR] [--groups 100000] [--large-home DIR]
        [--no-demo] [--only PAGE …] [--widths 1280] [--shifts]

On a copy of the demo's store (--home, or without it a demo of its own) and,
with --groups, on a store of that many groups (`bench/large_store.py`). Each page is opened three
times, at 1280 and 800 pixels: by a click from Home (or for Home, from Jobs), again by a click in
the same window after Home (Jobs), and as the first page of a browser without a cache. The server
was asked for Home alone before, so that the first click is its own first time. The click is the
script's own, so that no shift is excused as a person's. The browser without a cache is not
Playwright's: that listens to every exception, also those that scripts catch, and for the places in
its trace V8 reads the script of figures again, 0.5 to 0.8 s of a page.

- CLS: the largest window of layout shifts (at most 5 s, gaps under 1 s), of what is on the screen.
- LCP: the largest paint of the first page.
- content: from the click until the new page's title is visible.
- settled: from the click until the page's script has ended and no placeholder is left; what begins
  a second later is a page that follows its work every few seconds, and counts no more.
- MB: of HTTP as transferred, and of the WebSocket before its compression.
- CPU: of the server's processes for that click, which a loaded machine does not change much.

Prints a row per page and store as JSON, then a table. --shifts also names what moved.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from demo_app import HOME_HELP, ROOT, chromium_browser, demo_app, settle
from playwright.sync_api import Browser, CDPSession, Page
from websockets.sync.client import ClientConnection, connect

sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

import psutil  # noqa: E402
from browser import FLAGS, PATIENCE, PROGRAM  # noqa: E402
from large_store import fill  # noqa: E402
from restartable import restartable  # noqa: E402
from waiting import until  # noqa: E402

from app.kit.menu import MENU, View  # noqa: E402
from db.store import schema  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import open_store  # noqa: E402

owners_process(True)

WIDTHS = (1280, 800)
HEIGHT = 900
QUIET_MS = 1_500  # after the page is settled: components and figures are drawn late
SOURCES = 4
MEASURE = """() => {
  const name = (node) => {
    if (!node) return "?";
    const one = node.nodeType === 1 ? node : node.parentElement;
    const key = one?.closest("[class*=st-key-]")?.className.match(/st-key-[^ ]+/)?.[0] ?? "";
    const part = one?.closest("[data-testid]")?.dataset.testid ?? one?.tagName;
    return `${part} ${key} ${(one?.textContent ?? "").trim().slice(0, 30)}`;
  };
  const found = { shifts: [], lcp: 0, from: 0, title: null, content: null, settled: null };
  const POLL_MS = 1000;
  window.measured = found;
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) {
      const sources = (each.sources ?? []).map((s) =>
        `${name(s.node)} ${Math.round(s.previousRect.x)},${Math.round(s.previousRect.y)}`
        + ` ${Math.round(s.previousRect.width)}x${Math.round(s.previousRect.height)}`
        + ` > ${Math.round(s.currentRect.x)},${Math.round(s.currentRect.y)}`
        + ` ${Math.round(s.currentRect.width)}x${Math.round(s.currentRect.height)}`);
      found.shifts.push({ at: each.startTime, value: each.value, sources });
    }
  }).observe({ type: "layout-shift", buffered: true });
  new PerformanceObserver((list) => {
    for (const each of list.getEntries()) found.lcp = each.startTime;
  }).observe({ type: "largest-contentful-paint", buffered: true });
  const busy = '[data-test-script-state="running"], [data-test-script-state="rerunRequested"], '
    + '[data-testid="stSkeleton"], [data-testid="stSpinner"]';
  let was = true, isPoll = false;
  const look = () => {
    const now = performance.now();
    if (found.content === null) {  // a look at what is visible costs a layout
      const head = document.querySelector('[data-testid="stMain"] h1');
      const isSeen = head?.checkVisibility({ visibilityProperty: true });
      if (isSeen && head.textContent !== found.title) found.content = now;
    }
    const app = document.querySelector('[data-testid="stApp"]');
    const is = found.content === null || !app || document.querySelector(busy) !== null;
    if (!was && is && found.settled !== null) isPoll = now - found.settled > POLL_MS;
    if (found.content === null) isPoll = false;
    if (was && !is && !isPoll) found.settled = now;
    was = is;
    requestAnimationFrame(look);
  };
  requestAnimationFrame(look);
}"""
CLICK = """(link) => {
  const found = window.measured;
  found.shifts = [];
  found.title = document.querySelector('[data-testid="stMain"] h1')?.textContent ?? null;
  found.content = found.settled = null;
  found.from = performance.now();
  link.click();
}"""


@dataclass
class Opened:
    """How a page came: times in milliseconds, from the request or the click."""

    cls: float
    content: float
    settled: float
    lcp: float
    megabytes: float
    cpu: float
    moved: list[str]


class Traffic:
    """The bytes that a page receives, by HTTP and by its WebSocket."""

    def __init__(self, session: "CDPSession | Unwatched") -> None:
        self.bytes = 0.0
        session.send("Network.enable")
        session.on("Network.loadingFinished", self._loaded)
        session.on("Network.webSocketFrameReceived", self._framed)

    def _loaded(self, event: dict[str, Any]) -> None:
        self.bytes += event["encodedDataLength"]

    def _framed(self, event: dict[str, Any]) -> None:
        frame = event["response"]
        share = 0.75 if frame["opcode"] == 2 else 1.0  # binary frames come in base64
        self.bytes += share * len(frame["payloadData"])


def cpu_seconds(process_id: int) -> float:
    """Of the process and its children, those that ended included."""
    process = psutil.Process(process_id)
    family = [process, *process.children(recursive=True)]
    return sum(sum(each.cpu_times()[:2]) for each in family) + sum(process.cpu_times()[2:4])


def layout_shift(shifts: Sequence[dict[str, Any]]) -> float:
    """The largest sum of a window of shifts: of 5 s at most, without a gap of 1 s."""
    worst = total = first = last = 0.0
    for each in sorted(shifts, key=lambda one: one["at"]):
        at = each["at"]
        if total and at - last < 1000 and at - first < 5000:
            total += each["value"]
        else:
            total, first = each["value"], at
        last, worst = at, max(worst, total)
    return worst


@contextmanager
def fresh_page(browser: Browser, width: int) -> Iterator[tuple[Page, Traffic]]:
    """A page without a cache, which measures from its first document on."""
    context = browser.new_context(
        viewport={"width": width, "height": HEIGHT}, locale="en-GB", reduced_motion="reduce"
    )
    page = context.new_page()
    page.set_default_timeout(3 * PATIENCE)
    page.add_init_script(f"({MEASURE})()")
    yield page, Traffic(context.new_cdp_session(page))
    context.close()


def read(page: Page, traffic: Traffic, cpu: float) -> Opened:
    """What was measured once the page is quiet."""
    page.wait_for_function("() => window.measured.settled !== null")
    settle(page)
    page.wait_for_timeout(QUIET_MS)
    return opened(page.evaluate("() => window.measured"), traffic, cpu)


def opened(found: dict[str, Any], traffic: Traffic, cpu: float) -> Opened:
    """What the page and the traffic measured."""
    worst = sorted(found["shifts"], key=lambda each: -each["value"])[:SOURCES]
    return Opened(
        layout_shift(found["shifts"]),
        found["content"] - found["from"],
        found["settled"] - found["from"],
        found["lcp"],
        traffic.bytes / 1e6,
        1000 * cpu,
        [f"{each['value']:.3f} {'; '.join(each['sources'])}" for each in worst],
    )


class Unwatched:
    """A Chromium whose pages no debugger listens to, over its DevTools socket."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.number = 0
        self.session: str | None = None
        self.handlers: dict[str, Callable[[dict[str, Any]], None]] = {}

    def on(self, event: str, handler: Callable[[dict[str, Any]], None]) -> None:
        self.handlers[event] = handler

    def send(self, method: str, **given: Any) -> dict[str, Any]:
        """Call the method, of the page where there is one, and take the events until it answers."""
        self.number += 1
        of_page = {"sessionId": self.session} if self.session else {}
        message = {"id": self.number, "method": method, "params": given, **of_page}
        self.socket.send(json.dumps(message))
        while (got := json.loads(self.socket.recv())).get("id") != self.number:
            self.handlers.get(got.get("method"), lambda _: None)(got["params"])
        return got["result"]

    def measured(self) -> dict[str, Any]:
        """What the page has measured; read without `Runtime.enable`, which would listen."""
        got = self.send("Runtime.evaluate", expression="window.measured", returnByValue=True)
        return got["result"].get("value") or {"settled": None}

    @contextmanager
    def page(self, width: int) -> Iterator[Traffic]:
        """A page without a cache, which measures from its first document on."""
        context = self.send("Target.createBrowserContext")["browserContextId"]
        about = {"url": "about:blank", "browserContextId": context}
        target = self.send("Target.createTarget", **about)["targetId"]
        attached = self.send("Target.attachToTarget", targetId=target, flatten=True)
        self.session = attached["sessionId"]
        size = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        self.send("Emulation.setDeviceMetricsOverride", **size)
        self.send("Page.enable")
        self.send("Page.addScriptToEvaluateOnNewDocument", source=f"({MEASURE})()")
        yield Traffic(self)
        self.session = None
        self.send("Target.disposeBrowserContext", browserContextId=context)


@contextmanager
def unwatched_browser() -> Iterator[Unwatched]:
    """The browser, closed at the end."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        place = Path(profile) / "DevToolsActivePort"
        where = ["--remote-debugging-port=0", f"--user-data-dir={profile}"]
        command = [PROGRAM, "--headless", *FLAGS, *where, "about:blank"]
        with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
            try:
                until(lambda: place.exists() and place.read_text().count("\n") == 1)
                port, path = place.read_text().split()
                with connect(f"ws://127.0.0.1:{port}{path}", max_size=None) as socket:
                    yield Unwatched(socket)
            finally:
                process.terminate()


def open_first(browser: Unwatched, url: str, view: View, width: int) -> Opened:
    """The page as the first one that a person opens."""
    with browser.page(width) as traffic:
        browser.send("Page.navigate", url=f"{url}/{'' if view.name == 'home' else view.name}")
        for pause in (2 * QUIET_MS, QUIET_MS):
            time.sleep(pause / 1000)
            until(lambda: browser.measured()["settled"] is not None)
        return opened(browser.measured(), traffic, 0.0)


def open_by_click(
    browser: Browser, url: str, view: View, width: int, server: int
) -> tuple[Opened, Opened]:
    """The page after a click on its menu entry or tab, and after another one later."""
    menu = '[data-testid="stSidebar"]'
    home, jobs = f"{menu} a >> text=Home", f"{menu} a >> text=Jobs"
    there = f'{menu} a[href*="{view.name}"], .st-key-frame-tabs a[href*="{view.name}"]'
    there, elsewhere = (home, jobs) if view.name == "home" else (there, home)
    with fresh_page(browser, width) as (page, traffic):
        page.goto(f"{url}/{'jobs' if view.name == 'home' else ''}")
        settle(page)
        opened = []
        for _ in range(2):
            link = page.locator(there)
            if not link.count():
                entry = page.locator(menu).get_by_role(
                    "link", name=view.section, include_hidden=True
                )
                entry.evaluate("it => it.click()")
                link.first.wait_for()
                settle(page)
            traffic.bytes, before = 0.0, cpu_seconds(server)
            link.first.evaluate(CLICK)
            page.wait_for_function("() => window.measured.settled !== null")
            opened.append(read(page, traffic, cpu_seconds(server) - before))
            page.locator(elsewhere).first.evaluate("it => it.click()")
            page.wait_for_timeout(QUIET_MS)
            settle(page)
        return opened[0], opened[1]


@contextmanager
def large_app(groups: int, home: Path | None) -> Iterator[Any]:
    """The server of a store of that many groups, made first or found in the folder."""
    with tempfile.TemporaryDirectory() as folder:
        place = home or Path(folder)
        url = f"sqlite:///{place}/inf.db"
        if not (place / "inf.db").exists():
            place.mkdir(parents=True, exist_ok=True)
            store = open_store(url)
            schema.upgrade(store)
            fill(store, groups)
            store.close()
        with restartable(place, url) as server:
            yield server


def measure(
    name: str, url: str, server: int, views: Sequence[View], widths: Sequence[int]
) -> list[dict[str, Any]]:
    """A row per page; the first opening of all warms up the server and counts for nothing."""
    rows = []
    with chromium_browser() as browser, unwatched_browser() as empty:
        open_first(empty, url, MENU[0], WIDTHS[0])
        for view in views:
            row: dict[str, Any] = {"store": name, "page": view.name}
            for width in widths:
                clicked, again = open_by_click(browser, url, view, width, server)
                row |= {f"click {width}": asdict(clicked), f"again {width}": asdict(again)}
                row[f"first {width}"] = asdict(open_first(empty, url, view, width))
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def cell(row: dict[str, Any], how: str, number: str, written: str) -> str:
    """A number of an opening, empty where that width was not measured."""
    return written.format(row[how][number]) if how in row else ""


def table(rows: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = [
        "| store | page | first: CLS 1280 | 800 | LCP, ms | settled, ms | MB "
        "| click: CLS 1280 | 800 | content, ms | settled, ms | MB | CPU, ms "
        "| again: content, ms | settled, ms | CPU, ms |",
        "|---|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        width = WIDTHS[0] if f"first {WIDTHS[0]}" in row else WIDTHS[1]
        cells = [row["store"], row["page"]]
        cells += [cell(row, f"first {each}", "cls", "{:.2f}") for each in WIDTHS]
        cells += [cell(row, f"first {width}", each, "{:,.0f}") for each in ("lcp", "settled")]
        cells += [cell(row, f"first {width}", "megabytes", "{:.1f}")]
        cells += [cell(row, f"click {each}", "cls", "{:.2f}") for each in WIDTHS]
        cells += [cell(row, f"click {width}", each, "{:,.0f}") for each in ("content", "settled")]
        cells += [cell(row, f"click {width}", "megabytes", "{:.2f}")]
        cells += [cell(row, f"click {width}", "cpu", "{:,.0f}")]
        cells += [
            cell(row, f"again {width}", each, "{:,.0f}") for each in ("content", "settled", "cpu")
        ]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure both stores, and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    known = {view.name: view for view in MENU}
    parser.add_argument("--home", type=Path, help=HOME_HELP)
    parser.add_argument("--no-demo", action="store_true", help="only the large store")
    parser.add_argument("--groups", type=int, help="also a store of that many groups")
    parser.add_argument("--large-home", type=Path, help="its folder: kept, and found again")
    parser.add_argument("--only", nargs="+", choices=known, default=list(known), metavar="PAGE")
    parser.add_argument("--shifts", action="store_true", help="name what moved most")
    parser.add_argument("--widths", type=int, nargs="+", choices=WIDTHS, default=list(WIDTHS))
    given = parser.parse_args()
    views, rows = [known[name] for name in given.only], []
    if not given.no_demo:
        with demo_app(given.home) as server:
            rows += measure("demo", server.url, server.process.pid, views, given.widths)
    if given.groups:
        with large_app(given.groups, given.large_home) as server:
            rows += measure(
                f"{given.groups:,}", server.url, server.process.pid, views, given.widths
            )
    print(table(rows))
    print(f"load of the machine: {os.getloadavg()[1]:.1f} on {os.cpu_count()} cores")
    if given.shifts:
        for row in rows:
            for how in sorted(set(row) - {"store", "page"}):
                if row[how]["cls"] > 0.02:
                    print(row["store"], row["page"], how, f"{row[how]['cls']:.2f}")
                    print("   ", "\n    ".join(row[how]["moved"]))


if __name__ == "__main__":
    main()
