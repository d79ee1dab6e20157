"""The collector of garbage while a worker calls."""

import gc

import pytest

from curation.run.engine import THRESHOLDS, tuned_gc


def test_what_is_loaded_is_left_out_of_collections_until_the_work_is_over() -> None:
    before = gc.get_threshold()
    frozen = gc.get_freeze_count()
    with tuned_gc():
        assert gc.get_freeze_count() > frozen
        assert gc.get_threshold() == THRESHOLDS
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() == before


@pytest.mark.long
def test_a_work_that_fails_leaves_the_collector_as_it_was() -> None:
    before = gc.get_threshold()
    with pytest.raises(ValueError, match="broken off"), tuned_gc():
        raise ValueError("broken off")
    assert (gc.get_threshold(), gc.get_freeze_count()) == (before, 0)
