"""Figures and tables with their provenance: CSV, picture, data version and command.

Every figure and table of Agreement, Diversity, Overlaps, Coverage and Validators is drawn here
(except the map, see `corpora.map.canvas.card`), and the figure of Compare. The browser renders the
picture (Plotly's camera above the figure) as SVG or PNG, not the server.
"""

import csv
import io
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import pandas as pd
import plotly.graph_objects as go
import streamlit as st
from pandas.api import types as pd_types
from streamlit.delta_generator import DeltaGenerator

from app.kit.page import draw_table
from app.text.plain import plain

PICTURES = ("svg", "png")
BUTTONS = [["toImage"], ["zoom2d", "pan2d", "resetScale2d"]]
FORMULA = ("=", "+", "-", "@", "\t", "\r")


@dataclass(frozen=True)
class Origin:
    """The data version a figure was made from and the command that reproduces it."""

    version: str
    at: datetime | None
    command: str


def draw_figure(
    figure: go.Figure,
    rows: Iterable[Mapping[str, Any]] | Callable[[], str],
    origin: Origin,
    *,
    key: str,
    config: Mapping[str, Any] | None = None,
    **chart: Any,
) -> Any:
    """Draw the figure, and below it CSV, picture format, data version and command.

    `rows` are its unrounded numbers, or a function that returns them as CSV on download.
    `chart` goes to `st.plotly_chart`, whose selection is returned.
    """
    name = key.replace(".", "-")
    picture = st.session_state.get(f"{key}.picture") or PICTURES[0]
    picked = st.plotly_chart(
        figure,
        key=key,
        config={
            "displaylogo": False,
            "displayModeBar": True,
            "modeBarButtons": BUTTONS,
            "toImageButtonOptions": {"format": picture, "filename": name, "scale": 2},
            **(config or {}),
        },
        **chart,
    )
    draw_origin(rows, origin, key=key, picture=True)
    return picked


def side_by_side(number: int, *, key: str) -> Sequence[DeltaGenerator]:
    """Columns for figures; on a narrow screen they are stacked."""
    with st.container(key=f"side_by_side.{key}"):
        return st.columns(number)


def draw_rows(
    rows: Sequence[Mapping[str, Any]],
    origin: Origin,
    *,
    key: str,
    whole: Callable[[], str] | None = None,
    **table: Any,
) -> None:
    """Draw the rows as a table, and below it CSV, data version and command.

    `whole` returns the CSV if `rows` are only the first ones or formatted for display.
    `table` goes to `st.dataframe`.
    """
    draw_table(rows, key=f"{key}.table", **table)
    draw_origin(whole or rows, origin, key=key)


def draw_origin(
    rows: Iterable[Mapping[str, Any]] | Callable[[], str],
    origin: Origin,
    *,
    key: str,
    picture: bool = False,
) -> None:
    """Draw the line below a figure or table: CSV, picture format, data version, command."""
    name = key.replace(".", "-")
    made = f" · {origin.at:%Y-%m-%d %H:%M} UTC" if origin.at else ""
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        st.download_button(
            "CSV",
            rows if callable(rows) else as_csv(list(rows)).encode(),
            f"{name}.csv",
            "text/csv",
            key=f"{key}.csv",
            on_click="ignore",
            type="tertiary",
            icon=":material/download:",
            help="The numbers above, unrounded.",
        )
        if picture:
            st.segmented_control(
                "Picture",
                PICTURES,
                default=PICTURES[0],
                format_func=str.upper,
                required=True,
                key=f"{key}.picture",
                label_visibility="collapsed",
                help="Format of the picture that the camera button saves.",
                width="content",
            )
        with st.popover("Command", type="tertiary", icon=":material/terminal:"):
            st.caption(f"data {plain(origin.version)}{made}")
            st.code(origin.command, language=None, wrap_lines=True)
        st.caption(f"data {plain(origin.version)}{made}", width="content")


def as_csv(rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as CSV with the union of their columns; undefined values are empty cells.

    A text that a spreadsheet would evaluate as a formula gets a leading apostrophe.
    """
    columns = list(dict.fromkeys(column for row in rows for column in row))
    text = io.StringIO()
    writer = csv.DictWriter(text, columns, restval="")
    writer.writeheader()
    writer.writerows({name: _cell(value) for name, value in row.items()} for row in rows)
    return text.getvalue()


def frame_as_csv(frame: pd.DataFrame) -> str:
    """A frame as CSV, with formulas escaped as in `as_csv`."""
    escaped = frame.copy()
    for name in escaped.columns:
        if not pd_types.is_numeric_dtype(escaped[name]):
            there = escaped[name].astype(object)
            risky = there.astype(str).str.startswith(FORMULA) & there.notna()
            escaped[name] = there.where(~risky, "'" + there.astype(str))
    return str(escaped.to_csv(index=False))


def _cell(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(FORMULA):
        return f"'{value}"
    if isinstance(value, list | tuple):
        return " ".join(str(part) for part in value)
    return value
