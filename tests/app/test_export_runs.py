"""Which runs a release takes for the datasets and runs that it names."""

import pytest
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
