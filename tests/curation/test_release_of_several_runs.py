"""One release of several datasets and runs: no pair twice, no text on both sides, each named."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from exporting import export, load_afresh, rows_of
from records_world import group_ids, make_run
from sqlalchemy import select

from curation.release.preview import preview_release
from curation.release.request import ReleasePlan
from db.errors import BadInput, Refused
from db.release.diff import diff_releases
from db.release.releases import get_release, list_releases
from db.review.reviews import approve_group, edit_group
from db.store.scope import INFO, Scope
from db.store.store import Store
from db.tables import Dataset, Group, Pair, Passage, Release, Run, SlotText


def said_otherwise(store: Store, run_id: int, word: str) -> None:
    """Give the run pairs and texts of its own: `make_run` writes the same ones every time."""
    with store.write() as session:
        dataset_id = session.get_one(Run, run_id).dataset_id
        for pair in session.scalars(select(Pair).where(Pair.dataset_id == dataset_id)):
            pair.query = f"{word} {pair.query}"
        for passage in session.scalars(select(Passage).where(Passage.dataset_id == dataset_id)):
            passage.text = f"{word} {passage.text}"
        of_run = select(Group.id).where(Group.run_id == run_id)
        queries = SlotText.group_id.in_(of_run), SlotText.slot.in_(("Q+", "Q-"))
        for each in session.scalars(select(SlotText).where(*queries)):
            each.text = f"{word} {each.text}"
        session.commit()


def two_datasets(store: Store) -> tuple[int, int]:
    first = make_run(store, kept=3)
    second = make_run(store, kept=2, name="films", offline=False, licence="cc-by-4.0")
    said_otherwise(store, second, "film:")
    return first, second


def default_rows(folder: Path) -> list[dict[str, Any]]:
    return [row for rows in rows_of(folder).values() for row in rows]


def test_a_pair_of_two_runs_is_in_the_release_once(store: Store, tmp_path: Path) -> None:
    first, second = make_run(store), make_run(store, name="copy")
    with store.write() as session:  # the same pair whatever its case and spacing
        copied = select(Pair).join(Dataset).where(Dataset.name == "copy")
        for pair in session.scalars(copied):
            pair.query = f"  {pair.query.upper()}"
        session.commit()
    result = export(store, tmp_path / "out", runs=[first, second], format="jsonl")
    assert result["groups"] == 4
    rows = default_rows(tmp_path / "out")
    assert [row["group_id"] for row in rows] == group_ids(store, first)
    runs = json.loads((tmp_path / "out" / "release.json").read_text())["runs"]
    assert [run["duplicates"] for run in runs] == [0, 4]


def test_a_better_review_wins_over_the_order_of_runs(store: Store, tmp_path: Path) -> None:
    first, second = make_run(store), make_run(store, name="copy")
    here, there = group_ids(store, first), group_ids(store, second)
    with store.write() as session:
        approve_group(session, there[1], reviewed_by="ada")
        edit_group(
            session, there[2], {"instruction_positive": "Name the author."}, reviewed_by="ada"
        )
        edit_group(session, here[3], {"instruction_positive": "Name them."}, reviewed_by="ada")
        approve_group(session, there[3], reviewed_by="ada")
        session.commit()
    export(store, tmp_path / "out", runs=[first, second], format="jsonl")
    rows = default_rows(tmp_path / "out")
    assert {row["group_id"] for row in rows} == {here[0], *there[1:]}
    export(store, tmp_path / "other", runs=[second, first], format="jsonl")
    assert {row["group_id"] for row in default_rows(tmp_path / "other")} == set(there)


def test_a_kept_group_wins_over_a_dropped_one_of_an_earlier_run(
    store: Store, tmp_path: Path
) -> None:
    first, second = make_run(store, kept=1, dropped=3), make_run(store, name="copy")
    export(store, tmp_path / "out", runs=[first, second], include_dropped=True, format="jsonl")
    verdicts = {row["query_id"]: row["verdict"] for row in default_rows(tmp_path / "out")}
    assert [verdicts[f"q{number}"] for number in range(4)] == ["kept"] * 4


def test_equal_pairs_within_one_run_stay(store: Store, tmp_path: Path) -> None:
    first, second = two_datasets(store)
    with store.write() as session:
        one, other = session.scalars(
            select(Pair).where(Pair.external_id.in_(("q0", "q1"))).order_by(Pair.id).limit(2)
        )
        other.query, other.passage_id = one.query, one.passage_id
        session.commit()
    assert export(store, tmp_path / "out", runs=[first, second])["groups"] == 5


@pytest.mark.long
def test_every_group_has_the_source_licence_and_origin_of_its_own_run(
    sqlite_store: Store, tmp_path: Path
) -> None:
    first, second = two_datasets(sqlite_store)
    with sqlite_store.write() as session:
        for pair in session.scalars(select(Pair)):
            pair.meta = {}
        session.commit()
    export(sqlite_store, tmp_path / "out", runs=[first, second], accept_licences=True)
    read = load_afresh(tmp_path / "out", tmp_path, "provenance")["books"]["rows"]
    films = load_afresh(tmp_path / "out", tmp_path, "provenance")["films"]["rows"]
    assert {(row["dataset"], row["run_id"], row["licence"], row["offline"]) for row in read} == {
        ("books", first, "cc-by-sa-3.0", True)
    }
    assert {(row["dataset"], row["run_id"], row["licence"], row["offline"]) for row in films} == {
        ("films", second, "cc-by-4.0", False)
    }


def test_the_card_names_each_source_with_its_numbers_and_licence(
    store: Store, tmp_path: Path
) -> None:
    first, second = two_datasets(store)
    result = export(
        store, tmp_path / "out", runs=[first, second], accept_licences=True, split_by="train"
    )
    card = (tmp_path / "out" / "README.md").read_text()
    assert f"| books | {first} | 3 | 0 | 3 | cc-by-sa-3.0 3 | yes |" in card
    assert f"| films | {second} | 2 | 0 | 2 | cc-by-4.0 2 | no |" in card
    assert f"## books, run {first}" in card and f"## films, run {second}" in card
    assert "### All groups of this release\n\nLeakage" in card
    assert f"Partly made offline, without a language model: run {first}" in card
    head = yaml.safe_load(card.split("---")[1])
    assert head["configs"][0]["data_files"][0]["split"] == "train"
    assert result["offline"] is True
    with store.read() as session:
        wanted = ReleasePlan(out=str(tmp_path / "p"), runs=(first, second))
        preview = preview_release(session, wanted)
    assert preview.groups == 5 and f"| films | {second} | 2 |" in preview.card


def test_a_text_of_two_datasets_is_never_on_both_sides(store: Store, tmp_path: Path) -> None:
    first, second = make_run(store, kept=12), make_run(store, kept=12, name="copy")
    with store.write() as session:  # the same passages under other queries: not the same pairs
        for pair in session.scalars(select(Pair).join(Dataset).where(Dataset.name == "copy")):
            pair.query = f"and {pair.query}"
        session.commit()
    export(store, tmp_path / "out", runs=[first, second], held_out=0.4, format="jsonl")
    sides: dict[str, set[bool]] = {}
    for split, rows in rows_of(tmp_path / "out").items():
        for row in rows:
            sides.setdefault(row["document_positive"].lower(), set()).add("held_out" in split)
    assert len(sides) == 12 and all(len(each) == 1 for each in sides.values())
    assert {True} in sides.values() and {False} in sides.values()


def test_a_release_of_one_run_is_the_same_bytes_however_the_run_is_named(
    store: Store, tmp_path: Path
) -> None:
    run_id = make_run(store)
    export(store, tmp_path / "one", run_id=run_id, name="x")
    export(store, tmp_path / "two", runs=[run_id], name="x")
    for config in ("data", "triplets", "provenance", "judgments"):
        (one,), (two,) = ((tmp_path / each / config).iterdir() for each in ("one", "two"))
        assert one.read_bytes() == two.read_bytes() and one.name == two.name
    cards = [(tmp_path / each / "README.md").read_text() for each in ("one", "two")]
    assert cards[0].replace("Release 1 ", "") == cards[1].replace("Release 2 ", "")
    assert "runs" not in json.loads((tmp_path / "two" / "release.json").read_text())["filter"]


def test_what_cannot_be_one_release_is_refused(store: Store, tmp_path: Path) -> None:
    first, second = two_datasets(store)
    with pytest.raises(BadInput, match=f"run {first} is named twice"):
        export(store, tmp_path / "out", runs=[first, first])
    with pytest.raises(BadInput, match="omit the study"):
        export(store, tmp_path / "out", runs=[first, second], study_id=1)
    with store.write() as session:
        session.scalars(
            select(Dataset).where(Dataset.name == "films")
        ).one().licence = "cc-by-nc-4.0"
        session.commit()
    with pytest.raises(Refused, match="licences of these groups are not compatible"):
        export(store, tmp_path / "out", runs=[first, second])
    with pytest.raises(Refused, match=rf"{first} \(books\), {second} \(films\)"):
        export(store, tmp_path / "out", runs=[first, second], reviews="approved")


def test_a_release_is_seen_only_by_who_sees_all_its_datasets(store: Store, tmp_path: Path) -> None:
    first, second = two_datasets(store)
    export(store, tmp_path / "out", runs=[first, second], accept_licences=True)
    export(store, tmp_path / "books", run_id=first)
    with store.read() as session:
        ids = {each.name: each.id for each in session.scalars(select(Dataset))}
        assert len(list_releases(session, ids["films"])) == 1
    for seen, number in ((("books",), 1), (("films",), 0), (("books", "films"), 2)):
        with store.read() as session:
            session.info[INFO] = Scope("ada", frozenset(ids[name] for name in seen))
            assert len(session.scalars(select(Release)).all()) == number, seen


def test_releases_that_share_a_dataset_can_be_compared(store: Store, tmp_path: Path) -> None:
    first, second = two_datasets(store)
    one = export(store, tmp_path / "one", run_id=first)["release_id"]
    both = export(store, tmp_path / "both", runs=[first, second], accept_licences=True)
    with store.read() as session:
        releases = get_release(session, both["release_id"]), get_release(session, one)
        rows = diff_releases(session, *releases)
    assert [row.change for row in rows] == ["removed", "removed"]
    assert f"it is of run {second}, the other of run {first}" in rows[0].why
