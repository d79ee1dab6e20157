"""The map as a figure: points in WebGL, density contours, and cells where there are too many. Pure.

Beyond `MOST_DRAWN` points the browser is sent cells of a 400 × 400 grid instead (a mark per cell
that holds any point, in the colour of its most frequent category, the more opaque the more points);
a part of the map with fewer points is drawn exactly again.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import numpy as np
import plotly.graph_objects as go

from analysis.figures import CATEGORY_COLOURS, MARGIN, SIGN_COLOURS, escape, sign, wrapped

if TYPE_CHECKING:
    import pandas as pd

MOST_DRAWN: Final = 200_000
MOST_WRAPPED: Final = 20_000  # above this many points the hover is the text's start alone
TURNS, TRACES = 8, 48
HOVERED: Final = 110  # characters of each text of a triplet
CELLS, CONTOUR_CELLS, LEVELS = 400, 80, 5
TRIPLETS: Final = {
    "positive": ("I+", "Q+", "P+"),
    "instruction_negative": ("I-", "Q+", "P1-"),
    "query_negative": ("I+", "Q-", "P2-"),
}


def coverage_scatter(
    points: "pd.DataFrame",
    colour_by: str = "role",
    *,
    contours: bool = False,
    most: int = MOST_DRAWN,
) -> go.Figure:
    """A mark per text, coloured by `role` (its sign) or another column.

    `points` has the columns of `analysis.coverage.points_table`; `customdata` carries a row's
    place in it, or a cell's number (see `cell_numbers`), for selections. `contours` adds lines of
    equal density per corpus.
    """
    categories = categories_of(points, colour_by)
    order = [name for name in SIGN_COLOURS if name in categories] if colour_by == "role" else []
    order += sorted(set(categories) - set(order))
    colours = {
        name: (SIGN_COLOURS.get(name) if colour_by == "role" else None)
        or CATEGORY_COLOURS[place % len(CATEGORY_COLOURS)]
        for place, name in enumerate(order)
    }
    figure = go.Figure()
    if len(points) > most:
        _add_cells(figure, points, categories, colours)
    else:
        _add_points(figure, points, categories, colours, faint=contours)
    if contours:
        _add_contours(figure, points)
    figure.update_layout(
        margin=MARGIN, height=620, legend={"itemsizing": "constant"}, dragmode="pan"
    )
    figure.update_xaxes(visible=False)
    figure.update_yaxes(visible=False, scaleanchor="x")
    return figure


def categories_of(points: "pd.DataFrame", colour_by: str) -> np.ndarray:
    """What each point is coloured by, as words; – where there is nothing."""
    if colour_by == "role":
        pairs = zip(points["field"], points["role"], strict=True)
        return np.array([sign(*pair) for pair in pairs], dtype=object)
    found: np.ndarray = points[colour_by].astype(object).fillna("–").to_numpy(dtype=object)
    return found


def cell_numbers(points: "pd.DataFrame") -> np.ndarray:
    """The cell of each point on the 400 × 400 grid over all of them, shape (points,)."""
    return _grid(points, CELLS)


def selected_rows(
    points: "pd.DataFrame", picked: Sequence[int], *, most: int = MOST_DRAWN
) -> np.ndarray:
    """The rows that a selection of marks stands for: themselves, or all points of the cells."""
    numbers = np.array(sorted(set(picked)), dtype=np.int64)
    if len(points) <= most:
        return numbers[(numbers >= 0) & (numbers < len(points))]
    found: np.ndarray = np.flatnonzero(np.isin(cell_numbers(points), numbers))
    return found


def _add_points(
    figure: go.Figure,
    points: "pd.DataFrame",
    categories: np.ndarray,
    colours: dict[str, str],
    *,
    faint: bool,
) -> None:
    """A trace per category. Of many points several that take turns: drawn one after the other, the
    last category would hide all before it. Under contours, which lie beneath, points are faint."""
    hover = _hover(points)
    x, y = points["x"].to_numpy(np.float32), points["y"].to_numpy(np.float32)
    many = len(points) > MOST_WRAPPED
    turns = max(1, min(TURNS, TRACES // max(1, len(colours)))) if many else 1
    for turn in range(turns):
        for name, colour in colours.items():
            here = np.flatnonzero(categories == name)[turn::turns]
            figure.add_scattergl(
                x=x[here],
                y=y[here],
                name=escape(str(name)),
                legendgroup=escape(str(name)),
                showlegend=turn == 0,
                mode="markers",
                marker={
                    "size": 2 if many else 3 if len(points) >= 5000 else 6,
                    "opacity": 0.4 if faint or many else 0.75,
                    "color": colour,
                },
                text=hover[here],
                customdata=here,
                hovertemplate="%{text}<extra></extra>",
            )


def _add_cells(
    figure: go.Figure, points: "pd.DataFrame", categories: np.ndarray, colours: dict[str, str]
) -> None:
    import pandas as pd

    frame = pd.DataFrame(
        {
            "cell": cell_numbers(points),
            "category": categories,
            "x": points["x"].to_numpy(np.float64),
            "y": points["y"].to_numpy(np.float64),
        }
    )
    counts = frame.groupby(["cell", "category"], sort=True, observed=True).size()
    most = counts.reset_index(name="n").sort_values(["cell", "n"], kind="stable").groupby("cell")
    cells = frame.groupby("cell").agg(x=("x", "mean"), y=("y", "mean"), n=("x", "size"))
    cells["category"] = most["category"].last()
    weight = np.log1p(cells["n"]) / np.log1p(cells["n"].max())
    for name, colour in colours.items():
        here = cells["category"] == name
        mine = cells[here]
        figure.add_scattergl(
            x=mine["x"].to_numpy(np.float32),
            y=mine["y"].to_numpy(np.float32),
            name=escape(str(name)),
            mode="markers",
            marker={
                "size": 4,
                "symbol": "square",
                "color": colour,
                "opacity": (0.25 + 0.75 * weight[here]).to_numpy(np.float32),
            },
            text=[f"{count:,} texts, most of them {escape(str(name))}" for count in mine["n"]],
            customdata=mine.index.to_numpy(np.int64),
            hovertemplate="%{text}<extra></extra>",
        )


def _add_contours(figure: go.Figure, points: "pd.DataFrame") -> None:
    """Lines of equal density per corpus, of a Gaussian-smoothed histogram over all points."""
    xy = points[["x", "y"]].to_numpy(np.float64)
    low, high = xy.min(axis=0), xy.max(axis=0)
    margin = 0.05 * np.maximum(high - low, 1e-9)
    span = [(low[side] - margin[side], high[side] + margin[side]) for side in (0, 1)]
    corpora = points["corpus"].astype(str).to_numpy()
    for place, name in enumerate(sorted(set(corpora))):
        here = xy[corpora == name]
        counts, x, y = np.histogram2d(here[:, 0], here[:, 1], bins=CONTOUR_CELLS, range=span)
        density = smoothed(counts) / max(1, len(here))
        top = float(density.max())
        colour = CATEGORY_COLOURS[place % len(CATEGORY_COLOURS)]
        figure.add_contour(
            x=(x[:-1] + x[1:]) / 2,
            y=(y[:-1] + y[1:]) / 2,
            z=density.T,
            name=f"density of {escape(str(name))}",
            showlegend=True,
            showscale=False,
            hoverinfo="skip",
            contours={
                "coloring": "lines",
                "start": top / (LEVELS + 1),
                "end": top * LEVELS / (LEVELS + 1),
                "size": max(top / (LEVELS + 1), 1e-12),
            },
            colorscale=[[0, colour], [1, colour]],
            line={"width": 1.5},
        )


def smoothed(counts: np.ndarray, sigma: float = 2.0) -> np.ndarray:
    """A histogram under a Gaussian of `sigma` cells, side by side; what leaves the edge is lost."""
    reach = int(4 * sigma)
    kernel = np.exp(-0.5 * (np.arange(-reach, reach + 1) / sigma) ** 2)
    kernel /= kernel.sum()
    for axis in (0, 1):
        counts = np.apply_along_axis(np.convolve, axis, counts, kernel, mode="same")
    return counts


def _grid(points: "pd.DataFrame", cells: int) -> np.ndarray:
    xy = points[["x", "y"]].to_numpy(np.float64)
    low, high = xy.min(axis=0), xy.max(axis=0)
    extent = np.where(high > low, high - low, 1.0)
    places = np.minimum(((xy - low) / extent * cells).astype(np.int64), cells - 1)
    numbers: np.ndarray = places[:, 0] * cells + places[:, 1]
    return numbers


def _hover(points: "pd.DataFrame") -> np.ndarray:
    """What stands on hover: the text with its sign and corpus, and the triplet it belongs to in its
    group; of very many points the text's start alone."""
    if len(points) > MOST_WRAPPED:
        starts = points["text"].str.slice(0, 60)
        return np.array([escape(text) for text in starts], dtype=object)
    columns = zip(
        *(points[name] for name in ("group_id", "field", "role", "corpus", "text")), strict=True
    )
    rows = [
        (None if group is None or group != group else int(group), field, role, corpus, text)
        for group, field, role, corpus, text in columns
    ]
    texts = {(group, sign(field, role)): text for group, field, role, _, text in rows}
    return np.array([_told(texts, *row) for row in rows], dtype=object)


def _told(
    texts: Mapping[tuple[int | None, str], str],
    group: int | None,
    field: str,
    role: str,
    corpus: str,
    text: str,
) -> str:
    mine = sign(field, role)
    head = f"<b>{escape(mine)}</b> {escape(str(corpus))}"
    if group is None or role not in TRIPLETS:
        return f"{head}<br>{wrapped(text)}"
    lines = [
        f"<b>{each}</b> {wrapped(_start(texts[group, each]))}"
        for each in TRIPLETS[role]
        if (group, each) in texts
    ]
    return "<br>".join([f"{head}, group {group}", *lines])


def _start(text: str) -> str:
    return text if len(text) <= HOVERED else f"{text[:HOVERED]}…"
