"""The name of a stored map, and the layers that can be compared on it."""

from itertools import combinations

from analysis.found.texts import CoverageFound, Stored
from analysis.map.difference import Layers


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
