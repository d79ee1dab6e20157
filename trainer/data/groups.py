"""A group of a release as training reads it; loads neither the store nor a file format."""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from operator import itemgetter
from typing import Any

from db.shape import INF_IR

_PLACES = {sign: place for place, sign in enumerate(INF_IR.texts)}
# Made once: training reads these of every group in every epoch.
_TRIPLETS: tuple[Callable[[tuple[str, ...]], tuple[str, str, str]], ...] = tuple(
    itemgetter(*(_PLACES[sign] for sign in scenario.signs))
    for scenario in INF_IR.scenarios.values()
)
_SPLIT_KEYS: Callable[[tuple[str, ...]], tuple[str, ...]] = itemgetter(
    *(
        _PLACES[text.sign]
        for field in ("query", "passage")
        for text in INF_IR.texts.values()
        if text.field == field
    )
)


@dataclass(frozen=True)
class Group:
    """One row of InF-IR: a triplet per scenario (definitions, section 1).

    `texts` are the text columns, in the order of `db.shape.INF_IR`.
    """

    group_id: str
    texts: tuple[str, ...]
    dropped: bool = False
    """Released although validation dropped it (`inf export --include-dropped`) and no person
    approved it."""
    approved: bool = False
    """A person approved it (the release's column `review`)."""
    confidence: float | None = None
    """How sure its validator was (`trainer.data.confidence`); None if unknown or not read."""
    judged: tuple[tuple[float, ...], ...] | None = None
    """A judge's scores of the passages in each scenario (`trainer.data.judged`); None if not
    read, or not judged."""
    set_aside: bool = False
    """In a split that the release itself holds out (`<split>_held_out`)."""

    def text(self, sign: str) -> str:
        """The text of that sign (I+, P1-, …)."""
        return self.texts[_PLACES[sign]]

    def without_instructions(self) -> "Group":
        """The same group with "" for every instruction."""
        kinds = zip(self.texts, INF_IR.texts.values(), strict=True)
        return replace(
            self, texts=tuple("" if kind.field == "instruction" else text for text, kind in kinds)
        )

    def triplets(self) -> tuple[tuple[str, str, str], ...]:
        """(instruction, query, passage) of each scenario, in the order of `db.shape`."""
        return tuple(read(self.texts) for read in _TRIPLETS)

    def split_keys(self) -> tuple[str, ...]:
        """What must not be on both sides of a split: queries and passages."""
        return _SPLIT_KEYS(self.texts)

    def row(self) -> dict[str, str]:
        """The text columns by name."""
        return dict(zip(INF_IR.columns, self.texts, strict=True))


def group_of(row: Mapping[str, Any], *, group_id: str = "", **more: Any) -> Group:
    """The group with the text columns of a row."""
    return Group(group_id, tuple(row[name] for name in INF_IR.columns), **more)


def group_key(group: Group) -> str:
    """A digest of the seven texts: the same for groups with the same texts."""
    return hashlib.sha256("\0".join(group.row().values()).encode()).hexdigest()


def plain(text: str) -> str:
    """The text without case and spacing, as texts of different releases are compared."""
    return " ".join(text.casefold().split())
