"""A smaller training set of the same groups, to see what more of them are worth."""

import hashlib
from collections.abc import Sequence

from trainer.data.groups import Group, group_key


def choose_groups(groups: Sequence[Group], count: int, seed: int) -> list[Group]:
    """At most `count` of the groups (0: all), in their order, chosen by their texts and the seed.

    A larger count chooses the same groups and more: a curve over sizes compares nested sets.
    """
    if count == 0 or count >= len(groups):
        return list(groups)
    places = sorted(range(len(groups)), key=lambda place: (_rank(groups[place], seed), place))
    return [groups[place] for place in sorted(places[:count])]


def _rank(group: Group, seed: int) -> bytes:
    return hashlib.sha256(f"choose {seed} {group_key(group)}".encode()).digest()
