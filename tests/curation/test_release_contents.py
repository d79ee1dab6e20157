"""What a release holds besides its groups: other configurations, held-out splits, filters, CSV."""

import json
from pathlib import Path

import pytest
from exporting import export, load_afresh, rows_of
from records_world import group_ids, make_run
from sqlalchemy import select
from sqlalchemy.orm import Session

from analysis.files.csv_writer import without_formulas
from analysis.text.licences import conflicts, hub_identifier
from curation.release.rows import STANDARD, configs_of, provenance_row
from db.errors import BadInput, Refused
from db.release.diff import diff_releases
from db.release.releases import get_release
from db.release.rows import GroupJudgment
from db.review.reviews import edit_group, reject_group
from db.shape import INF_IR
from db.store.store import Store
from db.study.judgments import get_or_create_judge, record_judgment
from db.study.strictness import confidence_of
from db.tables import Dataset, Item, Pair, SlotText


def test_a_text_that_a_spreadsheet_would_run_gets_an_apostrophe() -> None:
    assert [without_formulas(text) for text in ("=1+1", "-x", "+1", "@a", "\tx", "\rx", "＝1")] == [
        "'=1+1",
        "'-x",
        "'+1",
        "'@a",
        "'\tx",
        "'\rx",
        "'＝1",
    ]
    assert [without_formulas(text) for text in ("", "a=1", "'x", "1-1")] == ["", "a=1", "'x", "1-1"]


@pytest.mark.long
def test_csv_keeps_quotes_and_lines_and_reads_with_the_right_types(
    sqlite_store: Store, tmp_path: Path
) -> None:
    texts = {
        "instruction_positive": 'Find "x",\nand\r\ntwo lines; – ü 🙂',
        "query_negative": "NA",
        "hard_negative_document_1": "=cmd|' /C calc'!A0",
    }
    make_run(sqlite_store, texts=texts)
    export(sqlite_store, tmp_path / "out", format="csv")
    read = load_afresh(tmp_path / "out", tmp_path)["books"]
    assert read["types"] == configs_of(INF_IR)["default"]
    first = read["rows"][0]
    assert first["instruction_positive"] == texts["instruction_positive"]
    assert first["query_negative"] == "NA" and first["drop_reason"] == ""
    assert first["hard_negative_document_1"] == "'" + texts["hard_negative_document_1"]
    origin = load_afresh(tmp_path / "out", tmp_path, "provenance")["books"]
    assert origin["types"] == configs_of(INF_IR)["provenance"]
    assert origin["rows"][0]["confidence"] is None  # an empty cell of numbers
    assert json.loads((tmp_path / "out" / "release.json").read_text())["formula_guard"] is True
    assert "apostrophe" in (tmp_path / "out" / "README.md").read_text()


@pytest.mark.long
def test_every_configuration_is_read_by_its_name(sqlite_store: Store, tmp_path: Path) -> None:
    run_id = make_run(sqlite_store)
    first = group_ids(sqlite_store, run_id)[0]
    with sqlite_store.write() as session:
        ada = get_or_create_judge(session, "ada lovelace", kind="person")
        item = session.scalars(select(Item).where(Item.group_id == first)).first()
        assert item is not None
        record_judgment(
            session,
            judge_id=ada.id,
            item_id=item.id,
            choice="query_negative",
            order_shown=["query_negative", "positive", "instruction_negative"],
            event_id="e1",
        )
        session.commit()
        person = f"person-{ada.id}"
    export(sqlite_store, tmp_path / "out")
    read = {name: load_afresh(tmp_path / "out", tmp_path, name)["books"] for name in STANDARD}
    assert {name: told["types"] for name, told in read.items()} == {
        name: configs_of(INF_IR)[name] for name in STANDARD
    }
    told = read["provenance"]["rows"][0]
    assert (told["group_id"], told["query_id"], told["run_id"]) == (first, "q0", run_id)
    assert json.loads(told["models"]) == {"instruction_positive": "rules"}
    assert (told["judgments"], told["judgments_as_meant"]) == (4, 3)
    assert told["confidence"] is None  # this run's judge gave one answer without scores
    triplets = [row for row in read["triplets"]["rows"] if row["group_id"] == first]
    assert [(row["role"], row["passage_role"], row["label"]) for row in triplets] == [
        ("positive", "positive", 1),
        ("instruction_negative", "instruction_negative", 1),
        ("instruction_negative", "positive", 0),
        ("query_negative", "query_negative", 1),
        ("query_negative", "positive", 0),
    ]
    assert triplets[2]["instruction"] == "Find the year of book 0."
    assert triplets[2]["passage"] == "Book 0 was written by author 0."
    assert len(read["triplets"]["rows"]) == 20 and len(read["judgments"]["rows"]) == 13
    by_person = [row for row in read["judgments"]["rows"] if row["kind"] == "person"]
    assert [(row["judge"], row["choice"], row["position"]) for row in by_person] == [
        (person, "query_negative", 1)
    ]
    for file in (tmp_path / "out").rglob("*"):
        assert not file.is_file() or b"lovelace" not in file.read_bytes()


