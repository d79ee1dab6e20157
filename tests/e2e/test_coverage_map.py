"""The map of the Coverage page in a real browser: zoom, hover, box, lasso, legend, pictures."""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from browser import PATIENCE, settled
from playwright.sync_api import Browser, Page, expect
from restartable import Restartable

from analysis.files.corpora import Corpus
from analysis.map.clusters import with_clusters
from analysis.map.coverage import points_frame, points_table, to_bytes
from analysis.map.density import thin_rows
from app.corpora.map.canvas.card import rows_inside
from db.corpus.texts import CorpusText
from db.outcome.analyses import store_analysis
from db.shape import INF_IR
from db.store.store import Store

pytestmark = [
    pytest.mark.long,
    pytest.mark.browser,
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # playwright's own pipes
]

POINTS, HEAP = 12_000, 400
NASTY = "<script>document.title='x'</script>"
MAP = ".st-key-coverage-map .map canvas"
RESTED = f"{MAP}[data-rested]"


@pytest.fixture(scope="module")
def points(store: Store) -> pd.DataFrame:
    """A stored map of two corpora."""
    generator = np.random.default_rng(0)
    xy = generator.normal(size=(POINTS, 2)).astype(np.float32)
    xy[1 : 2 * HEAP : 2] += (-6, 4)  # where the second corpus is alone
    texts = [f"text {number} {NASTY}" for number in range(POINTS)]
    corpora = [
        Corpus(
            name,
            "dataset",
            [CorpusText("query", "positive", text) for text in texts[part::2]],
            shape=INF_IR,
        )
        for part, name in enumerate(("one", "two"))
    ]
    table = points_table(corpora, dict(zip(texts, xy, strict=True)), set())
    payload = to_bytes(with_clusters(table, seed=0))
    result = {
        "model": "none",
        "seed": 0,
        "points": POINTS,
        "different": POINTS,
        "corpora": [
            {"corpus": each.name, "kind": "dataset", "run_id": None, "offline": True}
            for each in corpora
        ],
        "fields": {},
        "covered": [],
    }
    with store.write() as session:
        store_analysis(
            session, kind="coverage", inputs_sha256="x", config={}, result=result, payload=payload
        )
        session.commit()
    return points_frame(payload)


def open_map(browser: Browser, served: Restartable) -> Page:
    page = browser.new_page(viewport={"width": 1280, "height": 1500})
    page.set_default_timeout(PATIENCE)
    page.goto(f"{served.url}/coverage")
    page.locator(RESTED).scroll_into_view_if_needed()
    settled(page)
    page.locator(RESTED).wait_for()
    return page


def in_view(page: Page) -> tuple[dict[str, list[float]], int]:
    """What the map shows, in its own units, and how many points it says there are."""
    rested = page.locator(RESTED)
    told, count = (rested.get_attribute(f"data-{name}") for name in ("view", "in-view"))
    assert told and count
    return json.loads(told), int(count)


def on_screen(page: Page, x: float, y: float) -> tuple[float, float]:
    """Where a place of the map lies on the screen."""
    view, _ = in_view(page)
    box = page.locator(MAP).bounding_box()
    assert box is not None
    across = (x - view["x"][0]) / (view["x"][1] - view["x"][0])
    down = (view["y"][1] - y) / (view["y"][1] - view["y"][0])
    return box["x"] + across * box["width"], box["y"] + down * box["height"]


def drag(page: Page, places: list[tuple[float, float]]) -> None:
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=4)
    page.mouse.up()


def listed(page: Page) -> pd.DataFrame:
    """The selection's CSV."""
    settled(page)
    with page.expect_download() as download:
        page.locator(".st-key-coverage-selected-csv button").first.click()
    return pd.read_csv(download.value.path())


def gap(values: pd.Series, near: float) -> float:
    """The middle of the widest gap between two points near a place."""
    there = sorted(value for value in values.astype(float) if abs(value - near) < 0.1)
    return max((high - low, (high + low) / 2) for low, high in pairwise(there))[1]


