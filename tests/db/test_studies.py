from collections import Counter

import pytest
from sqlalchemy import select
from study_world import make_world, sampled_study

from curation.judging.sampling import Sampling, sample_study_items
from db.errors import BadInput, NotFound
from db.store.store import Store
from db.study import studies
from db.tables import Item, StudyItem


def create(store: Store, run_id: int, items: int, overlap: int = 2, seed: int = 0) -> int:
    with store.write() as session:
        study = sampled_study(session, run_id=run_id, items=items, overlap=overlap, seed=seed)
        session.commit()
        return study.id


def items_of(store: Store, study_id: int) -> list[Item]:
    with store.read() as session:
        return list(
            session.scalars(
                select(Item)
                .join(StudyItem, StudyItem.item_id == Item.id)
                .where(StudyItem.study_id == study_id)
                .order_by(StudyItem.position)
            )
        )


def test_scenarios_are_even_and_no_group_comes_twice(store: Store) -> None:
    found = items_of(store, create(store, make_world(store, 12), 9))
    assert set(Counter(item.scenario for item in found).values()) == {3}
    assert len({item.group_id for item in found}) == 9


def test_dropped_groups_are_judged_too(sqlite_store: Store) -> None:
    study_id = create(sqlite_store, make_world(sqlite_store, 12), 12)
    with sqlite_store.read() as session:
        composition = studies.compose(session, study_id)
    assert composition.verdicts == {"kept": 8, "dropped": 4}
    assert composition.scenarios == {
        "positive": 4,
        "instruction_negative": 4,
        "query_negative": 4,
    }


def test_the_seed_decides_the_items(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 12)
    sampled = [
        {item.id for item in items_of(sqlite_store, create(sqlite_store, run_id, 6, seed=seed))}
        for seed in (5, 5, 6)
    ]
    assert sampled[0] == sampled[1]
    assert sampled[0] != sampled[2]


def test_too_few_groups_are_counted_in_the_refusal(sqlite_store: Store) -> None:
    run_id = make_world(sqlite_store, 4)
    with (
        sqlite_store.read() as session,
        pytest.raises(BadInput, match=r"has 4 groups .* `items=4` or fewer"),
    ):
        sample_study_items(session, run_id, Sampling(), 5, 0)


def test_the_list_counts_items_and_places(store: Store) -> None:
    study_id = create(store, make_world(store, 6), 5, overlap=3)
    with store.read() as session:
        (row,) = studies.list_studies(session)
    assert (row.id, row.dataset, row.items, row.places, row.done) == (study_id, "world", 5, 15, 0)


def test_an_unknown_study_names_those_there_are(sqlite_store: Store) -> None:
    study_id = create(sqlite_store, make_world(sqlite_store, 3), 2)
    with sqlite_store.read() as session, pytest.raises(NotFound, match=f"there are {study_id}"):
        studies.get_study(session, 99)
