"""Figures and tables with their downloads and their provenance: data version and command.

Every figure is drawn here by Plotly (except the map, see `corpora.map.canvas.card`), and every
table of results. A click on SVG, PDF or PNG downloads the
figure (`analysis.figures.printed`), on CSV or LaTeX its numbers. Files are made when they are
downloaded, not with the page.
"""

import re
from base64 import b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from html import escape
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from analysis.figures.printed import KINDS, printed
from analysis.figures.screen import CONFIG, on_screen
from analysis.files.csv_writer import csv_text
from app.kit.page import draw_command, draw_table
from app.text.latex import as_latex
from app.text.plain import plain

Rows = Iterable[Mapping[str, Any]] | Callable[[], str]
Picture = Callable[[str], bytes]


@dataclass(frozen=True)
class Origin:
    """The data version a figure was made from and the command that reproduces it."""

    version: str
    at: datetime | None
    command: str


def draw_figure(figure: go.Figure, rows: Rows, origin: Origin, *, key: str) -> None:
    """Draw the figure, and below it its downloads, data version and command.

    `rows` are its unrounded numbers, or a function that returns them as CSV on download.
    """
    draw_plot(figure, key=f"{key}.figure")
    draw_origin(rows, origin, key=key, picture=partial(printed, figure))


def draw_picture(picture: bytes, about: str) -> None:
    """Draw a PNG with its text for screen readers, which `st.image` has not."""
    coded = b64encode(picture).decode()
    st.html(
        f'<img alt="{escape(about)}" style="width: 100%; max-width: 720px; background: white" '
        f'src="data:image/png;base64,{coded}">'
    )


def draw_plot(figure: go.Figure, *, key: str) -> None:
    """Draw the figure alone, at its own height, and its notes on what is undefined.

    Streamlit draws a figure anew when its data change, without the zoom of who looks at it: what
    grows is shown in part by a choice of the page.
    """
    found = on_screen(figure)
    st.plotly_chart(found.figure, width="stretch", key=key, config=CONFIG, alt=found.alt)
    for note in found.notes:
        st.caption(plain(note))


def side_by_side(number: int, *, key: str) -> Sequence[DeltaGenerator]:
    """Columns for figures; on a narrow screen they are stacked."""
    with st.container(key=f"side_by_side.{key}"):
        return st.columns(number)


def draw_rows(
    rows: Sequence[Mapping[str, Any]],
    origin: Origin | None,
    *,
    key: str,
    whole: Callable[[], str] | None = None,
    labels: Mapping[str, str] | None = None,
    column_config: Mapping[str, Any] | None = None,
    **table: Any,
) -> None:
    """Draw the rows as a table, and below it its downloads, data version and command.

    `whole` returns the CSV if `rows` are only the first ones or formatted for display. Without an
    `origin` only the downloads stand there. `labels`: what people read for keys, in the downloads
    as well, which leave out a column that `column_config` hides with None. `table` goes to
    `st.dataframe`.
    """
    columns: dict[str, Any] = dict(column_config or {})
    if labels is not None:
        for name, label in labels.items():
            columns[name] = {**columns.get(name, {}), "label": label}
    draw_table(rows, key=f"{key}.table", column_config=columns, **table)
    if labels is not None:
        hidden = {name for name, config in columns.items() if config is None}
        rows = [
            {labels.get(name, name): value for name, value in row.items() if name not in hidden}
            for row in rows
        ]
    if origin is not None:
        draw_origin(whole or rows, origin, key=key, shown=rows)
    elif rows:
        draw_downloads(whole or rows, key=key, shown=rows)


def draw_origin(
    rows: Rows,
    origin: Origin,
    *,
    key: str,
    picture: Picture | None = None,
    shown: Sequence[Mapping[str, Any]] | None = None,
) -> None:
    """Draw the line below a figure or table: its downloads, data version and command.

    The parameters are those of `draw_downloads`.
    """
    made = f" · {origin.at:%Y-%m-%d %H:%M} UTC" if origin.at else ""
    with draw_downloads(rows, key=key, picture=picture, shown=shown):
        draw_command(origin.command, note=f"data {origin.version}{made}")
        st.caption(f"data {plain(origin.version)}{made}", width="content")


def draw_downloads(
    rows: Rows,
    *,
    key: str,
    picture: Picture | None = None,
    shown: Sequence[Mapping[str, Any]] | None = None,
    latex: Callable[[], str] | None = None,
) -> DeltaGenerator:
    """Draw a line of downloads and return its container: CSV, the figure's files and LaTeX.

    `rows` are the numbers, or a function that returns them as CSV. `picture` makes the figure's
    file of a kind. `shown` are the rows of the LaTeX table, by default `rows` unless these are a
    function; `latex` makes the whole table instead.
    """
    listed = rows if callable(rows) else list(rows)
    table = listed if shown is None and not callable(listed) else shown
    if latex is None and table is not None:
        latex = partial(as_latex, table)
    line = st.container(horizontal=True, vertical_alignment="center", gap="small")
    with line:
        csv_of = listed if callable(listed) else partial(csv_text, listed)
        help = "The numbers above, unrounded."
        _draw_download("CSV", csv_of, key, "csv", "text/csv", help, icon=":material/download:")
        if picture is not None:
            for kind, mime in KINDS.items():
                help = f"The figure as {kind.upper()}, with its fonts."
                _draw_download(kind.upper(), partial(picture, kind), key, kind, mime, help)
        if latex is not None:
            help = "The numbers as a tabular environment for booktabs."
            _draw_download("LaTeX", latex, key, "tex", "text/x-tex", help)
    return line


def _draw_download(
    label: str,
    content: Callable[[], str | bytes],
    key: str,
    ending: str,
    mime: str,
    help: str,
    icon: str | None = None,
) -> None:
    """A button that downloads what the function makes, named after the key."""
    st.download_button(
        label,
        content,
        f"{re.sub(r'[^a-z0-9@_-]+', '-', key)}.{ending}",
        mime,
        key=f"{key}.{ending}",
        on_click="ignore",
        type="tertiary",
        icon=icon,
        help=help,
    )


def frame_as_csv(frame: pd.DataFrame) -> str:
    """A frame as CSV (`analysis.files.csv_writer`)."""
    there = frame.astype(object).where(frame.notna(), None)
    columns = [str(name) for name in frame.columns]
    rows = (
        dict(zip(columns, row, strict=True)) for row in there.itertuples(index=False, name=None)
    )
    return csv_text(list(rows), columns)
