"""Which runs a release takes for the datasets and runs that it names."""

from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Ran
from records_world import make_run

from curation.release.plan import with_runs
from curation.release.request import ReleasePlan
from db.errors import BadInput
from db.store.store import Store


def plan(*datasets: str, runs: tuple[int, ...] = ()) -> ReleasePlan:
    return ReleasePlan(datasets=datasets, runs=runs, out="/nowhere/out")


def test_runs_stand_in_the_order_of_the_datasets_and_default_to_the_latest(
    sqlite_store: Store,
) -> None:
    books, films = make_run(sqlite_store), make_run(sqlite_store, name="films")
    with sqlite_store.read() as session:
        assert with_runs(session, plan("books")).runs == (books,)
        named = plan("films", "books", "films", runs=(books,))
        assert with_runs(session, named).runs == (films, books)


def test_a_run_of_a_dataset_that_is_not_named_is_refused(sqlite_store: Store) -> None:
    make_run(sqlite_store)
    films = make_run(sqlite_store, name="films")
    with sqlite_store.read() as session, pytest.raises(BadInput, match="add `dataset=films`"):
        with_runs(session, plan("books", runs=(films,)))


def test_the_command_says_so_where_a_release_has_no_held_out_groups(
    sqlite_store: Store, inf: Callable[..., Ran], tmp_path: Path
) -> None:
    make_run(sqlite_store)
    told = inf("releases", "create", "books", "--out", tmp_path / "whole")
    assert "\nno groups are held out: a training on it holds out its own\n" in told.out, told.err
    told = inf("releases", "create", "books", "--out", tmp_path / "split", "--held-out", "0.5")
    assert told.code == 0 and "are held out" not in told.out, told.err
