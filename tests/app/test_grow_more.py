"""From a selection on the map to a run over its pairs: those pairs, and never all instead."""

import pytest
from app_pages import open_page, words
from curation_runs import add_dataset
from grown_dataset import grown
from measured import mapped
from second_run import make_second_run
from sqlalchemy import select
from streamlit.testing.v1 import AppTest
from study_world import make_world, sampled_study

from db.corpus.growing import pairs_to_grow
from db.store.store import Store
from db.tables import Group, Pair, Run


def pairs_of_run(store: Store, run_id: int) -> list[int]:
    with store.read() as session:
        query = select(Group.pair_id).where(Group.run_id == run_id).order_by(Group.pair_id)
        return list(session.scalars(query))


@pytest.fixture(autouse=True)
def no_supervisor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("app.jobs.supervisors.ensure_supervisor", lambda store: None)


def test_the_pairs_of_a_selection_are_those_of_its_groups_and_its_own(store: Store) -> None:
    first = grown(store, groups=4)  # the last group is dropped
    make_second_run(store, first, verdict="dropped")
    with store.read() as session:
        groups = list(
            session.scalars(select(Group.id).where(Group.run_id == first).order_by(Group.id))
        )
        found = pairs_to_grow(session, group_ids=groups[2:], pair_ids=[1])
    assert found.dataset == "demo"
    assert found.without_kept == (4,)
    assert found.with_kept == (1, 3)


def test_pairs_of_several_datasets_are_those_of_the_one_with_most(store: Store) -> None:
    grown(store, groups=3)
    grown(store, "other", groups=2)
    with store.read() as session:
        found = pairs_to_grow(session, group_ids=[], pair_ids=[1, 2, 4])
        assert (found.dataset, found.with_kept, found.elsewhere) == ("demo", (1, 2), 1)
        nothing = pairs_to_grow(session, group_ids=[], pair_ids=[])
    assert (nothing.dataset, nothing.without_kept, nothing.with_kept) == ("", (), ())


def test_a_run_takes_only_the_pairs_of_the_address_and_requests_new_answers(
    sqlite_store: Store,
) -> None:
    grown(sqlite_store, groups=6)
    page = open_page("curate", dataset="demo", pairs="2,5")
    assert "Only the 2 pairs chosen on the map" in words(page)
    assert page.checkbox(key="curate.fresh").value  # the same answers would give the same groups
    page.button(key="curate.start").click().run()
    with sqlite_store.read() as session:
        run = session.scalars(select(Run).order_by(Run.id.desc())).first()
        assert run is not None and run.fresh
        run_id = run.id
    assert pairs_of_run(sqlite_store, run_id) == [2, 5]


def test_pairs_that_were_never_grown_may_reuse_answers(sqlite_store: Store) -> None:
    add_dataset(sqlite_store)
    page = open_page("curate", dataset="small", pairs="1,2")
    assert not page.checkbox(key="curate.fresh").value


def test_all_pairs_come_back_by_a_click(sqlite_store: Store) -> None:
    grown(sqlite_store, groups=6)
    page = open_page("curate", dataset="demo", pairs="2,5")
    page.button(key="curate.all_pairs").click().run()
    assert "chosen on the map" not in words(page)
    page.button(key="curate.start").click().run()
    with sqlite_store.read() as session:
        run_id = session.scalars(select(Run.id).order_by(Run.id.desc())).first()
    assert run_id is not None
    assert len(pairs_of_run(sqlite_store, run_id)) == 6


@pytest.mark.parametrize("address", ["99,100", "x,;", "1e9", "-1"])
def test_an_address_without_pairs_of_the_dataset_starts_no_run_over_all(
    sqlite_store: Store, address: str
) -> None:
    grown(sqlite_store, groups=6)
    page = open_page("curate", dataset="demo", pairs=address)
    page.button(key="curate.start").click().run()
    with sqlite_store.read() as session:
        assert len(session.scalars(select(Run)).all()) == 1
    assert "pair of dataset 'demo'" in " ".join(each.value for each in page.error)


def test_pairs_of_one_dataset_are_not_taken_for_another(sqlite_store: Store) -> None:
    grown(sqlite_store, groups=3)
    grown(sqlite_store, "other", groups=3)
    page = open_page("curate", dataset="demo", pairs="2,5")
    assert "Only the 1 pair chosen on the map" in words(page)
    page.selectbox(key="frame.named_dataset").set_value("other").run()
    page.button(key="curate.start").click().run()
    with sqlite_store.read() as session:
        run_id = session.scalars(select(Run.id).order_by(Run.id.desc())).first()
        assert run_id is not None
        ids = session.scalars(select(Pair.id).join(Group).where(Group.run_id == run_id)).all()
    assert list(ids) == [5]


def link_of(page: AppTest) -> str:
    (found,) = [
        each.proto.query_string
        for each in page.main
        if each.type == "page_link" and each.proto.label.startswith("Choose recipe")
    ]
    return str(found)


def test_a_selection_offers_its_thin_pairs_first_and_the_others_on_request(
    sqlite_store: Store,
) -> None:
    grown(sqlite_store, groups=4)
    mapped(sqlite_store, "demo", pairs=True)
    page = open_page("coverage")
    everything = {"kind": "box", "x": [-99, 99], "y": [-99, 99]}
    page.session_state["coverage.shape"] = ("coverage.card1.0", everything)
    page.run()
    assert "1 pair without a kept group, 3 pairs with one" in words(page)
    assert link_of(page) == "dataset=demo&pairs=4"
    page.checkbox(key="coverage.grow_kept").check().run()
    assert link_of(page) == "dataset=demo&pairs=4%2C1%2C2%2C3"


def test_pairs_hidden_from_the_user_are_not_on_the_map(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 2)
    mapped(sqlite_store, "world")
    with sqlite_store.write() as session:
        sampled_study(session, run_id=run_id, items=2, overlap=1)
        session.commit()
    assert "No texts left on the map" in words(open_page("coverage"))
