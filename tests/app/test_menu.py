"""The menu: eight entries with tabs, and what each person's menu leaves out."""

import re
import tomllib
from pathlib import Path

import pytest
import streamlit as st
from starlette.applications import Starlette
from starlette.testclient import TestClient

from app.access.identity import SessionUser
from app.kit.menu import APP, MENU, entries_for, entry_of, views_for
from app.server.document.index_page import DOCUMENT, INDEX_ROUTES, LATER, PARTS
from db.people.rights import ALL_RIGHTS, Rights
from db.store.store import Store

ADMIN = SessionUser("ann", "admin", 1, rights=ALL_RIGHTS)


def with_rights(*names: str) -> SessionUser:
    return SessionUser("ann", "", 1, rights=Rights(on_datasets={1: frozenset(names)}))


def labels(user: SessionUser) -> list[str]:
    return [entry.label for entry in entries_for(user)]


def test_an_admin_has_eight_entries_that_hold_every_page_once() -> None:
    assert labels(ADMIN) == [
        "Home",
        "Data",
        "Groups",
        "People",
        "Insight",
        "Models",
        "Jobs",
        "Settings",
    ]
    held = [view.name for entry in entries_for(ADMIN) for view in entry.views]
    assert sorted(held) == sorted(view.name for view in MENU)


def test_who_holds_only_judge_has_judge_and_my_answers_and_nothing_else() -> None:
    assert labels(with_rights("judge")) == ["Judge", "My answers"]


def test_who_judges_and_reviews_finds_the_judging_pages_without_an_entry_above_them() -> None:
    assert labels(with_rights("judge", "review")) == ["Home", "Groups", "Judge", "My answers"]


def test_an_entry_with_one_page_left_goes_by_the_name_of_that_page() -> None:
    assert labels(with_rights("release")) == ["Home", "Releases", "Jobs", "Tokens"]


@pytest.mark.parametrize("right", ["judge", "review", "adjudicate", "curate", "train", "release"])
def test_no_right_loses_a_page_or_gains_one_by_the_entries(right: str) -> None:
    user = with_rights(right)
    held = {view.name for entry in entries_for(user) for view in entry.views}
    assert held | {"home"} == {view.name for view in views_for(user)}


def test_home_without_a_path_in_the_address_and_every_inner_page_know_their_entry() -> None:
    home, coverage = entry_of(ADMIN, ""), entry_of(ADMIN, "coverage")
    assert home is not None and home.label == "Home"
    assert coverage is not None and coverage.label == "Insight"
    assert entry_of(with_rights("judge"), "coverage") is None


def test_the_mark_of_the_current_entry_is_the_themes_colour_and_is_legible_on_it() -> None:
    """WCAG 2: 4.5 for text, 3 for the bar that marks the entry; the fill is 18 % of the colour."""
    style = (APP / "server" / "document" / "style.css").read_text()
    accents = re.findall(r"--inf-accent: light-dark\((#\w+), (#\w+)\)", style)
    assert "--inf-accent) 18%, transparent" in style and len(accents) == 1
    theme = tomllib.loads((APP / "server" / ".streamlit" / "config.toml").read_text())["theme"]
    for scheme, accent in zip(("light", "dark"), accents[0], strict=True):
        assert accent == theme[scheme]["primaryColor"]
        for below in (theme[scheme], theme[scheme]["sidebar"]):
            paper, ink = channels(below["backgroundColor"]), channels(accent)
            fill = tuple(0.18 * a + 0.82 * b for a, b in zip(ink, paper, strict=True))
            assert contrast(channels(theme[scheme]["textColor"]), fill) >= 4.5
            assert contrast(ink, paper) >= 3


def test_the_menu_is_folded_in_a_narrow_window_by_what_streamlit_calls_its_parts() -> None:
    """At the start and afterwards in the same windows, and Streamlit's parts have these names."""
    names = ("document/boot.js", "sidebar.js")
    boot, script = ((APP / "server" / name).read_text() for name in names)
    for text in (boot, script):
        assert '"(min-width: 768.1px) and (max-width: 1000px)"' in text
        assert 'CHOICE = "stSidebarCollapsed-"' in text and 'MARK = "inf.sidebar.folded"' in text
    static = Path(st.__file__).parent / "static" / "static" / "js"
    frontend = "".join(path.read_text() for path in static.glob("index.*.js"))
    for part in ("stSidebarCollapseButton", "stExpandSidebarButton"):
        assert part in script and part in frontend
    for part in ("stSidebarCollapsed-", "sidebarWidth"):
        assert part in boot and part in frontend


def test_the_document_holds_the_place_of_the_menu_and_fetches_the_parts_of_pages() -> None:
    assert (APP / "server" / "document" / "style.css").read_text() in DOCUMENT
    assert DOCUMENT.index("dataset.infMenu") < DOCUMENT.index('<script type="module"')
    fetched = re.findall(r'<link rel="(\S+)" crossorigin href="(\S+js)">', DOCUMENT)
    links = [link for _, link in fetched]
    assert len(links) == len(set(links))
    assert DOCUMENT.index('<script type="module"') < DOCUMENT.index(links[0]), "its own code first"
    for how, parts in (("modulepreload", PARTS), ("prefetch", LATER)):
        for part in parts:
            assert any(f"/{part}" in link for which, link in fetched if which == how), part
    for link in links:
        assert (Path(st.__file__).parent / "static" / link).is_file(), link


def test_the_style_comes_after_streamlits_own_so_that_it_wins() -> None:
    """Streamlit adds its rules to the head; of two equally specific rules the later one holds."""
    assert DOCUMENT.index("</head>") < DOCUMENT.index("<style>") < DOCUMENT.index('id="root"')


def test_what_is_hidden_below_a_part_that_is_still_fetched_is_named_as_streamlit_names_it() -> None:
    static = Path(st.__file__).parent / "static" / "static" / "js"
    frontend = "".join(path.read_text() for path in static.glob("index.*.js"))
    style = (APP / "server" / "document" / "style.css").read_text()
    for part in ("stSkeleton", "stElementContainer", "stLayoutWrapper", "stColumn"):
        assert f'[data-testid="{part}"]' in style and f'"data-testid":`{part}`' in frontend


@pytest.mark.parametrize("path", [*(view.name for view in MENU), "", "no_such_page"])
def test_every_page_comes_in_that_document(sqlite_store: Store, path: str) -> None:
    with TestClient(Starlette(routes=INDEX_ROUTES)) as client:
        answer = client.get(f"/{path}?dataset=x")
        assert answer.text == DOCUMENT and answer.headers["cache-control"] == "no-cache"
        assert client.head(f"/{path}").text == ""


@pytest.mark.parametrize(
    "path", ["favicon.png", "a/b", "_stcore/health", "static/js/x.js", "home/"]
)
def test_what_is_no_page_is_left_to_streamlit(path: str) -> None:
    with TestClient(Starlette(routes=INDEX_ROUTES)) as client:
        assert client.get(f"/{path}", follow_redirects=False).status_code != 200


def channels(colour: str) -> tuple[float, ...]:
    return tuple(int(colour[place : place + 2], 16) / 255 for place in (1, 3, 5))


def contrast(one: tuple[float, ...], other: tuple[float, ...]) -> float:
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def luminance(colour: tuple[float, ...]) -> float:
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in colour]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
