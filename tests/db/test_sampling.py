"""Drawing items: at most one of a group, even strata, the seed decides."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from db.shape import INF_IR
from db.study.sampling import even_quotas, sample_items, take_highest

SCENARIOS = st.sets(st.sampled_from(INF_IR.roles), min_size=1)
GROUPS = st.dictionaries(st.integers(1, 60), SCENARIOS, min_size=1, max_size=30).map(
    lambda found: {
        group: {role: 10 * group + INF_IR.roles.index(role) for role in roles}
        for group, roles in found.items()
    }
)


@given(GROUPS, st.integers(1, 40), st.integers(0, 5), st.booleans(), st.integers(1, 4))
def test_one_item_of_a_group_as_many_as_there_are_and_the_seed_decides(
    groups: dict[int, dict[str, int]], count: int, seed: int, even: bool, strata: int
) -> None:
    of = {group: group % strata for group in groups}
    sampled = sample_items(groups, count, seed, strata=of, even_scenarios=even)
    assert sampled == sample_items(groups, count, seed, strata=of, even_scenarios=even)
    assert len(sampled) == min(count, len(groups))
    assert len({item // 10 for item in sampled}) == len(sampled)
    assert all(item in groups[item // 10].values() for item in sampled)
    sizes = Counter(of.values())
    taken = Counter(of[item // 10] for item in sampled)
    open_ones = [taken[name] for name in sizes if taken[name] < sizes[name]]
    assert not open_ones or max(taken.values()) - min(open_ones) <= 1


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 5))
def test_scenarios_are_even_where_every_group_has_all(groups: int, count: int, seed: int) -> None:
    whole = {
        group: {role: 10 * group + n for n, role in enumerate(INF_IR.roles)}
        for group in range(groups)
    }
    used = Counter(item % 10 for item in sample_items(whole, count, seed))
    counts = [used[n] for n in range(3)]
    assert max(counts) - min(counts) <= 1


@given(st.dictionaries(st.text(max_size=3), st.integers(0, 20), min_size=1), st.integers(0, 99))
def test_quotas_are_as_equal_as_the_sizes_allow(sizes: dict[str, int], count: int) -> None:
    quotas = even_quotas(sizes, count)
    assert sum(quotas.values()) == min(count, sum(sizes.values()))
    assert all(0 <= quotas[name] <= sizes[name] for name in sizes)
    short = [quotas[name] for name in sizes if quotas[name] < sizes[name]]
    assert not short or max(quotas.values()) - min(short) <= 1


def test_quotas_by_hand() -> None:
    # 10 among strata of 2, 9 and 9: the small one is used up, 8 are left for two.
    assert even_quotas({"a": 9, "b": 2, "c": 9}, 10) == {"a": 4, "b": 2, "c": 4}


@given(GROUPS, st.data(), st.integers(0, 5))
def test_the_highest_come_first_each_group_with_its_highest(
    groups: dict[int, dict[str, int]], data: st.DataObject, seed: int
) -> None:
    items = [item for found in groups.values() for item in found.values()]
    value = data.draw(st.dictionaries(st.sampled_from(items), st.sampled_from([0.0, 0.5, 1.0])))
    sampled = take_highest(groups, value, 10, seed)
    assert sampled == take_highest(groups, value, 10, seed)
    best = {
        group: max(value[item] for item in found.values() if item in value)
        for group, found in groups.items()
        if value.keys() & found.values()
    }
    assert [value[item] for item in sampled] == sorted(best.values(), reverse=True)[:10]
    assert all(value[item] == best[item // 10] for item in sampled)
    assert len({item // 10 for item in sampled}) == len(sampled)