def test_only_the_configurations_asked_for_are_written(sqlite_store: Store, tmp_path: Path) -> None:
    make_run(sqlite_store)
    export(sqlite_store, tmp_path / "out", configs=["triplets"])
    assert sorted(path.name for path in (tmp_path / "out").iterdir() if path.is_dir()) == [
        "data",
        "triplets",
    ]
    with pytest.raises(BadInput, match=r"configs\.0='pairs'"):
        export(sqlite_store, tmp_path / "other", configs=["pairs"])


def test_a_judgment_more_makes_another_release(store: Store, tmp_path: Path) -> None:
    first = group_ids(store, make_run(store))[0]
    before = export(store, tmp_path / "before")
    with store.write() as session:
        judge = get_or_create_judge(session, "second", kind="model")
        item = session.scalars(select(Item).where(Item.group_id == first)).first()
        assert item is not None
        record_judgment(
            session,
            judge_id=judge.id,
            item_id=item.id,
            choice="none",
            order_shown=list(INF_IR.roles),
            event_id="e1",
        )
        session.commit()
    assert export(store, tmp_path / "after")["content_sha256"] != before["content_sha256"]


def ask_the_same(session: Session, groups: int) -> None:
    """Give the first groups one query, in other letters."""
    of_query = select(SlotText).where(SlotText.slot == "Q+").order_by(SlotText.group_id)
    for number, found in enumerate(session.scalars(of_query.limit(groups))):
        found.text = "WHO wrote it" if number % 2 else "Who wrote it"


@pytest.mark.long
def test_no_query_and_no_passage_is_on_both_sides_of_a_held_out_split(
    store: Store, tmp_path: Path
) -> None:
    make_run(store, kept=30, dropped=0, unwritten=0)
    with store.write() as session:  # three pairs ask the same, in other letters
        ask_the_same(session, 3)
        session.commit()
    told = export(store, tmp_path / "out", format="jsonl", held_out=0.3, seed=4)
    assert told["splits"] == {"books": 21, "books_held_out": 9}
    splits = rows_of(tmp_path / "out")
    assert sum(row["query_positive"].lower() == "who wrote it" for row in splits["books"]) in (0, 3)
    for columns in (
        ("query_positive", "query_negative"),
        ("document_positive", "hard_negative_document_1", "hard_negative_document_2"),
    ):
        texts = [
            {row[column].lower() for row in splits[name] for column in columns}
            for name in ("books", "books_held_out")
        ]
        assert not texts[0] & texts[1]
    again = export(store, tmp_path / "again", held_out=0.3, seed=4)
    assert again["content_sha256"] == told["content_sha256"]
    other = export(store, tmp_path / "other", held_out=0.3, seed=5)
    assert other["content_sha256"] != told["content_sha256"]
    assert "holds 30% of the groups (seed 4)" in (tmp_path / "out" / "README.md").read_text()
    with pytest.raises(BadInput, match=r"held_out=1\.0"):
        export(store, tmp_path / "wrong", held_out=1.0)


def test_a_source_is_held_out_as_a_whole(store: Store, tmp_path: Path) -> None:
    make_run(store, kept=30, dropped=0, unwritten=0)
    by_source = {"held_out_by": "source", "held_out": 0.4, "format": "jsonl"}
    with store.write() as session:
        pairs = session.scalars(select(Pair).order_by(Pair.id)).all()
        for pair in pairs:
            pair.meta = pair.meta | {"source": "one"}
        session.commit()
    with pytest.raises(BadInput, match=r"of 1 source, .*held_out_by=text"):
        export(store, tmp_path / "one", **by_source)
    assert not (tmp_path / "one" / "release.json").exists()
    with store.write() as session:
        pairs = session.scalars(select(Pair).order_by(Pair.id)).all()
        for number, pair in enumerate(pairs):
            pair.meta = pair.meta | {"source": f"source {number % 5}"}
        ask_the_same(session, 2)  # which joins two sources
        session.commit()
    told = export(store, tmp_path / "out", **by_source)
    assert told["splits"] == {"books": 18, "books_held_out": 12}
    sides = {
        name: {row["source"] for row in rows} for name, rows in rows_of(tmp_path / "out").items()
    }
    assert not sides["books"] & sides["books_held_out"]
    assert len({"source 0", "source 1"} & sides["books"]) != 1
    assert "no group of their sources, no query" in (tmp_path / "out" / "README.md").read_text()


def test_sources_are_chosen_and_become_splits(store: Store, tmp_path: Path) -> None:
    make_run(store)
    told = export(store, tmp_path / "out", split_by="source")
    assert told["splits"] == {"boolq": 2, "nq": 2}
    only = export(store, tmp_path / "nq", sources=["nq"])
    assert only["splits"] == {"books": 2}
    assert "only the source nq" in (tmp_path / "nq" / "README.md").read_text()
    with pytest.raises(Refused, match="has the source msmarco: omit `source=`"):
        export(store, tmp_path / "none", sources=["msmarco"])
    with store.write() as session:
        for pair in session.scalars(select(Pair)):
            pair.meta = {"language": "de"} if pair.external_id == "q1" else {}
        session.commit()
    of_dataset = export(store, tmp_path / "whole", sources=["made for a test"])
    assert of_dataset["groups"] == 4
    assert export(store, tmp_path / "de", languages=["de"])["groups"] == 1


