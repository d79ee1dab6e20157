"""A document of sections, sentences and tables: as a file of HTML that prints, and as a PDF. Pure.

The PDF is drawn by matplotlib, which figures are saved with, too: no further dependency, and no
browser. Its font, DejaVu Sans, has Latin, Greek, Cyrillic and some others, left to right; a
character that it lacks becomes a box. HTML has every script.
"""

import io
import re
from collections.abc import Iterator
from html import escape
from typing import Any, Final

from db.rows import Row

WIDTH, HEIGHT, MARGIN = 595.0, 842.0, 48.0  # points: A4
LINE: Final = 1.35  # of the size of the type
TEXT, SMALL, HEADING, TITLE = 9.0, 7.5, 12.0, 17.0
MAX_CELL = 260.0  # points that a column takes where others need theirs
GAP = 8.0
MISSING = "\N{WHITE SQUARE}"
STYLE = """
:root { color-scheme: light dark; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 56rem; margin: 2rem auto; padding: 0 1rem; }
h1 { margin-bottom: .2rem; } h2 { margin-top: 2rem; break-after: avoid; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-size: 13px; margin: .6rem 0; }
th, td { text-align: left; vertical-align: top; padding: .25rem .7rem .25rem 0;
  border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
tr { break-inside: avoid; } caption { text-align: left; padding-bottom: .3rem; }
p, td { overflow-wrap: break-word; white-space: pre-wrap; } td { min-width: 3.5rem; }
@media print { body { margin: 0; max-width: none; font-size: 10pt; } @page { margin: 16mm; } }
"""


class Table(Row):
    """Rows of texts under the names of their columns."""

    caption: str = ""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


class Section(Row):
    """A heading with sentences and tables."""

    title: str
    sentences: tuple[str, ...] = ()
    tables: tuple[Table, ...] = ()


class Document(Row):
    """A title, a line below it, and sections."""

    title: str
    lead: str
    sections: tuple[Section, ...]


def to_html(document: Document) -> str:
    """The document as one file that loads nothing; the browser prints it."""
    parts = [f"<h1>{escape(document.title)}</h1><p>{escape(document.lead)}</p>"]
    for section in document.sections:
        parts.append(f"<h2>{escape(section.title)}</h2>")
        parts += [f"<p>{escape(sentence)}</p>" for sentence in section.sentences]
        parts += map(html_table, section.tables)
    head = f'<meta charset="utf-8"><title>{escape(document.title)}</title><style>{STYLE}</style>'
    size = '<meta name="viewport" content="width=device-width, initial-scale=1">'
    body = "\n".join(parts)
    return f"""<!doctype html>
<html lang="en"><head>{head}{size}</head><body>
{body}
</body></html>
"""


def html_table(table: Table) -> str:
    """The table as HTML, its texts escaped; what is too wide for the page scrolls, by keys too."""
    caption = f"<caption>{escape(table.caption)}</caption>" if table.caption else ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in table.columns)
    rows = "".join(
        "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>\n"
        for row in table.rows
    )
    head = f"<thead><tr>{head}</tr></thead>\n" if any(table.columns) else ""
    return f'<div class="scroll" tabindex="0"><table>{caption}{head}{rows}</table></div>'


