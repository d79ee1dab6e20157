"""What a page of another port of this machine can do to an app without accounts: nothing."""

import threading
from collections.abc import Iterator
from functools import partial
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from browser import settled
from full_store import fill
from playwright.sync_api import Browser, ConsoleMessage
from restartable import Restartable

from app.kit.menu import MENU
from db.store.store import Store
from db.study.studies import list_studies, write_guideline

pytestmark = [pytest.mark.browser, pytest.mark.long]

NOT_IN_THE_APP = ("torch", "umap", "sentence_transformers", "sklearn", "scipy", "numba")
MAX_MEGABYTES = 350  # of the app's process after every page, other tests of this file included

ATTACK = """async (url) => {
  const socket = await new Promise((resolve) => {
    const one = new WebSocket(url.replace("http", "ws") + "/_stcore/stream", ["streamlit"]);
    one.onopen = () => resolve("open");
    one.onerror = () => resolve("refused");
  });
  const got = await fetch(url + "/_stcore/host-config").then((r) => "read", () => "refused");
  const put = await fetch(url + "/_stcore/upload_file/a/b", {
    method: "PUT", mode: "cors", body: new Blob(["x"]),
  }).then((r) => "read", () => "refused");
  return { socket, got, put };
}"""


class Elsewhere(BaseHTTPRequestHandler):
    """An empty page; remembers what was requested."""

    def __init__(self, asked: list[str], *arguments: object) -> None:
        self.asked = asked
        super().__init__(*arguments)  # type: ignore[arg-type]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(b"<h1>elsewhere</h1>")

    def log_message(self, *_: object) -> None:
        """Nothing on the terminal."""


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Elsewhere, asked))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", asked
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture(scope="module")
def full(store: Store, folder: Path, elsewhere: tuple[str, list[str]]) -> Store:
    fill(store)
    with store.write() as session:
        study = list_studies(session, statuses=("open",))[0]
        body = f"Look closely ![pixel]({elsewhere[0]}/pixel.png)"
        write_guideline(session, study.id, body, created_by="test")
        session.commit()
    return store


def test_a_page_of_another_port_opens_no_websocket_reads_nothing_and_uploads_nothing(
    full: Store, served: Restartable, browser: Browser, elsewhere: tuple[str, list[str]]
) -> None:
    page = browser.new_page()
    page.goto(elsewhere[0])
    assert page.evaluate(ATTACK, served.url) == {
        "socket": "refused",
        "got": "refused",
        "put": "refused",
    }
    page.goto(served.url)
    settled(page)
    assert page.evaluate(ATTACK, served.url)["socket"] == "open"


def resident_megabytes(process_id: int) -> float:
    status = Path(f"/proc/{process_id}/status").read_text()
    line = next(line for line in status.splitlines() if line.startswith("VmRSS"))
    return int(line.split()[1]) / 1024


def heavy_packages(process_id: int) -> set[str]:
    maps = Path(f"/proc/{process_id}/maps").read_text()
    return {name for name in NOT_IN_THE_APP if f"/site-packages/{name}/" in maps}


def test_every_page_works_under_the_policy_in_a_light_process_and_loads_no_image_from_elsewhere(
    full: Store, served: Restartable, browser: Browser, elsewhere: tuple[str, list[str]]
) -> None:
    violations: list[str] = []
    loaded: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if "Content Security Policy" in message.text:
            violations.append(f"{page.url}: {message.text}")

    page = browser.new_page()
    page.on("console", note)
    page.on("request", lambda request: loaded.append(request.url))
    for view in MENU:
        page.goto(f"{served.url}/{'' if view.name == 'home' else view.name}")
        settled(page)
    # Streamlit's document names the small file that would fetch Vega
    vega = [url for url in loaded if "vega" in url.lower() and "/loadVegaEmbed." not in url]
    assert vega == [] and not any("/embed." in url for url in loaded)
    assert served.process
    assert not heavy_packages(served.process.pid)
    assert resident_megabytes(served.process.pid) < MAX_MEGABYTES
    expected = [one for one in violations if "/pixel.png" in one]
    assert [one for one in violations if one not in expected] == []
    page.goto(f"{served.url}/judge")
    settled(page)
    page.get_by_role("button", name="Guidelines").click()
    page.locator("img[alt=pixel]").wait_for(state="attached")
    page.wait_for_timeout(500)
    assert "/pixel.png" not in elsewhere[1]


def test_a_click_on_a_branch_of_homes_picture_opens_what_its_link_below_opens(
    full: Store, served: Restartable, browser: Browser
) -> None:
    def plain_name(text: str | None) -> str:
        return "".join(sorted(filter(str.isalnum, text or "")))  # numbers stand before or after

    page = browser.new_page()
    page.goto(served.url)
    links, places = (
        page.locator(".st-key-home-branches a"),
        page.locator(".sankey-node .node-label"),
    )
    links.first.wait_for()
    places.first.wait_for()
    leads = {plain_name(one.text_content()): one.get_attribute("href") for one in links.all()}
    assert len(leads) > 1 and len(leads) == places.count() - 1, "the pairs have no link"
    for number in range(1, places.count()):
        page.goto(served.url)
        links.first.wait_for()
        places.nth(number).wait_for()
        href = leads[plain_name(places.nth(number).text_content())]
        places.nth(number).click(force=True)
        page.wait_for_url(lambda url, href=href: url.endswith(f"/{href}"))


def test_keys_alone_open_a_run_by_its_name_and_reach_homes_next_step(
    full: Store, served: Restartable, browser: Browser
) -> None:
    page = browser.new_page()
    page.goto(served.url)
    settled(page)
    page.keyboard.press("Control+k")
    page.keyboard.type("run world")
    page.get_by_role("option", name="run", exact=False).first.wait_for()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: "/curate?" in url and "run=" in url)
    page.goto(served.url)
    settled(page)
    step = page.locator('[data-testid^="stBaseButton-primary"], [data-testid="stPageLink-NavLink"]')
    step.first.wait_for()
    focused = (
        "document.activeElement.matches('.stMainBlockContainer a, .stMainBlockContainer button')"
    )
    for _ in range(60):
        page.keyboard.press("Tab")
        if page.evaluate(focused):
            break
    else:
        raise AssertionError("sixty tabs do not reach what stands on Home")
    here = page.url
    page.keyboard.press("Enter")
    page.wait_for_url(lambda url: url != here)
