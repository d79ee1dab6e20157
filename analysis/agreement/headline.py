"""Which coefficient is the headline of agreement, and how it is worded. Pure.

`headline` decides; page, command, card, JSON and Home read its choice from the report. Of people:

- two: Cohen's kappa of the two over the items that both judged, exactly;
- three or more: Krippendorff's alpha over every item that two of them judged. It needs no pair with
  many items in common. A mean of pairwise kappas does: with 20 people, three for each of 120
  items, a pair shares two items, and the mean is 0.38 where the truth is 0.54 (docs/intervals.md,
  docs/decisions/0008).

Of a model with people, and of one person with the others: kappa of the one with the group
(`analysis.agreement.group_kappa`), which is Cohen's kappa where the group is one.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Final

from analysis.agreement.answers import PERSON

MIN_SHARED: Final = 10
"""Items that a pair, or a person and the others, share before a value is shown instead of a count:
the smallest number whose interval is simulated in docs/intervals.md."""


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of agreement as texts name it; `symbol` stands before a value."""

    name: str
    label: str
    symbol: str
    help: str


COHEN: Final = Coefficient(
    "cohen_kappa",
    "Cohen's kappa",
    "kappa",
    "Two judges over the items that both judged.",
)
ALPHA: Final = Coefficient(
    "krippendorff_alpha",
    "Krippendorff's alpha",
    "alpha",
    "Three people or more over every item that two of them judged; right where not everyone "
    "judged every item.",
)
GROUP: Final = Coefficient(
    "group_kappa",
    "Kappa with the group",
    "kappa",
    "One judge with all the people who judged the same item; Cohen's kappa with one person.",
)
COEFFICIENTS: Final = {each.name: each for each in (COHEN, ALPHA, GROUP)}


def headline(people: int, *, of_one: bool = False) -> Coefficient:
    """The coefficient of this many people among themselves; `of_one`: of one judge with them."""
    if of_one:
        return GROUP if people > 1 else COHEN
    return ALPHA if people > 2 else COHEN


def figure_text(found: Mapping[str, Any], digits: int = 3) -> str:
    """`alpha 0.543 [0.461, 0.622]`; without a value `undefined: reason`."""
    if found["value"] is None:
        return f"undefined: {found['reason']}"
    text = f"{COEFFICIENTS[found['coefficient']].symbol} {found['value']:.{digits}f}"
    if not found.get("interval"):
        return text
    low, high = found["interval"]
    return f"{text} [{low:.{digits}f}, {high:.{digits}f}]"


def rest_sentence(report: Mapping[str, Any]) -> str:
    """The kappa of each person with the others, from the lowest to the highest; names nobody.

    Empty where fewer than three people have a value: of two it is the headline, twice.
    """
    people = [
        judge["judge"]
        for judge in report["judges"]
        if judge["kind"] == PERSON and judge["simulated"] == report["simulated"]
    ]
    rows = [report["with_people"][name] for name in people]
    values = [row["value"] for row in rows if row["value"] is not None]
    if len(people) < 3 or len(values) < 3:
        return ""
    few = len(rows) - len(values)
    flagged = report["flagged"]
    kept = [report["with_people"][name] for name in people if name not in flagged]
    without = [row.get("without_flagged", row)["value"] for row in kept]
    without = [value for value in without if value is not None]
    return (
        f"Each person with the others: {_range(values)}"
        + (f"; {few} without a value, of too few items or one label" if few else "")
        + (f"; without flagged people: {_range(without)}" if flagged and without else "")
        + "."
    )


def _range(values: Sequence[float]) -> str:
    return (
        f"kappa {min(values):.3f} to {max(values):.3f}, median {median(values):.3f} of "
        f"{len(values)} {'person' if len(values) == 1 else 'people'}"
    )


def interval_cells(numbers: Mapping[str, Any]) -> dict[str, float | None]:
    """The interval as two columns."""
    low, high = numbers.get("interval") or (None, None)
    return {"95 % from": low, "to": high}