def to_pdf(document: Document) -> bytes:
    """The document as A4 pages, whose text can be selected and searched."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_pdf import PdfPages

    sink = io.BytesIO()
    with (
        rc_context({"pdf.fonttype": 42, "font.family": "DejaVu Sans"}),
        PdfPages(sink, metadata={"Title": document.title, "CreationDate": None}) as pages,
    ):
        flow = _Flow(pages)
        flow.write(document.title, TITLE, bold=True)
        flow.write(document.lead, TEXT)
        for section in document.sections:
            flow.keep(HEADING * LINE + 4 * TEXT * LINE)
            flow.y -= GAP
            flow.write(section.title, HEADING, bold=True)
            for sentence in section.sentences:
                flow.write(sentence, TEXT)
            for table in section.tables:
                flow.draw(table)
        flow.end()
    return sink.getvalue()


class _Flow:
    """Text that runs from page to page."""

    def __init__(self, pages: Any) -> None:
        from matplotlib.font_manager import FontProperties, findfont, get_font

        self._pages, self._number = pages, 0
        self._font = get_font(findfont(FontProperties(family="DejaVu Sans", weight="bold")))
        self._font.set_size(100, 72)
        self._known, self._wide = self._font.get_charmap(), dict[str, float]()
        self._begin()

    def _begin(self) -> None:
        from matplotlib.figure import Figure

        self._page = Figure(figsize=(WIDTH / 72, HEIGHT / 72))
        self._number += 1
        self.y = HEIGHT - MARGIN

    def end(self) -> None:
        """Finish the page."""
        self._put(str(self._number), WIDTH - MARGIN, MARGIN / 2, SMALL)
        self._pages.savefig(self._page)

    def keep(self, points: float) -> None:
        """Begin a page where less than this is left."""
        if self.y - points < MARGIN:
            self.end()
            self._begin()

    def write(self, text: str, size: float, *, bold: bool = False) -> None:
        """Write a paragraph over the whole width."""
        for line in self._wrapped(text, (WIDTH - 2 * MARGIN) / size):
            self.keep(size * LINE)
            self.y -= size * LINE
            self._put(line, MARGIN, self.y, size, bold=bold)
        self.y -= size * 0.4

    def draw(self, table: Table) -> None:
        """Draw a table, its head again on each page."""
        if table.caption:
            self.write(table.caption, TEXT)
        widths = self._widths(table)
        most = [(width - GAP) / SMALL for width in widths]
        named = (table.columns,) if any(table.columns) else ()
        for number, row in enumerate((*named, *table.rows)):
            cells = [list(self._wrapped(*each)) for each in zip(row, most, strict=True)]
            height = max(map(len, cells), default=1) * SMALL * LINE + 2
            page = self._number
            self.keep(min(height, HEIGHT - 2 * MARGIN - 40))
            if page != self._number and number and named:
                self._row([[name] for name in table.columns], widths, bold=True)
            self._row(cells, widths, bold=bool(named) and not number)
        self.y -= GAP

    def _wrapped(self, text: str, most: float) -> Iterator[str]:
        """Its lines, as it has them, each cut where it is wider than N sizes of the type."""
        for line in text.splitlines() or [""]:
            left, width = "", 0.0
            for word in re.findall(r"\s*\S+|\s+", line):
                wide = sum(map(self._width, word))
                if left and width + wide > most:
                    yield left
                    left, width = "", 0.0
                    word = word.lstrip()
                for each in word:  # a word that is wider than the line
                    if left and width + self._width(each) > most:
                        yield left
                        left, width = "", 0.0
                    left, width = left + each, width + self._width(each)
            yield left

    def _widths(self, table: Table) -> list[float]:
        """Of each column, by its widest line; where they are too many, less of the widest ones."""
        wanted = [
            max(
                sum(map(self._width, line)) for cell in column for line in cell.splitlines() or [""]
            )
            for column in zip(table.columns, *table.rows, strict=True)
        ]
        points = [max(GAP, each * SMALL) + GAP + 1 for each in wanted]
        most = WIDTH - 2 * MARGIN
        if sum(points) > most:
            points = [min(each, MAX_CELL) for each in points]
        if (over := sum(points) - most) > 0:
            wide = [max(0.0, each - most / len(points)) for each in points]
            points = [
                each - over * more / sum(wide) for each, more in zip(points, wide, strict=True)
            ]
        return points

    def _width(self, character: str) -> float:
        """Of the bold character, the wider one, by the size of the type."""
        if character not in self._wide:
            known = ord(character) if ord(character) in self._known else ord(MISSING)
            advance = self._font.load_char(known).linearHoriAdvance
            self._wide[character] = advance / 65536 / 100
        return self._wide[character]

    def _row(self, cells: list[list[str]], widths: list[float], *, bold: bool) -> None:
        for place in range(max(map(len, cells), default=0)):
            self.keep(SMALL * LINE)
            self.y -= SMALL * LINE
            x = MARGIN
            for lines, width in zip(cells, widths, strict=True):
                if place < len(lines):
                    self._put(lines[place], x, self.y, SMALL, bold=bold)
                x += width
        self.y -= 2

    def _put(self, text: str, x: float, y: float, size: float, *, bold: bool = False) -> None:
        shown = "".join(each if ord(each) in self._known else MISSING for each in text)
        weight = "bold" if bold else "normal"
        self._page.text(
            x / WIDTH, y / HEIGHT, shown, fontsize=size, weight=weight, parse_math=False
        )
