"""Documents as HTML and PDF: nothing is taken for markup, nothing leaves the page."""

import re
from html.parser import HTMLParser
from typing import Any

import pytest
from matplotlib.backends.backend_agg import FigureCanvasAgg

from analysis.files import document
from analysis.files.document import Document, Section, Table, to_html, to_pdf

NASTY = "<script>alert(1)</script> $\\LaTeX$ & **b** שלום 查询 🙂 " + "w" * 300
DOCUMENT = Document(
    title=NASTY,
    lead="as of today",
    sections=(
        Section(title="Judges", sentences=(NASTY, "two\nlines"), tables=()),
        Section(
            title="Long",
            tables=(
                Table(
                    caption=NASTY,
                    columns=("Judge", "A column with a long name", "Text"),
                    rows=tuple((f"judge {n}", "1", NASTY if n % 9 else "") for n in range(150)),
                ),
                Table(columns=("", ""), rows=(("item", NASTY * 40),)),
            ),
        ),
    ),
)


class Reader(HTMLParser):
    """The text of a page, and the tags that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.add(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


def test_html_shows_every_text_and_runs_and_loads_nothing() -> None:
    page = to_html(DOCUMENT)
    reader = Reader()
    reader.feed(page)
    assert "script" not in reader.tags and not reader.tags & {"img", "link", "iframe"}
    assert reader.text.count(NASTY) == 1 + 1 + 1 + 1 + sum(n % 9 > 0 for n in range(150)) + 40
    assert not re.search(r"(src|href|url)\s*[=(]", page)


class Pages:
    """What the pages are saved to; looks where their texts are."""

    boxes: list[tuple[float, float, float, float]]

    def __init__(self, *_: Any, **__: Any) -> None:
        Pages.boxes = []
        Pages.texts: list[str] = []

    def __enter__(self) -> "Pages":
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def savefig(self, figure: Any) -> None:
        renderer = FigureCanvasAgg(figure).get_renderer()
        scale = figure.dpi / 72
        for each in figure.texts:
            box = each.get_window_extent(renderer)
            Pages.boxes.append(tuple(one / scale for one in (box.x0, box.y0, box.x1, box.y1)))
            Pages.texts.append(each.get_text())


def test_no_text_of_the_pdf_leaves_the_page_and_none_is_lost(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from matplotlib.backends import backend_pdf

    monkeypatch.setattr(backend_pdf, "PdfPages", Pages)
    to_pdf(DOCUMENT)
    for x0, y0, x1, y1 in Pages.boxes:
        assert x0 >= 0 and y0 >= 0 and x1 <= document.WIDTH and y1 <= document.HEIGHT
    together = "".join(Pages.texts)
    assert together.count("w") > 300 * (3 + sum(n % 9 > 0 for n in range(150)) + 40)
    assert together.count(document.MISSING) >= 3  # what the font lacks is not dropped silently
    assert Pages.texts.count("A column with a") + Pages.texts.count("A column with a long name") > 1


def test_the_pdf_has_its_text_and_is_the_same_each_time() -> None:
    small = DOCUMENT.model_copy(update={"sections": DOCUMENT.sections[:1]})
    first = to_pdf(small)
    assert first.startswith(b"%PDF") and b"/ToUnicode" in first
    assert to_pdf(small) == first
