"""Held-out groups that show what a training changed: where the trained model follows the
instruction, and where it does not.

The rule is stated on the Try it page (RULE) and looks at no score but which passage is first; the
base model is the one before the training. Chosen where the texts are at hand, so that the page
neither loads a model nor reads the release.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np

from db.shape import INF_IR
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
    "first under both. Of each kind, the group with the fewest characters is shown; ties go to the "
    "first in the release."
)
INDEX_STAYS = (
    "Your index of {base} stays valid: passages and queries without an instruction have its "
    "vectors to the bit. Only queries with an instruction are encoded by the trained copy."
)
_OTHER = INF_IR.roles.index("instruction_negative")


def first_of(scores: np.ndarray) -> tuple[str, str]:
    """Which of P+ and P1- is first for (I+,Q+) and for (I-,Q+), by a group's scores (S, S).

    NEITHER for equal scores and for NaN.
    """
    return _first(*scores[0, [0, _OTHER]]), _first(*scores[_OTHER, [0, _OTHER]])


def _first(one: float, other: float) -> str:
    return SIGNS[0] if one > other else SIGNS[1] if other > one else NEITHER


def choose_examples(
    groups: Sequence[Group], before: Sequence[np.ndarray], after: Sequence[np.ndarray]
) -> dict[str, Any]:
    """{groups, followed_before, followed, gained, works, fails, lost}: the groups compared,
    those that the base and the trained model follow, and the trained one alone; and by RULE the
    count and the first examples of each kind.

    before, after: each group's scores. A group whose P+ and P1- are one text is not compared: no
    model can rank one above the other.
    """
    compared = [
        (group, first_of(base), first_of(trained))
        for group, base, trained in zip(groups, before, after, strict=True)
        if group.text("P+") != group.text("P1-")
    ]
    followed = [each for each in compared if each[2] == SIGNS]
    works = [each for each in followed if each[1][0] == each[1][1] != NEITHER]
    fails = [each for each in compared if each[2] != SIGNS]
    lost = [each for each in fails if each[1] == SIGNS]
    return {
        "groups": len(compared),
        "followed_before": sum(base == SIGNS for _, base, _ in compared),
        "followed": len(followed),
        "gained": sum(base != SIGNS for _, base, _ in followed),
        "works": {"count": len(works), "examples": _shortest(works)},
        "fails": {"count": len(fails), "examples": _shortest(fails)},
        "lost": {"count": len(lost), "examples": _shortest(lost)},
    }


def _shortest(
    found: Sequence[tuple[Group, tuple[str, str], tuple[str, str]]],
) -> list[dict[str, Any]]:
    rows = [_example(*each) for each in found]
    rows.sort(key=lambda row: sum(map(len, row["texts"].values())))  # stable: as in the release
    return rows[:MAX_EXAMPLES]


def _example(group: Group, before: tuple[str, str], after: tuple[str, str]) -> dict[str, Any]:
    texts = {sign: group.text(sign) for sign in ("Q+", "I+", "I-", *SIGNS)}
    return {"group": group.group_id, "texts": texts, "before": before, "after": after}
