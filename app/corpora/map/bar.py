"""The bar above the map: which map, its colours and layers, and the drawer of a new one."""

from collections.abc import Callable, Sequence
from itertools import combinations
from typing import TYPE_CHECKING, NamedTuple

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from analysis.found.texts import CoverageFound, Stored
from analysis.map.difference import VERDICTS, Layers
from app.corpora.map.actions import forget_selection
from app.corpora.stored_analysis import choose_analysis

if TYPE_CHECKING:
    import pandas as pd

COLOURS = ("role", "corpus", "source", "cluster", "field", "verdict")
STYLE = """<style>
.stMainBlockContainer:has(.st-key-coverage-head) {
  max-width: none; padding-left: 1.25rem; padding-right: 1.25rem; padding-bottom: 1rem;
}
.st-key-coverage-head h1 { font-size: 1.4rem; padding: 0; }
@media (max-width: 640px) { /* the map's name in a line of its own, below title and buttons */
  .st-key-coverage-head > :has(> .st-key-coverage-stored) { order: 1; flex: 1 0 100%; }
}
.st-key-coverage-stored [data-testid="stWidgetLabel"] {
  position: absolute; width: 1px; height: 1px; min-height: 0; overflow: hidden;
  clip-path: inset(50%);
}
/* The map's height (canvas/card.css), from before it is there on. */
[class*="st-key-coverage-card"]:not([class*="-hover"], [class*="-lit"]) {
  min-height: max(420px, calc(100vh - 12rem));
}
.st-key-coverage-body [data-testid="stHorizontalBlock"] { align-items: stretch; }
.st-key-coverage-body [data-testid="stColumn"]:first-child { flex: 1 1 28rem; }
.st-key-coverage-body [data-testid="stColumn"]:last-child { flex: 0 0 20rem; }
.st-key-coverage-side [data-testid="stHorizontalBlock"] { align-items: center; }
@media (max-width: 880px) {
  .st-key-coverage-body [data-testid="stColumn"]:last-child { flex: 1 1 100%; }
}
@media (min-width: 880.1px) {
  .st-key-coverage-body [data-testid="stColumn"]:last-child { position: relative; }
  .st-key-coverage-side { position: absolute; inset: 0; overflow-y: auto; padding-right: .4rem; }
}
</style>"""


class Drawn(NamedTuple):
    """How the map is drawn: the column of its colours, its contours, the layers compared, and
    whether each language has a panel."""

    colour: str
    contours: bool
    layers: Layers | None
    by_language: bool

    @property
    def corpora(self) -> Layers | None:
        """The layers compared where they are corpora: topics show how those differ."""
        return self.layers if self.layers and self.layers.column == "corpus" else None


def draw_bar(
    found: Sequence[Stored[CoverageFound]], new_map: Callable[[], None]
) -> tuple[Stored[CoverageFound], DeltaGenerator]:
    """Title, the choice of a stored map and the drawer of a new one.

    Returns the chosen map, and the place of what is drawn between them.
    """
    st.html(STYLE)
    with st.container(horizontal=True, vertical_alignment="center", key="coverage-head"):
        st.title("Coverage", anchor=False, width="content")
        with st.container(width="stretch", key="coverage-stored"):
            chosen = choose_analysis("coverage", found, map_name)
        between = st.container(width="content")
        with st.popover("New map", icon=":material/add:", width="content", key="coverage.new"):
            new_map()
    return chosen, between


def draw_view(found: Stored[CoverageFound], points: "pd.DataFrame", languages: int) -> Drawn:
    """Colours, contours, layers and panels of the chosen map, which has that many languages."""
    corpora = found.result.corpora
    there = [name for name in COLOURS if name in points]
    with st.popover("View", icon=":material/layers:", width="content"):
        colour = st.selectbox(
            "Colour",
            there,
            index=there.index("corpus" if len(corpora) > 1 else "role"),
            key="coverage.colour",
        )
        contours = st.toggle("Contours per corpus", False, key="coverage.contours")
        by_language = languages > 1 and st.toggle(
            "A panel for each language",
            True,
            key="coverage.by_language",
            on_change=forget_selection,
            help="By the language of a topic. Distances between panels mean nothing.",
        )
        options: list[Layers | None] = [None, *layers_of(found.result)]
        first = first_layers(found.result)
        if "verdict" in points and {"kept", "dropped"} <= set(points["verdict"].astype(str)):
            options.insert(1, VERDICTS)
            is_one = sum(each.kind != "pairs" for each in corpora) == 1
            first = first or (VERDICTS if is_one else None)
        layers = None
        if len(options) > 1:
            layers = st.selectbox(
                "Coloured ground",
                options,
                index=options.index(first),
                format_func=ground_name,
                key=f"coverage.layers-{found.id}",
                help="Kept share: kept of all texts at a place, from orange (lowest) to blue "
                "(highest), where 5 texts or more lie; a line surrounds what differs from the "
                "whole by more than chance. Two layers: coloured where one is "
                "denser than the other by more than in any of 19 shuffles of the groups.",
            )
    return Drawn(colour, contours, layers, by_language)


def ground_name(layers: Layers | None) -> str:
    """What the ground shows, as the choice names it."""
    if layers is None:
        return "none"
    return "kept share" if layers == VERDICTS else f"{layers.first} and {layers.second}"


# The name of a stored map, and the layers that can be compared on it.
def map_name(found: Stored[CoverageFound]) -> str:
    """Its corpora, how many texts it has, and when it was drawn."""
    names = ", ".join(corpus.corpus for corpus in found.result.corpora)
    return f"{names} · {found.result.points:,} texts · {found.created_at:%Y-%m-%d %H:%M}"


def layers_of(result: CoverageFound) -> list[Layers]:
    """Every two corpora of a map."""
    names = [each.corpus for each in result.corpora]
    return [Layers(*two) for two in combinations(names, 2)]


def first_layers(result: CoverageFound) -> Layers | None:
    """The layers that are compared at first: those of a map of exactly two, none of them pairs
    that nothing was grown from, which lie elsewhere by their choice."""
    kinds = [each.kind for each in result.corpora]
    return layers_of(result)[0] if len(kinds) == 2 and "pairs" not in kinds else None
