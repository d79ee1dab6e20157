"""A group of a release as training reads it; loads neither the store nor a file format."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from db.shape import Shape


@dataclass(frozen=True)
class Negative:
    """A passage that does not satisfy a scenario of its group, by the scenario's place.

    `grade`: 1 answers its query but violates its instruction, 0 does not answer.
    """

    grade: int
    text: str
    scenario: int = 0


@dataclass(frozen=True)
class Group:
    """One row of a release: a triplet per scenario (definitions, section 1).

    `texts` are the text columns, in the order of `shape`.
    """

    group_id: str
    texts: tuple[str, ...]
    dropped: bool = False
    """Released although validation dropped it (`inf export --include-dropped`) and no person
    approved it."""
    approved: bool = False
    """A person approved it (the release's column `review`)."""
    confidence: float | None = None
    """How sure its validator was (`trainer.data.choosing`); None if unknown or not read."""
    judged: tuple[tuple[float, ...], ...] | None = None
    """A judge's scores of the passages in each scenario (`trainer.data.judged`); None if not
    read, or not judged."""
    set_aside: bool = False
    """In a split that the release itself holds out (`<split>_held_out`)."""
    negatives: tuple[Negative, ...] = ()
    """Besides the scenarios' passages: as many as were given."""
    shape: Shape = field(kw_only=True, compare=False, repr=False)

    def text(self, sign: str) -> str:
        """The text of that sign (I+, P1-, …)."""
        return self.texts[self.shape.places_of_signs[sign]]

    def without_instructions(self) -> "Group":
        """The same group with "" for every instruction."""
        kinds = zip(self.texts, self.shape.all_texts, strict=True)
        return replace(
            self, texts=tuple("" if kind.field == "instruction" else text for text, kind in kinds)
        )

    def triplets(self) -> tuple[tuple[str, str, str], ...]:
        """(instruction, query, passage) of each scenario, in the order of the shape."""
        texts = self.texts
        return tuple((texts[i], texts[q], texts[p]) for i, q, p in self.shape.places_of_triplets)

    def open_claims(self) -> tuple[tuple[int, Negative], ...]:
        """(place of a scenario, negative) of which no claim is made: it violates an instruction,
        and may satisfy another one of the same query."""
        triplets = self.triplets()
        return tuple(
            (place, negative)
            for negative in self.negatives
            for place, (instruction, query, _) in enumerate(triplets)
            if negative.grade == 1
            and query == triplets[negative.scenario][1]
            and instruction != triplets[negative.scenario][0]
        )

    def split_keys(self) -> tuple[str, ...]:
        """What must not be on both sides of a split: queries and passages."""
        return tuple(self.texts[place] for place in self.shape.places_of_split)

    def row(self) -> dict[str, str]:
        """The text columns by name."""
        return dict(zip(self.shape.columns, self.texts, strict=True))


def group_of(row: Mapping[str, Any], *, shape: Shape, group_id: str = "", **more: Any) -> Group:
    """The group with the text columns of a row."""
    return Group(group_id, tuple(row[name] for name in shape.columns), shape=shape, **more)


def group_key(group: Group) -> str:
    """A digest of the texts: the same for groups with the same texts."""
    return hashlib.sha256("\0".join(group.row().values()).encode()).hexdigest()


def plain(text: str) -> str:
    """The text without case and spacing, as texts of different releases are compared."""
    return " ".join(text.casefold().split())
