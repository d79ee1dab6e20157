"""Counts, measures and durations as pages and commands show them."""

from datetime import timedelta

import pytest

from app.text.numbers import counted, duration, score


@pytest.mark.parametrize(
    ("number", "shown"), [(0, "0 groups"), (1, "1 group"), (1200, "1,200 groups")]
)
def test_a_count_has_its_noun_in_the_right_number(number: int, shown: str) -> None:
    assert counted(number, "group") == shown


def test_an_irregular_plural_is_given() -> None:
    assert [counted(n, "study", "studies") for n in (1, 2)] == ["1 study", "2 studies"]


def test_an_undefined_measure_is_not_none() -> None:
    assert (score(None), score(0.12345)) == ("undefined", "0.1235")


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(-3, "0 s"), (59.4, "59 s"), (59.6, "1 min 0 s"), (200, "3 min 20 s"), (7500, "2 h 5 min")],
)
def test_a_duration_has_at_most_two_units(seconds: float, shown: str) -> None:
    assert duration(timedelta(seconds=seconds)) == shown
