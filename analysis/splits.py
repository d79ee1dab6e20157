"""Held-out splits that leak nothing: groups that share a query or a passage stay on one side."""

import hashlib
from collections import defaultdict
from collections.abc import Hashable, Sequence

import numpy as np


def held_out(groups: Sequence[tuple[Hashable, ...]], *, fraction: float, seed: int) -> np.ndarray:
    """Which groups are held out: a bool per group.

    A group is the tuple of its keys (query text, passage texts). Groups that share any key, also
    through others, are one component and land on the same side. Components are taken in an order
    that depends on their keys and the seed only, while they fit into `fraction` of the groups;
    with 0 < fraction < 1 at least one component is held out and at least one is not, where there
    are two. Keys are compared by `repr`, so use texts, numbers or tuples of them.
    """
    if not 0.0 <= fraction <= 1.0:
        raise ValueError(f"fraction {fraction}: it lies between 0 and 1")
    members = _components(groups)
    ordered = sorted(members, key=lambda name: _rank(name, seed))
    wanted = len(groups) if fraction == 1.0 else min(round(fraction * len(groups)), len(groups) - 1)
    taken = 0
    out = np.zeros(len(groups), dtype=bool)
    for name in ordered:
        if taken + len(members[name]) <= wanted:
            out[members[name]] = True
            taken += len(members[name])
    if fraction > 0 and taken == 0 and len(ordered) > 1:
        out[members[min(ordered, key=lambda name: len(members[name]))]] = True
    return out


def _components(groups: Sequence[tuple[Hashable, ...]]) -> dict[str, list[int]]:
    """Places of the groups by component; a component is named by its smallest key."""
    parents: dict[str, str] = {}

    def root(name: str) -> str:
        while parents[name] != name:
            parents[name] = parents[parents[name]]
            name = parents[name]
        return name

    named = [[repr(key) for key in keys] or [f"group {place}"] for place, keys in enumerate(groups)]
    for names in named:
        for name in names:
            parents.setdefault(name, name)
            one, other = sorted((root(names[0]), root(name)))
            parents[other] = one  # the smaller name stays the root: independent of the order
    members: dict[str, list[int]] = defaultdict(list)
    for place, names in enumerate(named):
        members[root(names[0])].append(place)
    return members


def _rank(name: str, seed: int) -> str:
    return hashlib.sha256(f"{seed}\0{name}".encode()).hexdigest()
