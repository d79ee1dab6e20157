"""The threshold explorer: a stricter filter by hand, and what it refuses."""

import pytest

from analysis.study.design import design_of
from analysis.study.run_estimates import Share
from analysis.study.run_text import estimate
from analysis.study.thresholds import _recall, explore_thresholds, spread_thresholds
from db.errors import BadInput
from db.shape import INF_IR
from db.study.run_items import ItemKind, JudgedItem

RANDOM = design_of({"sampling": "random"})


def world() -> tuple[dict[int, tuple[int, ItemKind]], list[JudgedItem], dict[int, float]]:
    """20 kept groups, half of them by 2 of 3 votes, whose items people refuse; 10 dropped ones."""
    kinds, votes, sample = {}, {}, []
    for group in range(30):
        is_kept, is_sure = group < 20, group < 10
        for place, role in enumerate(INF_IR.roles):
            passed = is_kept or place > 0
            verdict = "kept" if is_kept else "dropped"
            kind = ItemKind(verdict, scenario=role, passed=passed, missed=int(not is_kept))
            item = 3 * group + place
            kinds[item] = (group, kind)
            if is_kept:
                votes[item] = 1.0 if is_sure or place else 2 / 3
            confirmed = (is_sure or not is_kept) and passed
            sample.append(JudgedItem(item, group, kind, float(confirmed)))
    return kinds, sample, votes


def test_a_stricter_filter_keeps_less_and_what_it_keeps_is_better() -> None:
    kinds, sample, votes = world()
    as_it_is, strict = explore_thresholds(kinds, sample, RANDOM, votes)
    assert as_it_is["threshold"] is None and strict["threshold"] == 1.0
    assert (as_it_is["kept_groups"], strict["kept_groups"]) == (20, 10)
    assert strict["size"] == 0.5
    assert as_it_is["precision"]["value"] == pytest.approx(0.5)
    assert strict["precision"]["value"] == pytest.approx(1.0)
    # nothing that people confirm was passed by 2 of 3 votes: recall stays
    assert as_it_is["recall"]["value"] == strict["recall"]["value"] == pytest.approx(1.0)


def test_recall_falls_by_the_confirmed_items_that_no_longer_pass() -> None:
    kinds, sample, votes = world()
    confirmed = [JudgedItem(s.item_id, s.group_id, s.kind, 1.0) for s in sample if s.kind.passed]
    missed = [s for s in sample if not s.kind.passed]
    _, strict = explore_thresholds(kinds, confirmed + missed, RANDOM, votes)
    assert strict["recall"]["value"] == pytest.approx(70 / 80)  # 10 of 80 passed items had 2 votes


def test_where_nothing_is_left_out_that_is_why_recall_has_no_interval() -> None:
    kept = {"value": 1.0, "interval": None, "no_interval": "no item is left out"}
    assert _recall(Share(1.0, 10, 10), Share(None, 0, 0)) == kept
    assert estimate(kept) == "100.0% (no item is left out)"
    assert estimate({"value": 0.5, "interval": None}) == "50.0% (too few groups for an interval)"


def test_a_strictness_that_does_not_know_all_kept_items_is_refused() -> None:
    kinds, sample, votes = world()
    del votes[0]
    with pytest.raises(BadInput, match="1 of 60 items of kept groups have no such value"):
        explore_thresholds(kinds, sample, RANDOM, votes)


def test_listed_items_explore_no_threshold() -> None:
    kinds, sample, votes = world()
    with pytest.raises(BadInput, match="listed by hand"):
        explore_thresholds(kinds, sample, design_of({"sampling": "list"}), votes)


def test_many_values_give_at_most_twelve_thresholds() -> None:
    assert spread_thresholds([0.1, 0.1, 0.4]) == [0.4]
    assert len(spread_thresholds([n / 1000 for n in range(1000)])) == 12
