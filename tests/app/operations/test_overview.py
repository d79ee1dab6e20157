"""What pages show of a run, of Home and of the frame: refused without the right, read once."""

from collections.abc import Callable
from typing import Any

import pytest
from conftest import Ran
from records_world import make_run
from statement_count import statements_counted

from app.access.identity import Actor, SessionUser, owner
from app.operations import runs
from app.operations.overview import demo, frame, home, quality, run
from db.errors import InfError, Refused
from db.people.rights import Rights
from db.run.runs import RunSummary
from db.store.store import Store

CURATE: dict[str, Callable[[Actor], Any]] = {
    "of_dataset": lambda actor: run.of_dataset(actor, 1),
    "now": lambda actor: run.now(actor, row()),
    "progress": lambda actor: run.progress(actor, row(), is_live=False),
    "answers_over_time": lambda actor: run.answers_over_time(actor, 1),
    "positions": lambda actor: run.positions(actor, 1),
    "baseline": lambda actor: run.baseline(actor, 1),
    "batches": lambda actor: run.batches(actor, 1),
    "calls": lambda actor: run.calls(actor, 1),
    "compare": lambda actor: run.compare(actor, 1, 1, offset=0, limit=1),
    "query_ids": lambda actor: run.query_ids(actor, "books", [1]),
    "were_grown": lambda actor: run.were_grown(actor, [1]),
}
SERVER: dict[str, Callable[[Actor], Any]] = {
    "prepare": demo.prepare,
    "state": demo.state,
    "load": demo.load,
    "dismiss": demo.dismiss,
    "close": demo.close,
}


def row() -> RunSummary:
    return runs.list_all(owner("ada")).data[0]


def named(module: Any) -> set[str]:
    own = {name for name, each in vars(module).items() if callable(each) and name[0].islower()}
    return {name for name in own if getattr(module, name).__module__ == module.__name__}


@pytest.mark.parametrize("name", CURATE)
def test_a_part_of_the_curate_page_needs_curate(sqlite_store: Store, name: str) -> None:
    make_run(sqlite_store)
    CURATE[name](owner("ada"))
    with pytest.raises(Refused, match="requires curate"):
        CURATE[name](Actor("eve", rights=Rights(everywhere=frozenset({"review", "train"}))))


def test_every_part_of_the_curate_page_is_among_them() -> None:
    assert named(run) == CURATE.keys()


@pytest.mark.parametrize("name", SERVER)
def test_the_demo_is_loaded_by_an_admin_only(sqlite_store: Store, name: str) -> None:
    curator = Actor("ann", rights=Rights(everywhere=frozenset({"curate", "train", "release"})))
    with pytest.raises(Refused, match="requires admin"):
        SERVER[name](curator)


def test_runs_of_others_are_not_seen_by_their_number(sqlite_store: Store) -> None:
    make_run(sqlite_store)
    elsewhere = Actor("joe", rights=Rights(on_datasets={77: frozenset({"curate"})}))
    assert run.of_dataset(elsewhere, 1) == ((), False, None)
    with pytest.raises(InfError, match="no run 1"):
        run.progress(elsewhere, row(), is_live=False)


def test_the_frame_offers_datasets_and_finds_that_of_a_group(sqlite_store: Store) -> None:
    make_run(sqlite_store)
    make_run(sqlite_store, name="other")
    found, of_group = frame.datasets_of_page(owner("ada"), "curate", {"group": "1"})
    assert {each.name for each in found} == {"books", "other"} and of_group == {1}
    only = Actor("joe", rights=Rights(on_datasets={2: frozenset({"curate"})}))
    found, of_group = frame.datasets_of_page(only, "curate", {"group": "1"})
    assert [each.id for each in found] == [2] and of_group == set()


def test_the_tour_is_for_each_person(sqlite_store: Store) -> None:
    ada = owner("ada")
    assert frame.is_on_tour(ada) and frame.is_on_tour(ada)
    frame.end_tour(ada)
    assert not frame.is_on_tour(ada) and frame.is_on_tour(owner("bob"))
    frame.restart_tour(ada)
    assert frame.is_on_tour(ada)


def test_figures_are_of_what_the_actor_may_see_and_computed_once(sqlite_store: Store) -> None:
    make_run(sqlite_store)
    user = SessionUser("ada", "curator", rights=Rights(everywhere=frozenset({"curate"})))
    found = quality.figures(user, None, home.SeenStudies(user))
    assert found.of_model is None and found.of_run is not None and found.of_run.run is not None
    assert found.of_study == quality.OfStudy()
    trainer = SessionUser("tom", "curator", rights=Rights(everywhere=frozenset({"train"})))
    seen = home.SeenStudies(trainer)
    with statements_counted() as count:
        assert seen.under("studies") == []
        found = quality.figures(trainer, None, seen)
    assert (found.of_run, found.of_study) == (None, None)
    assert not [name for name in count.statements if "list_runs" in name or "studies" in name]


def test_the_state_of_the_demo_is_empty_without_it(
    sqlite_store: Store, inf: Callable[..., Ran]
) -> None:
    make_run(sqlite_store)
    assert demo.state(owner("ada")) == demo.DemoState()
    make_run(sqlite_store, kept=1, name="demo")
    found = demo.state(owner("ada"))
    assert found.dataset_id == 2 and found.study_id is None and found.analyses == frozenset()
    assert (found.run_id, found.begun_run_id) == (2, None)
