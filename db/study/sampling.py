"""Sampling a study's items from groups: at most one item of a group, by a seed. Pure functions.

Note: strata are filled evenly, not in proportion: a rare source gets as many items as a common one,
until it has no more groups.
"""

import random
from collections import Counter
from collections.abc import Hashable, Mapping

Groups = Mapping[int, Mapping[str, int]]  # its items by scenario, in their order


def sample_items(
    groups: Groups,
    count: int,
    seed: int,
    *,
    strata: Mapping[int, Hashable] | None = None,
    even_scenarios: bool = True,
) -> list[int]:
    """Up to `count` items, one of a group, in a random order.

    `strata` puts groups into strata of equal shares; `even_scenarios` takes scenarios in turn, as
    far as a group has them; without it each item is a random one of its group.
    """
    chance = random.Random(seed)
    order = sorted(groups)
    chance.shuffle(order)
    if strata is not None:
        order = _of_even_strata(order, strata, count, chance)
    used: Counter[str] = Counter()
    sampled = [
        _pick(groups[group_id], used) if even_scenarios else _any(groups[group_id], chance)
        for group_id in order[:count]
    ]
    chance.shuffle(sampled)
    return sampled


def take_highest(groups: Groups, value: Mapping[int, float], count: int, seed: int) -> list[int]:
    """Up to `count` items with the highest value, one of a group, the highest first.

    `value` is by item; groups without one are omitted. A group is represented by its highest item;
    ties are ordered by the seed over groups, and scenarios are kept even.
    """
    chance = random.Random(seed)
    best = {
        group_id: max(value[item_id] for item_id in items.values() if item_id in value)
        for group_id, items in groups.items()
        if any(item_id in value for item_id in items.values())
    }
    order = sorted(best)
    chance.shuffle(order)
    order.sort(key=lambda group_id: -best[group_id])
    used: Counter[str] = Counter()
    return [
        _pick(
            {
                scenario: item_id
                for scenario, item_id in groups[group_id].items()
                if value.get(item_id) == best[group_id]
            },
            used,
        )
        for group_id in order[:count]
    ]


def even_quotas(sizes: Mapping[Hashable, int], count: int) -> dict[Hashable, int]:
    """How many of each stratum: as equal as possible, none more than its size.

    A remainder goes to the larger ones.
    """
    quotas = {}
    left = count
    for place, name in enumerate(sorted(sizes, key=lambda name: sizes[name])):
        quotas[name] = min(sizes[name], left // (len(sizes) - place))
        left -= quotas[name]
    return quotas


def _of_even_strata(
    order: list[int], strata: Mapping[int, Hashable], count: int, chance: random.Random
) -> list[int]:
    members: dict[Hashable, list[int]] = {}
    for group_id in order:
        members.setdefault(strata[group_id], []).append(group_id)
    quotas = even_quotas({name: len(found) for name, found in members.items()}, count)
    return [group_id for name, found in members.items() for group_id in found[: quotas[name]]]


def _pick(items: Mapping[str, int], used: Counter[str]) -> int:
    """The item of the scenario used least so far."""
    scenario = min(items, key=lambda name: used[name])
    used[scenario] += 1
    return items[scenario]


def _any(items: Mapping[str, int], chance: random.Random) -> int:
    return items[chance.choice(sorted(items))]
