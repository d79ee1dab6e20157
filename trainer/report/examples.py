"""Held-out groups that show what a training changed: where the trained model follows the
instruction, and where it does not.

The rule is stated on the Try it page (RULE) and looks at no score but which passage is first; the
base model is the one before the training. Chosen where the texts are at hand, so that the page
neither loads a model nor reads the release.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from trainer.data.groups import Group

SIGNS = ("P+", "P1-")
NEITHER = ""
MAX_EXAMPLES = 6  # of each kind: the first may be hidden from the reader, who is to judge its items
RULE = (
    "Chosen by a rule, not by hand. Of each held-out group, the query Q+ is searched with the "
    "instruction I+, for which passage A is right, and with I-, for which B is right; A and B are "
    "compared. Works: the trained model ranks the right one first under both instructions, and the "
    "base model ranks the same one first under both. Fails: the trained model ranks the wrong one "
    "first, or none, under at least one. Lost: it fails, and the base model ranked the right one "
    "first under both. Gained: the trained model ranks the right one first under both, and the "
    "base model did not. Unchanged: both models do, or neither does. Of each kind, the group with "
    "the fewest characters is shown; ties go to the first in the release."
)
INDEX_STAYS = (
    "Your index of {base} stays valid: passages and queries without an instruction have its "
    "vectors to the bit. Only queries with an instruction are encoded by the trained copy."
)


def first_of(scores: np.ndarray, other: int = 1) -> tuple[str, str]:
    """Which of P+ and P1- is first for (I+,Q+) and for (I-,Q+), by a group's scores (S, S); `other`
    is the place of the scenario with I-.

    NEITHER for equal scores and for NaN.
    """
    return _first(*scores[0, [0, other]]), _first(*scores[other, [0, other]])


def _first(one: float, other: float) -> str:
    return SIGNS[0] if one > other else SIGNS[1] if other > one else NEITHER


def choose_examples(
    groups: Sequence[Group], before: Sequence[np.ndarray], after: Sequence[np.ndarray]
) -> dict[str, Any]:
    """{groups, followed_before, followed, gained, works, fails, lost, gains, unchanged}: the groups
    compared, those that the base and the trained model follow, and the trained one alone; and by
    RULE the count and the first examples of each kind.

    groups: of a shape with a second instruction for the query, whose texts are called as InF-IR's.
    before, after: each group's scores. A group whose P+ and P1- are one text is not compared: no
    model can rank one above the other.
    """
    compared = [
        (group, first_of(base, _other(group)), first_of(trained, _other(group)))
        for group, base, trained in zip(groups, before, after, strict=True)
        if group.triplets()[0][2] != group.triplets()[_other(group)][2]
    ]
    followed = [each for each in compared if each[2] == SIGNS]
    works = [each for each in followed if each[1][0] == each[1][1] != NEITHER]
    fails = [each for each in compared if each[2] != SIGNS]
    kinds = {
        "works": works,
        "fails": fails,
        "lost": [each for each in fails if each[1] == SIGNS],
        "gains": [each for each in followed if each[1] != SIGNS],
        "unchanged": [each for each in compared if (each[1] == SIGNS) == (each[2] == SIGNS)],
    }
    return {
        "groups": len(compared),
        "followed_before": sum(base == SIGNS for _, base, _ in compared),
        "followed": len(followed),
        "gained": len(kinds["gains"]),
        **{kind: {"count": len(of), "examples": _shortest(of)} for kind, of in kinds.items()},
    }


def _other(group: Group) -> int:
    place = group.shape.other_instruction
    assert place is not None, "a caller compares only groups with a second instruction"
    return place


def _shortest(
    found: Sequence[tuple[Group, tuple[str, str], tuple[str, str]]],
) -> list[dict[str, Any]]:
    rows = [_example(*each) for each in found]
    rows.sort(key=lambda row: sum(map(len, row["texts"].values())))  # stable: as in the release
    return rows[:MAX_EXAMPLES]


def _example(group: Group, before: tuple[str, str], after: tuple[str, str]) -> dict[str, Any]:
    triplets = group.triplets()
    (instruction, query, right), (unlike, _, other) = triplets[0], triplets[_other(group)]
    signs = ("Q+", "I+", "I-", *SIGNS)
    texts = dict(zip(signs, (query, instruction, unlike, right, other), strict=True))
    return {"group": group.group_id, "texts": texts, "before": before, "after": after}
