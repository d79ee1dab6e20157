"""Which part of a run a study's sample stands for, from how its items were sampled. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from db.values import VERDICTS

Target = Literal["precision", "overturned", "recall"]
TARGETS: Final[tuple[Target, ...]] = get_args(Target)  # of a plan: the figure to know better
OF_A_FILE: Final = "its items come from a file, no run made them"
LISTED = "its items were listed by hand: the chance of each item of the run to be chosen is unknown"
ONE_LANGUAGE = "its items are of pairs in one language, which says nothing of the others"
DISPUTED = (
    "its items were chosen because judges disagree on them: such items are harder than the run's"
)


@dataclass(frozen=True)
class Design:
    """`strata`: fields of ItemKind within which every item had the same chance. `known`: verdicts
    whose groups were sampled by chance; `reason` says why the others were not."""

    strata: tuple[str, ...]
    known: tuple[str, ...]
    reason: str = ""


def design_of(settings: Mapping[str, Any]) -> Design:
    """The design of a study, from its settings.

    A list and a sample by disagreement have none: the chance of their items is not known.
    """
    sample = str(settings.get("sampling", "stratified"))
    if sample == "list":
        return Design((), (), LISTED)
    if sample == "disagreement":
        return Design((), (), DISPUTED)
    if sample == "file":
        return Design((), (), OF_A_FILE)
    if settings.get("language"):
        return Design((), (), ONE_LANGUAGE)
    strata = {name for name in settings.get("strata") or () if name != "scenario"}
    for addition in settings.get("additions") or ():
        strata.update(addition["strata"])
    only = settings.get("only")
    if only:
        return Design(tuple(sorted(strata)), (str(only),), f"only {only} groups were sampled")
    return Design(tuple(sorted(strata)), VERDICTS)
