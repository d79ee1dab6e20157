"""The whole map as a file to print: SVG, PDF or PNG, with its legend and names. Pure.

In SVG and PDF the points are one picture of 300 dots per inch (as outlines, 100,000 texts are a
file that no reader opens); the names and the legend stay text.
"""

from typing import TYPE_CHECKING, Final

from analysis.figures.printed import DOTS_PER_INCH, new_figure, printable, saved
from analysis.map.picture import categories_of, coloured, labels_of

if TYPE_CHECKING:
    import pandas as pd

HEIGHT: Final = 5.5  # inches
NAMES: Final = 12  # of the largest clusters
POINT_AREA: Final = 12_000.0  # square points for all texts together
LARGEST_POINT: Final = 14.0


def printed_map(
    points: "pd.DataFrame", colour_by: str, kind: str, dots_per_inch: int = DOTS_PER_INCH
) -> bytes:
    """The map of `points` (columns of `analysis.map.coverage.points_table`) as a file."""
    from matplotlib.patheffects import withStroke

    whole = new_figure(HEIGHT)
    if points.empty:
        return saved(whole, kind, dots_per_inch)
    axes = whole.add_subplot()
    axes.set_axis_off()
    axes.margins(x=0.16, y=0.06)  # room for names
    names = categories_of(points, colour_by)
    size = min(LARGEST_POINT, POINT_AREA / len(points))
    for name, colour in coloured(points, colour_by).items():
        rows = points[names == name]
        axes.scatter(
            rows["x"],
            rows["y"],
            s=size,
            color=colour,
            alpha=0.7,
            linewidths=0,
            rasterized=True,
            label=printable(f"{name} ({len(rows):,})"),
        )
    for each in labels_of(points)[:NAMES]:
        axes.text(
            each["x"],
            each["y"],
            printable(each["name"]),
            ha="center",
            va="center",
            path_effects=[withStroke(linewidth=2, foreground="white")],
            in_layout=False,  # a name at the border would push the map to nothing
        )
    whole.legend(loc="outside lower center", ncols=4, markerscale=3)
    return saved(whole, kind, dots_per_inch)
