"""A training set of fewer groups: nested by count, another with another seed."""

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from trainer_release import make_rows, write_release

from db.shape import INF_IR
from trainer.data.choosing import choose_groups
from trainer.data.groups import group_key, group_of
from trainer.launch.plan import groups_of
from trainer.settings.settings import parse_settings

GROUPS = [group_of(row, shape=INF_IR) for row in make_rows(30)]


@given(st.integers(1, 40), st.integers(0, 40), st.integers(0, 2**32))
def test_more_groups_of_a_seed_include_the_fewer_in_the_releases_order(
    count: int, more: int, seed: int
) -> None:
    few, many = choose_groups(GROUPS, count, seed), choose_groups(GROUPS, count + more, seed)
    assert len(few) == min(count, len(GROUPS))
    keys = [group_key(group) for group in many]
    assert {group_key(group) for group in few} <= set(keys)
    order = [group_key(group) for group in GROUPS]
    assert keys == [key for key in order if key in set(keys)]


def test_another_seed_chooses_others_and_the_order_of_the_file_does_not_matter() -> None:
    chosen = {frozenset(map(group_key, choose_groups(GROUPS, 10, seed))) for seed in range(5)}
    assert len(chosen) == 5
    again = choose_groups(GROUPS[::-1], 10, 3)
    assert {*map(group_key, again)} == {*map(group_key, choose_groups(GROUPS, 10, 3))}
    assert choose_groups(GROUPS, 0, 1) == GROUPS


def test_a_training_of_fewer_groups_holds_out_the_same(tmp_path: Path) -> None:
    folder = write_release(tmp_path / "release", 20)
    whole = groups_of(folder, parse_settings({"held_out": "0.3"}))
    less = groups_of(folder, parse_settings({"held_out": "0.3", "max_groups": "5"}))
    assert less.held_out == whole.held_out and len(less.training) == 5
    assert all(group in whole.training for group in less.training)
