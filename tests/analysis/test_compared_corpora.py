"""Corpora to compare on one map: several runs of a dataset, and the pairs nothing was kept of."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from conftest import Ran
from grown_dataset import grown
from second_run import make_second_run
from sqlalchemy import select

from analysis.files.corpora import load_corpora
from analysis.map.coverage import points_table
from analysis.request import CoverageStart
from db.errors import BadInput
from db.store.store import Store
from db.tables import Group, Pair, Release


def test_two_runs_are_two_corpora_by_name(sqlite_store: Store) -> None:
    first = grown(sqlite_store, groups=4)
    second, _ = make_second_run(sqlite_store, first)
    with sqlite_store.read() as session:
        found = load_corpora(session, {"runs": [first, second]})
        assert [each.name for each in found] == [f"demo, run {first}", f"demo, run {second}"]
        assert [each.run_id for each in found] == [first, second]
        named = load_corpora(session, {"datasets": ["demo"], "runs": [first, second]})
        assert [each.name for each in named] == [each.name for each in found]
        (alone,) = load_corpora(session, {"datasets": ["demo"], "runs": [second]})
        assert (alone.name, alone.run_id) == ("demo", second)
        (as_before,) = load_corpora(session, {"datasets": ["demo"], "run": first})
        assert (as_before.name, as_before.run_id) == ("demo", first)


def test_a_dataset_without_one_of_the_runs_comes_with_its_latest(sqlite_store: Store) -> None:
    first = grown(sqlite_store, groups=3)
    second, _ = make_second_run(sqlite_store, first)
    other = grown(sqlite_store, "other", groups=2)
    with sqlite_store.read() as session:
        found = load_corpora(session, {"datasets": ["demo", "other"], "runs": [first, second]})
    assert [each.run_id for each in found] == [first, second, other]


def test_one_run_of_several_datasets_is_refused(sqlite_store: Store) -> None:
    first = grown(sqlite_store, groups=2)
    grown(sqlite_store, "other", groups=2)
    with sqlite_store.read() as session, pytest.raises(BadInput, match="not a run of"):
        load_corpora(session, {"datasets": ["other"], "runs": [first, first + 1]})


def test_a_map_draws_dropped_groups_and_then_their_pairs_do_not_count_twice(store: Store) -> None:
    grown(store, groups=4)  # the last one is dropped
    config = CoverageStart(datasets=("demo",), pairs=True).config()
    with store.read() as session:
        (alone,) = load_corpora(session, config)
    assert {row.verdict for row in alone.texts} == {"kept", "dropped"}


def test_pairs_without_a_kept_group_are_a_corpus_of_their_own(store: Store) -> None:
    run_id = grown(store, groups=4)  # the last one is dropped
    with store.read() as session:
        kept, pairs = load_corpora(session, {"datasets": ["demo"], "pairs": True})
        dropped = session.scalars(select(Group.pair_id).where(Group.verdict == "dropped")).one()
        query = session.get_one(Pair, dropped).query
    assert (kept.name, kept.run_id) == ("demo", run_id)
    assert (pairs.name, pairs.kind) == ("demo, pairs without a kept group", "pairs")
    assert [(row.field, row.pair_id) for row in pairs.texts] == [
        ("query", dropped),
        ("passage", dropped),
    ]
    assert pairs.texts[0].text == query
    assert {row.group_id for row in pairs.texts} == {None}
    assert {row.pair_id for row in kept.texts} == {1, 2, 3}


def test_a_pair_kept_in_another_run_is_not_without_a_kept_group(sqlite_store: Store) -> None:
    first = grown(sqlite_store, groups=3)
    second, _ = make_second_run(sqlite_store, first)
    assert second
    with sqlite_store.read() as session:
        found = load_corpora(session, {"datasets": ["demo"], "pairs": True})
    assert [each.kind for each in found] == ["dataset"]  # nothing is left to draw


def test_the_points_of_a_map_know_their_pair(sqlite_store: Store) -> None:
    grown(sqlite_store, groups=3)
    with sqlite_store.read() as session:
        corpora = load_corpora(session, {"datasets": ["demo"], "pairs": True})
    texts = {row.text for corpus in corpora for row in corpus.texts}
    table = points_table(corpora, dict.fromkeys(texts, np.zeros(2)), set())
    assert set(table["pair_id"].to_pylist()) == {1, 2, 3}


def test_group_ids_of_a_file_from_elsewhere_are_not_groups_of_this_store(
    sqlite_store: Store, tmp_path: Path
) -> None:
    run_id = grown(sqlite_store, groups=2)
    row = '{"query_positive": "q", "document_positive": "p", "group_id": 1}\n'
    (tmp_path / "foreign.jsonl").write_text(row)
    own = tmp_path / "own"
    (own / "data").mkdir(parents=True)
    (own / "release.json").write_text("{}")
    (own / "data" / "train.jsonl").write_text(row)
    with sqlite_store.write() as session:
        session.add(
            Release(
                dataset_id=1,
                name="own",
                content_sha256="0",
                path=str(own),
                format="jsonl",
                filter={},
                counts={},
                card="",
                offline=False,
            )
        )
        session.commit()
    config = {"published": [str(tmp_path / "foreign.jsonl"), str(own)]}
    with sqlite_store.read() as session:
        foreign, release = load_corpora(session, config)
    assert run_id
    assert {text.group_id for text in foreign.texts} == {None}
    assert {text.group_id for text in release.texts} == {1}


@pytest.mark.long
def test_the_command_takes_several_runs_and_the_pairs(sqlite_store: Store, inf: Any) -> None:
    first = grown(sqlite_store, groups=8)
    second, _ = make_second_run(sqlite_store, first)
    compared = ("analyze", "coverage", "--run", str(first), "--run", str(second), "--pairs")
    ran: Ran = inf(*compared, "--json")
    names = [each["corpus"] for each in ran.json["corpora"]]
    assert names == [f"demo, run {first}", f"demo, run {second}"]
    missing: Ran = inf("analyze", "coverage", "--run", "99")
    assert "99" in missing.err and missing.code == 1
