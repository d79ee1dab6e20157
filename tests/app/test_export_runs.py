"""Which runs `inf export` takes for the datasets and runs that it names."""

import pytest
from records_world import make_run

from app.cli.data.export import _chosen_runs
from db.errors import BadInput
from db.store.store import Store


def test_runs_stand_in_the_order_of_the_datasets_and_default_to_the_latest(
    sqlite_store: Store,
) -> None:
    books, films = make_run(sqlite_store), make_run(sqlite_store, name="films")
    with sqlite_store.read() as session:
        assert _chosen_runs(session, ["books"], []) == [books]
        assert _chosen_runs(session, ["films", "books", "films"], [books]) == [films, books]


def test_a_run_of_a_dataset_that_is_not_named_is_refused(sqlite_store: Store) -> None:
    make_run(sqlite_store)
    films = make_run(sqlite_store, name="films")
    with sqlite_store.read() as session, pytest.raises(BadInput, match="add --dataset films"):
        _chosen_runs(session, ["books"], [films])