def test_licences_that_do_not_go_together_are_refused_unless_one_says_so(
    store: Store, tmp_path: Path
) -> None:
    make_run(store, licence="CC BY-SA 3.0")
    with store.write() as session:
        pair = session.scalars(select(Pair).where(Pair.external_id == "q1")).one()
        pair.meta = {"source": "msmarco", "license": "cc-by-nc-4.0"}
        session.commit()
    with pytest.raises(Refused, match=r"cc-by-nc-4\.0 forbids commercial use"):
        export(store, tmp_path / "out")
    assert list(tmp_path.glob("*out*")) == []
    export(store, tmp_path / "out", accept_licences=True, format="jsonl")
    licences = {row["query_id"]: row["licence"] for row in rows_of(tmp_path / "out")["books"]}
    assert licences["q0"] == "CC BY-SA 3.0" and licences["q1"] == "cc-by-nc-4.0"
    card = (tmp_path / "out" / "README.md").read_text()
    assert "license: other" in card and "cc-by-nc-4.0-and-cc-by-sa-3.0" in card
    with store.read() as session:
        assert session.scalars(select(Dataset.licence)).all() == ["CC BY-SA 3.0"]


@pytest.mark.parametrize(
    ("licences", "mixable"),
    [
        (["CC BY-SA 3.0", "cc-by-sa-4.0", "CC0", "MIT"], True),
        (["cc-by-4.0", "cc-by-nc-4.0"], True),
        (["cc-by-sa-4.0", "cc-by-nc-4.0"], False),
        (["cc-by-sa-4.0", "Microsoft Research, non-commercial"], False),
        (["cc-by-nc-sa-4.0"], True),
        (["cc-by-nc-sa-4.0", "cc-by-sa-4.0"], False),
        (["cc-by-sa-4.0", "odbl"], False),
        (["cc-by-nd-4.0"], False),
        (["", "cc-by-sa-4.0"], True),
    ],
)
def test_which_licences_go_together(licences: list[str], mixable: bool) -> None:
    assert (conflicts(licences) == []) is mixable


def test_a_licence_gets_the_name_the_hub_knows() -> None:
    assert [hub_identifier(one) for one in ("CC BY-SA 3.0", "CC0", "", "House rules", "MIT")] == [
        "cc-by-sa-3.0",
        "cc0-1.0",
        "unknown",
        "other",
        "mit",
    ]


def test_two_releases_are_told_apart_pair_by_pair_with_why(store: Store, tmp_path: Path) -> None:
    first, second, *_ = group_ids(store, make_run(store))
    before = export(store, tmp_path / "before", sources=["boolq", "nq"])
    with store.write() as session:
        reject_group(session, first, reason="vague", reviewed_by="ada")
        edit_group(session, second, {"query_negative": "who"}, reviewed_by="ada", reason="shorter")
        session.commit()
    after = export(store, tmp_path / "after", include_dropped=True)
    with store.read() as session:
        one, other = (get_release(session, told["release_id"]) for told in (before, after))
        told = diff_releases(session, one, other)
        assert [(row.query_id, row.change, row.why) for row in told] == [
            ("q0", "removed", "rejected: vague"),
            ("q1", "changed", "edited: shorter"),
            ("q4", "added", "dropped groups are left out"),
            ("q5", "added", "dropped groups are left out"),
        ]
        assert diff_releases(session, one, one) == []
    elsewhere = make_run(store, name="papers")
    third = export(store, tmp_path / "papers", dataset="papers", run_id=elsewhere)
    with store.read() as session, pytest.raises(BadInput, match="of different datasets"):
        diff_releases(session, one, get_release(session, third["release_id"]))


def test_the_confidence_of_a_group_is_the_validators_least_over_its_scenarios() -> None:
    """Shares of votes where there are several, else margins; another judge's do not count."""
    order = ["query_negative", "positive", "instruction_negative"]
    votes = {"votes": [{"choice": "positive"}, {"choice": "none"}, {"choice": "positive"}]}
    assert confidence_of(votes, order, "positive") == pytest.approx(2 / 3)
    assert confidence_of({"scores": [0.2, 0.7, 0.4]}, order, "positive") == pytest.approx(0.3)
    assert confidence_of({"scores": [0.8, 0.7, 0.4]}, order, "positive") == pytest.approx(-0.1)
    assert confidence_of({}, order, "positive") is None

    def judged(confidence: float | None) -> GroupJudgment:
        facts = (1, 1, "positive", 1, "judge", "model", False, False, "positive", 1)
        return GroupJudgment(*facts, confidence=confidence)

    made = provenance_row({}, {}, [judged(0.4), judged(None), judged(0.3)])
    assert made["confidence"] == 0.3
