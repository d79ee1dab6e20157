"""The map of a run's texts as a picture for the dataset card: a PNG, drawn without a browser."""

import io
from typing import TYPE_CHECKING, Any

from analysis.map.picture import sign_colours

if TYPE_CHECKING:
    import pandas as pd

WIDTH, HEIGHT, LEGEND, MARGIN = 1200, 800, 60, 30
SCALE = 2  # drawn twice as large and shrunk: smooth dots
DOT = 4.0
SHADES = {  # a family per field, in the order of the legend
    "instruction": ("#1f77b4", "#8fc1e3", "#4c6f9c", "#b9d3ea"),
    "query": ("#2a8c4a", "#98d3a5", "#5aa66a", "#c5e6c0"),
    "passage": ("#c0392b", "#e59866", "#c39bd3", "#a6611a", "#dfc27d"),
}


def draw_map(points: "pd.DataFrame") -> bytes:
    """A PNG of the points of a map (`analysis.map.coverage.points_frame`), coloured by sign."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (WIDTH * SCALE, HEIGHT * SCALE), "white")
    pen = ImageDraw.Draw(image)
    across = _fitted(points["x"].to_numpy(float), MARGIN, WIDTH - MARGIN)
    down = _fitted(-points["y"].to_numpy(float), LEGEND + MARGIN, HEIGHT - MARGIN)
    radius = DOT * SCALE * min(1.0, (4000 / max(1, len(across))) ** 0.5)
    colours = sign_colours(points, SHADES)
    for place, sign in enumerate(points["sign"]):
        colour = colours.get(sign, "#888888")
        left, top = across[place] * SCALE, down[place] * SCALE
        pen.ellipse((left - radius, top - radius, left + radius, top + radius), fill=colour)
    font = ImageFont.load_default(size=26 * SCALE)
    at = MARGIN * SCALE
    middle, size = LEGEND * SCALE // 2, 9 * SCALE
    for name, colour in colours.items():
        pen.ellipse((at, middle - size, at + 2 * size, middle + size), fill=colour)
        pen.text((at + 3 * size, middle), name, fill="#222222", font=font, anchor="lm")
        at += 3 * size + int(pen.textlength(name, font=font)) + 40 * SCALE
    out = io.BytesIO()
    image.resize((WIDTH, HEIGHT), Image.Resampling.LANCZOS).save(out, "PNG", optimize=True)
    return out.getvalue()


def _fitted(values: Any, low: float, high: float) -> Any:
    """The values stretched over low … high; all in the middle where they are one."""
    span = float(values.max() - values.min()) if len(values) else 0.0
    if not span:
        return values * 0 + (low + high) / 2
    return low + (values - values.min()) / span * (high - low)
