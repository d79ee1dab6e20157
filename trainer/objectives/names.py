"""The objectives by name: the eleven of Table 3, and two to compare them with.

Seven sets of terms, as uni (Eq. 6, a sum of cross-entropies) and multi (Eq. 7, one softmax over the
union of negatives); with one term the two are the same (Eq. 8–10 = 15–17), which leaves eleven.
`BASELINES` registers two more with everything that differs about them, so that the batch, the loss
and the pages read facts and tell no names apart. To add one, add an entry, and a file beside this
one where it needs a loss of its own.
"""

import difflib
from dataclasses import dataclass, replace
from typing import Final, Literal

from db.errors import BadInput
from db.shape import INF_IR, Shape

Term = Literal["P", "I", "IQ"]
Mode = Literal["uni", "multi"]


@dataclass(frozen=True)
class Baseline:
    """An objective to compare with: how it is named, and how it differs from ℓ_P.

    every: every N-th triplet is an anchor (N the number of scenarios: (I+,Q+) alone). loss: a
    function of its own, as `module:function` (imported where it is computed: this module loads no
    torch), with the signature of `trainer.objectives.losses.mnrl_loss`; empty: ℓ_P with our masks
    for equal texts. symbol and negatives: its name and the index set of its negatives in LaTeX.
    """

    name: str
    label: str
    help: str
    symbol: str
    negatives: str
    every: int = 1
    loss: str = ""


@dataclass(frozen=True)
class Objective:
    """Which terms are contrasted, and how they are joined."""

    terms: tuple[Term, ...]
    mode: Mode
    baseline: Baseline | None = None

    @property
    def name(self) -> str:
        """As settings write it: `P`, `P,I:multi`, `mnrl`."""
        if self.baseline:
            return self.baseline.name
        return ",".join(self.terms) + (f":{self.mode}" if len(self.terms) > 1 else "")

    @property
    def label(self) -> str:
        """As Table 3 prints it; a baseline by its authors' name."""
        if self.baseline:
            return self.baseline.label
        terms = self.terms[0] if len(self.terms) == 1 else "{" + ",".join(self.terms) + "}"
        return f"ℓ_{terms}^{self.mode}" if len(self.terms) > 1 else f"ℓ_{terms}"

    @property
    def anchor_every(self) -> int:
        """N where every N-th of a row's triplets is an anchor."""
        return self.baseline.every if self.baseline else 1

    def for_shape(self, shape: Shape) -> "Objective":
        """The same for groups of this shape: one anchor for as many triplets as a group has."""
        if self.baseline is None or self.baseline.every == 1:
            return self
        return replace(self, baseline=replace(self.baseline, every=len(shape.roles)))

    @property
    def reads_negatives(self) -> bool:
        """Whether it contrasts passages besides those of scenarios: mined or given ones."""
        return "P" in self.terms and not (self.baseline and self.baseline.loss)

    def require_contrast(self, shape: Shape) -> None:
        """Raise BadInput for terms that contrast instructions of groups that have no second one."""
        terms = [term for term in self.terms if term != "P"]
        if terms and shape.other_instruction is None:
            raise BadInput(
                f"objective {self.name!r} contrasts {' and '.join(TERM_HELP[one] for one in terms)}"
                ", and no query of these groups has a second instruction",
                "Train with `objective=P`",
                code="objective_without_contrast",
            )

    @property
    def help(self) -> str:
        """What it contrasts, in one sentence."""
        if self.baseline:
            return self.baseline.help
        contrasted = ", ".join(TERM_HELP[term] for term in self.terms)
        if len(self.terms) == 1:
            return f"Contrasts {contrasted}."
        joined = "one loss per term, summed" if self.mode == "uni" else "one softmax over all"
        return f"Contrasts {contrasted}; {joined}."


TERM_HELP: Final[dict[Term, str]] = {
    "P": "passages",
    "I": "instructions",
    "IQ": "instruction-query pairs",
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
    for objective in (Objective(terms, mode) for terms in SETS)
    if mode == "uni" or len(objective.terms) > 1
}
BASELINES: Final = {
    each.name: Objective(("P",), "uni", each)
    for each in (
        Baseline(
            "mnrl",
            "MultipleNegativesRanking (sentence-transformers)",
            "sentence-transformers' own MultipleNegativesRankingLoss over the same triplets.",
            symbol="MNRL",
            negatives=r"m\neq i",
            loss="trainer.objectives.losses:mnrl_loss",
        ),
        Baseline(
            "promptriever",
            "Promptriever (instance negatives)",
            "Anchors are (I+,Q+) alone; P1- and P2- are their instance negatives.",
            symbol="Promptriever",
            negatives=r"P_1^-,P_2^-,\,P\text{ of the batch}",
            every=len(INF_IR.scenarios),
        ),
    )
}
ALL_OBJECTIVES: Final = {**OBJECTIVES, **BASELINES}


def parse_objective(name: str) -> Objective:
    """The objective of that name. Raises BadInput naming the nearest."""
    if name in ALL_OBJECTIVES:
        return ALL_OBJECTIVES[name]
    near = difflib.get_close_matches(name, ALL_OBJECTIVES, n=1, cutoff=0.0)
    raise BadInput(
        f"no objective {name!r}",
        f"did you mean {near[0]!r}? One of {' '.join(ALL_OBJECTIVES)}",
        code="objective_unknown",
    )
