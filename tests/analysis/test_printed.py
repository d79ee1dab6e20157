"""Figures as files to print: the same content, fonts inside, colours that can be told apart."""

import io
import re
import zlib
from html import unescape

import pandas as pd
import plotly.graph_objects as go
import pytest
from app_figures import EMPTY, FIGURES, HOSTILE, hostile_figures
from colour_vision import SEEN_BY, nearest
from fontTools.ttLib import TTFont

from analysis.figures.figures import CATEGORY_COLOURS, DROPPED, KEPT, SHADES
from analysis.figures.flow import Stream, flow
from analysis.figures.printed import printed
from analysis.map.coverage import with_marks
from analysis.map.printed_map import printed_map
from db.errors import BadInput
from db.shape import INF_IR

STARTS = {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}


@pytest.mark.parametrize("name", FIGURES)
@pytest.mark.parametrize("kind", STARTS)
def test_every_figure_of_the_app_is_saved_in_every_format(name: str, kind: str) -> None:
    found = printed(FIGURES[name], kind)
    assert found.startswith(STARTS[kind])
    assert len(found) > 2000


def objects_of(pdf: bytes) -> dict[bytes, bytes]:
    """The objects of a PDF by number."""
    return dict(re.findall(rb"\n(\d+) 0 obj\n(.*?)\nendobj", pdf, flags=re.DOTALL))


def embedded_fonts(pdf: bytes) -> list[TTFont]:
    """The program of every font that the PDF names. Fails where one is not in the file."""
    objects = objects_of(pdf)
    found = []
    for each in objects.values():
        if b"/Type /Font\n" not in each + b"\n" and b"/Type /Font " not in each:
            continue
        if b"/DescendantFonts" in each:  # it names the font object that has the descriptor
            continue
        descriptor = re.search(rb"/FontDescriptor (\d+) 0 R", each)
        assert descriptor, each
        program = re.search(rb"/FontFile2 (\d+) 0 R", objects[descriptor[1]])
        assert program, objects[descriptor[1]]
        stream = objects[program[1]].split(b"stream\n", 1)[1].rsplit(b"\nendstream", 1)[0]
        found.append(TTFont(io.BytesIO(zlib.decompress(stream))))
    return found


@pytest.mark.parametrize("name", FIGURES)
def test_the_fonts_are_in_the_file(name: str) -> None:
    pdf = printed(FIGURES[name], "pdf")
    fonts = embedded_fonts(pdf)
    assert fonts and all(font["glyf"].keys() for font in fonts)
    assert b"/Type3" not in pdf and b"/Type1" not in pdf
    svg = printed(FIGURES[name], "svg").decode()
    assert "<text" not in svg and "font-family" not in svg  # outlines


def test_the_same_figure_is_the_same_file() -> None:
    for kind in STARTS:
        assert printed(FIGURES["curve"], kind) == printed(FIGURES["curve"], kind)


def texts_of(figure: go.Figure) -> list[str]:
    """The texts of a figure: matplotlib writes each as a comment next to its outlines."""
    return shown_in(printed(figure, "svg"))


def shown_in(file: bytes) -> list[str]:
    svg = file.decode()
    assert len(re.findall(r"<svg\b", svg)) == 1 and "<script" not in svg.lower()
    return [unescape(text) for text in re.findall(r"<!-- (.*?) -->", svg, flags=re.DOTALL)]


@pytest.mark.parametrize("figure", hostile_figures())
def test_a_name_is_text_and_neither_mathematics_nor_markup(figure: go.Figure) -> None:
    shown = " ".join(" ".join(texts_of(figure)).replace("_", " ").split())
    for name in HOSTILE:
        # a comment of XML holds no two dashes in a row: matplotlib puts a space between
        wanted = name.replace("\x07", " ").replace("--", "- -").replace("_", " ")
        assert " ".join(wanted.split()) in shown, (name, shown)


def test_what_the_font_does_not_have_is_named_and_a_long_name_is_cut() -> None:
    figure = go.Figure(go.Bar(x=["中文 é", "x" * 5000], y=[1, 2]))
    shown = texts_of(figure)
    assert "U+4E2DU+6587 é" in shown
    assert "x" * 59 + "…" in shown
    for kind in STARTS:
        assert printed(figure, kind).startswith(STARTS[kind])


