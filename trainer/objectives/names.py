"""The objectives by name: the eleven of Table 3, and two to compare them with.

Seven sets of terms, as uni (Eq. 6, a sum of cross-entropies) and multi (Eq. 7, one softmax over the
union of negatives); with one term the two are the same (Eq. 8–10 = 15–17), which leaves eleven.
Baselines: `mnrl`, sentence-transformers' own MultipleNegativesRankingLoss over the same triplets,
and `promptriever`, instance negatives (see `embedding_loss`).
"""

import difflib
from dataclasses import dataclass
from typing import Final, Literal

from db.errors import BadInput

Term = Literal["P", "I", "IQ"]
Mode = Literal["uni", "multi"]
Baseline = Literal["", "mnrl", "promptriever"]
TERMS: Final[tuple[Term, ...]] = ("P", "I", "IQ")


@dataclass(frozen=True)
class Objective:
    """Which terms are contrasted, and how they are joined."""

    terms: tuple[Term, ...]
    mode: Mode
    baseline: Baseline = ""

    @property
    def name(self) -> str:
        """As settings write it: `P`, `P,I:multi`, `mnrl`."""
        if self.baseline:
            return self.baseline
        return ",".join(self.terms) + (f":{self.mode}" if len(self.terms) > 1 else "")

    @property
    def label(self) -> str:
        """As Table 3 prints it; a baseline by its authors' name."""
        if self.baseline:
            return BASELINE_LABELS[self.baseline]
        terms = self.terms[0] if len(self.terms) == 1 else "{" + ",".join(self.terms) + "}"
        return f"ℓ_{terms}^{self.mode}" if len(self.terms) > 1 else f"ℓ_{terms}"


BASELINE_LABELS: Final = {
    "mnrl": "MultipleNegativesRanking (sentence-transformers)",
    "promptriever": "Promptriever (instance negatives)",
}
SETS: Final[tuple[tuple[Term, ...], ...]] = (
    ("P",),
    ("I",),
    ("IQ",),
    ("P", "I"),
    ("P", "IQ"),
    ("I", "IQ"),
    ("P", "I", "IQ"),
)
OBJECTIVES: Final = {
    objective.name: objective
    for mode in ("uni", "multi")
    for objective in (Objective(terms, mode) for terms in SETS)  # type: ignore[arg-type]
    if mode == "uni" or len(objective.terms) > 1
}
BASELINES: Final = {
    "mnrl": Objective(("P",), "uni", "mnrl"),
    "promptriever": Objective(("P",), "uni", "promptriever"),
}
ALL_OBJECTIVES: Final = {**OBJECTIVES, **BASELINES}


def parse_objective(name: str) -> Objective:
    """The objective of that name. Raises BadInput naming the nearest."""
    if name in ALL_OBJECTIVES:
        return ALL_OBJECTIVES[name]
    near = difflib.get_close_matches(name, ALL_OBJECTIVES, n=1, cutoff=0.0)
    raise BadInput(
        f"no objective {name!r}: did you mean {near[0]!r}? One of {' '.join(ALL_OBJECTIVES)}"
    )
