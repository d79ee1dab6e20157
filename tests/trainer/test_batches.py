import random

import pytest

from db.shape import INF_IR
from trainer.data.batches import NOWHERE, build_batch
from trainer.data.groups import Group
from trainer.objectives.names import OBJECTIVES
from trainer.settings.template import Template


def make_groups(count: int) -> list[Group]:
    return [
        Group(
            str(n),
            (f"q{n}", f"i{n}", f"p{n}", f"q-{n}", f"i-{n}", f"p1-{n}", f"p2-{n}"),
            shape=INF_IR,
        )
        for n in range(count)
    ]


def test_each_different_text_is_there_once() -> None:
    groups = make_groups(2)
    batch = build_batch([*groups, groups[0]], Template(), OBJECTIVES["P,I:multi"])
    texts = batch.queries
    assert len(set(texts)) == len(texts) and len(set(batch.passages)) == len(batch.passages)
    assert len(batch.matched_of) == 9 and batch.matched_of[:3] == batch.matched_of[6:]


def test_crossed_texts_only_where_the_objective_has_the_term_i() -> None:
    plain = build_batch(make_groups(2), Template(), OBJECTIVES["P,IQ:multi"])
    assert plain.matched == len(plain.queries) and not plain.crossed_of
    crossed = build_batch(make_groups(2), Template(), OBJECTIVES["I"])
    assert crossed.queries[: crossed.matched] == plain.queries
    assert len(crossed.queries) > crossed.matched


def test_all_instructions_of_the_batch_but_equal_ones_are_negatives() -> None:
    batch = build_batch(make_groups(2), Template(), OBJECTIVES["I"])
    texts = batch.queries
    # anchor 0 is (i0, q0): its own i0 stands in triplets 0 and 2 of the row and is left out
    assert [NOWHERE if place == NOWHERE else texts[place] for place in batch.crossed_of[0]] == [
        NOWHERE,
        "i-0 q0",
        NOWHERE,
        "i1 q0",
        "i-1 q0",
        "i1 q0",
    ]


@pytest.mark.parametrize("sampled", [1, 2, 5])
def test_a_sample_always_has_the_rows_own_contrast(sampled: int) -> None:
    batch = build_batch(make_groups(4), Template(), OBJECTIVES["I"], sampled)
    texts = batch.queries
    for anchor, places in enumerate(batch.crossed_of):
        row, view = divmod(anchor, 3)
        query = f"q-{row}" if view == 2 else f"q{row}"
        contrast = f"i{row}" if view == 1 else f"i-{row}"
        found = [texts[place] for place in places]
        assert len(found) == sampled == len(set(found))
        assert found[0] == f"{contrast} {query}"
        assert texts[batch.matched_of[anchor]] not in found


def test_a_batch_depends_on_its_own_text_not_on_a_global_generator() -> None:
    random.seed(1)
    first = build_batch(make_groups(5), Template(), OBJECTIVES["I"], 3)
    random.seed(2)
    assert build_batch(make_groups(5), Template(), OBJECTIVES["I"], 3) == first
    assert build_batch(make_groups(6)[1:], Template(), OBJECTIVES["I"], 3) != first


def test_a_row_whose_two_instructions_are_equal_has_no_contrast_of_its_own() -> None:
    group = Group("1", ("q", "i", "p", "q-", "i", "p1", "p2"), shape=INF_IR)
    batch = build_batch([group], Template(), OBJECTIVES["I"], 2)
    assert batch.crossed_of == [[NOWHERE, NOWHERE]] * 3