def test_a_flow_keeps_its_names_whole_and_its_numbers_as_the_title() -> None:
    reason = "the judges chose another passage than the one claimed for the second instruction"
    figure = flow([Stream("Pairs", "Kept", 7, "on"), Stream("Pairs", reason, 2, "out")])
    assert f"2 · {reason}" in " ".join(" ".join(texts_of(figure)).split())
    title = f"Pairs to Kept: 7; Pairs to {reason}: 2"
    assert f"<dc:title>{title}</dc:title>" in printed(figure, "svg").decode()
    for kind in ("pdf", "png"):
        assert title.encode() in printed(figure, kind)


@pytest.mark.long
def test_a_map_is_saved_with_its_legend_and_names_and_an_empty_one_without() -> None:
    points = with_marks(
        pd.DataFrame(
            {
                "x": [0.0, 1.0, 5.0],
                "y": [0.0, 2.0, 1.0],
                "field": ["query", "query", "passage"],
                "role": ["positive", "negative", "positive"],
                "corpus": ["$a$", "<b>", "<b>"],
                "cluster": ["bees & $x$", "bees & $x$", "wasps"],
            }
        )
    )
    for kind, start in STARTS.items():
        assert printed_map(points, "role", kind).startswith(start)
        assert printed_map(points[:0], "role", kind).startswith(start)
        assert printed_map(points, "corpus", kind) == printed_map(points, "corpus", kind)
    assert embedded_fonts(printed_map(points, "role", "pdf"))
    texts = " ".join(shown_in(printed_map(points, "corpus", "svg")))
    assert "$a$ (1)" in texts and "<b> (2)" in texts


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_figure_is_an_empty_file(name: str) -> None:
    assert printed(EMPTY[name], "svg").startswith(STARTS["svg"])


def test_an_undefined_value_is_not_drawn_and_what_cannot_be_drawn_is_refused() -> None:
    one = go.Figure(go.Bar(x=["a", "b"], y=[1, None]))
    only = go.Figure(go.Bar(x=["a", "b"], y=[1, 0]))
    assert printed(one, "svg").count(b"patch_") < printed(only, "svg").count(b"patch_")
    with pytest.raises(BadInput, match="'pie'"):
        printed(go.Figure(go.Pie(values=[1])), "svg")
    with pytest.raises(BadInput, match="svg, pdf, png"):
        printed(one, "gif")


LEAST = 12.0  # of CIE 1976; about 2.3 is the least difference that people see


@pytest.mark.parametrize("by", SEEN_BY)
def test_colours_are_told_apart_without_red_green_or_blue(by: str) -> None:
    palettes = {
        "signs": {
            mark.sign: SHADES[field][mark.shade] for (field, _), mark in INF_IR.marks.items()
        },
        "categories": {str(place): colour for place, colour in enumerate(CATEGORY_COLOURS)},
        "verdicts": {"kept": KEPT, "dropped": DROPPED},
    }
    for name, colours in palettes.items():
        distance, pair = nearest(colours, by)
        assert distance > LEAST, (name, pair, distance)


def colours_in(part: object) -> set[str]:
    """Every colour that the data of a figure names."""
    if isinstance(part, dict):
        return set().union(set(), *map(colours_in, part.values()))
    if isinstance(part, list | tuple):
        return set().union(set(), *map(colours_in, part))
    return {part} if isinstance(part, str) and re.fullmatch(r"#[0-9a-f]{6}", part) else set()


@pytest.mark.parametrize("by", SEEN_BY)
@pytest.mark.parametrize("name", FIGURES)
def test_the_colours_of_one_figure_are_told_apart(name: str, by: str) -> None:
    found = colours_in(FIGURES[name].to_plotly_json()["data"])
    if FIGURES[name].data[0].type != "heatmap":
        assert found, "a figure without colours of its own has Plotly's: red and green"
    if len(found) > 1:
        distance, pair = nearest({colour: colour for colour in found}, by)
        assert distance > LEAST, (pair, distance)