def test_all_points_in_view_are_drawn_before_and_after_zooming(
    points: pd.DataFrame, served: Restartable, browser: Browser
) -> None:
    page = open_map(browser, served)
    whole, count = in_view(page)
    assert count == POINTS
    page.locator(MAP).press("+")
    expect(page.locator(RESTED)).not_to_have_attribute("data-view", json.dumps(whole))
    page.locator(MAP).press("+")
    page.mouse.move(*on_screen(page, 0.5, 0.5))
    page.mouse.wheel(0, -400)
    expect(page.locator(".map .status")).not_to_contain_text("12,000 of 12,000")
    view, count = in_view(page)
    assert count == len(rows_inside(points, {"kind": "box", **view})) < POINTS
    page.locator(".map .legend button", has_text="two").click()
    expect(page.locator(RESTED)).not_to_have_attribute("data-in-view", str(count))
    view, left = in_view(page)
    hidden = {"kind": "box", **view, "colour": "corpus", "hidden": ["two"]}
    assert left == len(rows_inside(points, hidden)) < count
    page.close()


def test_a_box_and_a_lasso_list_the_stored_points_inside_them(
    points: pd.DataFrame, served: Restartable, browser: Browser
) -> None:
    page = open_map(browser, served)
    page.locator(".map [data-mode=box]").click()
    x, y = ([gap(points[side], end) for end in (-2.0, 2.0)] for side in ("x", "y"))
    drag(page, [on_screen(page, x[0], y[0]), on_screen(page, x[1], y[1])])
    chosen = page.get_by_text("texts of 0 groups")
    expect(chosen).to_be_visible()
    drawn = json.loads(page.locator(MAP).get_attribute("data-shape") or "")
    assert drawn["x"] == pytest.approx(x, abs=0.05)  # the pointer goes in whole pixels
    assert drawn["y"] == pytest.approx(y, abs=0.05)
    inside = points.iloc[rows_inside(points, drawn)]
    assert chosen.inner_text() == f"{len(inside):,} texts of 0 groups"
    assert set(listed(page)["text"]) == set(inside["text"])
    page.locator(".map [data-mode=lasso]").click()
    corners = [(-0.5, -0.5), (0.5, -0.5), (0.0, 0.7), (-0.5, -0.5)]
    drag(page, [on_screen(page, *corner) for corner in corners])
    expect(chosen).not_to_have_text(f"{len(inside):,} texts of 0 groups")
    drawn = json.loads(page.locator(MAP).get_attribute("data-shape") or "")
    inside = points.iloc[rows_inside(points, drawn)]
    assert chosen.inner_text() == f"{len(inside):,} texts of 0 groups"
    assert set(listed(page)["text"]) == set(inside["text"])
    aimed_at = len(rows_inside(points, {"kind": "lasso", "path": corners[:3]}))
    assert len(inside) == pytest.approx(aimed_at, rel=0.1)
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(chosen).to_have_count(0)
    page.close()


def test_a_point_tells_its_text_verbatim_and_the_map_is_saved_as_it_stands(
    points: pd.DataFrame, served: Restartable, browser: Browser, tmp_path: Path
) -> None:
    page = open_map(browser, served)
    alone = points.iloc[int(points["x"].idxmax())]
    page.mouse.move(*on_screen(page, float(alone["x"]), float(alone["y"])))
    words = page.locator(".map .tooltip")
    expect(words).to_contain_text(alone["text"])
    expect(words).to_contain_text("Q+")
    assert page.title() != "x"
    for kind, start in (("PNG", b"\x89PNG"), ("SVG", b"<svg")):
        with page.expect_download() as download:
            page.locator(".map .foot").get_by_role("button", name=kind).click()
        saved = tmp_path / f"map.{kind}"
        download.value.save_as(saved)
        assert saved.read_bytes().startswith(start)
        assert saved.stat().st_size > 10_000
    page.close()


def test_the_same_map_is_the_same_picture(
    points: pd.DataFrame, served: Restartable, browser: Browser
) -> None:
    pictures = []
    for _ in range(2):
        page = open_map(browser, served)
        assert in_view(page)[1] == len(points)
        pictures.append(page.locator(MAP).evaluate("map => map.toDataURL()"))
        page.close()
    assert pictures[0] == pictures[1]


