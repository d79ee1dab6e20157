"""Where hidden gold items come among a judge's items, and how many there will be.

Every `gold_every` items of a judge hold one gold item, at a place from the system's random source:
nobody can tell which one it is, and the number of all items, which the judge sees, counts it from
the start.
"""

import secrets
from collections.abc import Sequence


def draw_place(gold_given: int, every: int) -> int:
    """After how many other items the next gold item comes, by the number of those given."""
    return gold_given * every + 1 + secrets.randbelow(every)


def planned_gold(others: int, *, given: int, free: int, every: int) -> int:
    """How many gold items a judge gets in all with N other items; never fewer than given."""
    return max(given, min(given + free, -(-others // every)))


def interleave(
    others: Sequence[int],
    gold: Sequence[int],
    count: int,
    *,
    given: int,
    gold_given: int,
    every: int,
    next_gold: int,
) -> tuple[list[int], int]:
    """The next `count` items, gold at its places, and the place of the gold item after them.

    `given` and `gold_given` count what the judge has; gold that is still missing for as many other
    items comes at the end.
    """
    found: list[int] = []
    waiting, golden = list(others), list(gold)
    while len(found) < count:
        is_missing = not waiting and gold_given < -(-given // every)
        if golden and (given >= next_gold or is_missing):
            found.append(golden.pop(0))
            gold_given += 1
            next_gold = draw_place(gold_given, every)
        elif waiting:
            found.append(waiting.pop(0))
            given += 1
        else:
            break
    return found, next_gold