def test_what_gets_its_height_late_moves_the_map_and_not_its_lower_edge(
    points: pd.DataFrame, served: Restartable, browser: Browser
) -> None:
    page = open_map(browser, served)
    before = page.locator(MAP).bounding_box()
    page.locator('[data-testid="stMainBlockContainer"]').evaluate(
        "it => it.prepend(Object.assign(document.createElement('div'), {style: 'height: 40px'}))"
    )
    expect(page.locator(MAP)).to_have_css("height", f"{before['height'] - 40}px")
    page.close()


def selected(page: Page) -> str:
    """How many texts the side panel lists."""
    head = page.locator(".st-key-coverage-side strong", has_text="text")
    expect(head).to_be_visible()
    return head.inner_text()


@pytest.mark.parametrize(("width", "height"), [(1280, 900), (1600, 1200), (800, 700)])
def test_the_map_takes_what_the_window_leaves_and_nothing_lies_below_its_edge(
    points: pd.DataFrame, served: Restartable, browser: Browser, width: int, height: int
) -> None:
    page = browser.new_page(viewport={"width": width, "height": height})
    page.goto(f"{served.url}/coverage")
    page.locator(RESTED).wait_for()
    settled(page)
    page.wait_for_timeout(500)  # the last of what stands above has its height
    page.locator(RESTED).wait_for()
    box = page.locator(MAP).bounding_box()
    assert box is not None
    assert height - 40 <= box["y"] + box["height"] <= height
    assert box["height"] >= 0.6 * height
    main = page.locator('[data-testid="stMain"]').bounding_box()
    assert main is not None
    assert box["width"] >= 0.6 * main["width"]
    assert page.locator('[data-testid="stMain"]').evaluate("it => it.scrollWidth <= it.clientWidth")
    page.close()


def test_a_search_lights_up_what_it_finds_and_can_be_selected(
    points: pd.DataFrame, served: Restartable, browser: Browser
) -> None:
    page = open_map(browser, served)
    page.locator(".map input").fill("Text 77")
    wanted = int(points["text"].str.contains("text 77", regex=False).sum())
    expect(page.locator(".map .lit")).to_have_text(f"{wanted} lit")
    expect(page.locator(f'{MAP}[data-lit="{wanted}"]')).to_be_visible()
    page.get_by_role("button", name="Select these").click()
    assert selected(page) == f"{wanted} texts"
    page.locator(".map input").fill("not there at all")
    expect(page.locator(".map .lit")).to_have_text("0 lit")
    page.get_by_role("button", name="Clear", exact=True).click()
    expect(page.locator(f'{MAP}[data-lit="0"]')).to_be_visible()
    expect(page.get_by_text("Topics", exact=True)).to_be_visible()
    page.close()


def test_a_click_on_a_name_selects_its_cluster_and_thin_regions_are_a_tenth(
    points: pd.DataFrame, served: Restartable, browser: Browser
) -> None:
    page = open_map(browser, served)
    assert int(page.locator(RESTED).get_attribute("data-named") or 0) > 5
    largest = points["cluster"].astype(str).value_counts()
    name = min(str(each) for each in largest.index[largest == largest.max()])
    mine = points[points["cluster"].astype(str) == name]
    page.mouse.click(*on_screen(page, float(mine["x"].median()), float(mine["y"].median())))
    assert selected(page) == f"{len(mine):,} texts"
    expect(page.locator(f'{MAP}[data-lit="{len(mine)}"]')).to_be_visible()
    page.get_by_role("button", name="Back to topics").click()
    expect(page.locator(f'{MAP}[data-lit="0"]')).to_be_visible()
    page.get_by_role("button", name="Thin regions").click()
    thin = len(thin_rows(points))
    expect(page.get_by_text(f"{thin:,} texts of 0 groups")).to_be_visible()
    assert thin == POINTS // 10
    page.close()


def test_two_corpora_are_compared_as_layers(
    points: pd.DataFrame, served: Restartable, browser: Browser
) -> None:
    page = open_map(browser, served)
    expect(page.locator(".map .legend .veil").last).to_have_text("denser in two")
    page.close()
