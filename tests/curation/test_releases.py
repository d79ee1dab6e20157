"""Releases: what goes out, that `datasets` reads it, and that nothing is half written."""

import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from conftest import count_rows
from exporting import export, load_afresh
from huggingface_hub import DatasetCard
from records_world import group_ids, make_run
from sqlalchemy import select

from curation.release.plan import plan_release
from curation.release.preview import preview_release
from curation.release.request import ReleasePlan
from curation.release.rows import configs_of, split_name
from db.errors import BadInput, NotFound, Refused
from db.jobs import jobs
from db.jobs.runner import Cancelled, JobHandle
from db.modules import run_module
from db.release.choice import count_rescued
from db.release.diff import diff_releases
from db.release.releases import get_release, list_releases
from db.review.reviews import approve_group, edit_group, reject_group
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Event, Passage, ReleaseGroup
from trainer.data.release_files import read_release

HARD_TEXTS = {
    "instruction_positive": 'Find "x", in = quotes,\nand\ttwo lines; – ü 🙂 \u2028.',
    "hard_negative_document_1": "=cmd|' /C calc'!A0 " + "long words " * 20_000,
    "hard_negative_document_2": "A passage with ```fences```, $x$ and <script>.",
}


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_datasets_reads_a_release_row_by_row_as_the_store_has_it(
    sqlite_store: Store, tmp_path: Path, format: str
) -> None:
    run_id = make_run(sqlite_store, texts=HARD_TEXTS)
    told = export(sqlite_store, tmp_path / "out", format=format)
    read = load_afresh(tmp_path / "out", tmp_path)
    assert set(read) == {"books"}
    rows = read["books"]["rows"]
    assert read["books"]["types"] == configs_of(INF_IR)["default"]
    assert list(rows[0])[:7] == list(INF_IR.columns)
    assert [row["group_id"] for row in rows] == group_ids(sqlite_store, run_id)
    assert {name: rows[0][name] for name in HARD_TEXTS} == HARD_TEXTS
    assert rows[1] == {
        "query_positive": "who wrote book 1",
        "instruction_positive": "Find the author of book 1.",
        "document_positive": "Book 1 was written by author 1.",
        "query_negative": "who printed book 1",
        "instruction_negative": "Find the year of book 1.",
        "hard_negative_document_1": "Book 1 came out in 1901.",
        "hard_negative_document_2": "Book 1 was printed by printer 1.",
        "group_id": rows[1]["group_id"],
        "query_id": "q1",
        "passage_id": "p1",
        "source": "nq",
        "licence": "cc-by-sa-3.0",
        "verdict": "kept",
        "drop_reason": "",
        "review": "",
        "offline": True,
    }
    assert (told["groups"], told["splits"], told["offline"]) == (4, {"books": 4}, True)


def test_the_content_hash_is_the_same_in_every_format_and_place(
    store: Store, tmp_path: Path
) -> None:
    make_run(store)
    first = export(store, tmp_path / "one")
    second = export(store, tmp_path / "two", format="jsonl")
    assert first["content_sha256"] == second["content_sha256"]
    assert first["release_id"] != second["release_id"]
    manifest = json.loads((tmp_path / "two" / "release.json").read_text())
    assert manifest["content_sha256"] == first["content_sha256"]
    assert manifest["release_id"] == second["release_id"]
    file = manifest["files"][0]
    assert (tmp_path / "two" / file["path"]).stat().st_size == file["bytes"]
    assert file["path"] == "data/books-00000-of-00001.jsonl" and file["rows"] == 4


def test_a_release_is_recorded_with_its_groups_and_who_made_it(
    store: Store, tmp_path: Path
) -> None:
    run_id = make_run(store)
    told = export(store, tmp_path / "out")
    with store.read() as session:
        release = get_release(session, told["release_id"])
        assert release.path == str(tmp_path / "out") and release.offline
        assert release.created_by == "ada"
        assert release.card == (tmp_path / "out" / "README.md").read_text()
        assert release.counts["texts"]["I"]["number"] == 8
        assert [row.id for row in list_releases(session)] == [release.id]
        placed = session.execute(select(ReleaseGroup.group_id, ReleaseGroup.split))
        assert sorted(tuple(row) for row in placed) == [
            (group_id, "books") for group_id in group_ids(store, run_id)
        ]
        assert session.scalars(select(Event.name)).all() == ["release.created"]
        with pytest.raises(NotFound, match="no release 99"):
            get_release(session, 99)


def test_the_filters_choose_by_review_and_verdict(store: Store, tmp_path: Path) -> None:
    run_id = make_run(store)
    first, second, third, fourth = group_ids(store, run_id)
    with store.write() as session:
        approve_group(session, first, reviewed_by="ada")
        reject_group(session, second, reason="vague", reviewed_by="ada")
        approve_group(session, third, reviewed_by="ada")
        edit_group(session, third, {"query_negative": "who bound book 2"}, reviewed_by="bob")
        session.commit()

    def out(folder: str, **config: Any) -> list[tuple[int, str, str]]:
        export(store, tmp_path / folder, format="jsonl", **config)
        (file,) = (tmp_path / folder / "data").iterdir()
        rows = map(json.loads, file.read_text().split("\n")[:-1])
        return [(row["group_id"], row["review"], row["verdict"]) for row in rows]

    assert out("default") == [
        (first, "approve", "kept"),
        (third, "edit", "kept"),
        (fourth, "", "kept"),
    ]
    assert out("approved", reviews="approved") == [(first, "approve", "kept")]
    dropped = group_ids(store, run_id, "dropped")[:2]  # the third never had triplets
    assert out("all", include_dropped=True)[3:] == [(one, "", "dropped") for one in dropped]
    card = (tmp_path / "all" / "README.md").read_text()
    assert "**2 of them were dropped**" in card
    assert "Only groups that a reviewer approved" in (tmp_path / "approved/README.md").read_text()


def test_what_a_person_approved_is_released_though_the_filter_had_dropped_it(
    store: Store, tmp_path: Path
) -> None:
    run_id = make_run(store)
    kept, dropped = group_ids(store, run_id), group_ids(store, run_id, "dropped")
    first = export(store, tmp_path / "before")
    before = json.loads((tmp_path / "before" / "release.json").read_text())
    assert "rescued" not in before["counts"]  # as a release without reviews always was
    assert "had dropped" not in (tmp_path / "before" / "README.md").read_text()
    with store.write() as session:
        for group_id in (kept[0], dropped[0]):
            approve_group(session, group_id, reviewed_by="ada")
        with pytest.raises(Refused, match="lacks"):  # one click approved it once
            approve_group(session, dropped[2], reviewed_by="ada")
        session.commit()
    made = {
        name: export(store, tmp_path / name, format="jsonl", **config)
        for name, config in (
            ("default", {}),
            ("approved", {"reviews": "approved"}),
            ("all", {"include_dropped": True}),
        )
    }
    assert {name: (one["groups"], one["rescued"]) for name, one in made.items()} == {
        "default": (5, 1),
        "approved": (2, 1),
        "all": (6, 1),
    }
    for name in made:
        manifest = json.loads((tmp_path / name / "release.json").read_text())
        assert manifest["counts"]["rescued"] == 1
        card = (tmp_path / name / "README.md").read_text()
        assert "**1 group** that the filter had dropped is here" in card
    assert '`verdict == "kept"` or `review == "approve"` only' in card
    (file,) = (tmp_path / "approved" / "data").iterdir()
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(row["group_id"], row["verdict"], row["review"]) for row in rows] == [
        (kept[0], "kept", "approve"),
        (dropped[0], "dropped", "approve"),
    ]
    assert len(read_release(tmp_path / "approved").groups) == 2
    assert not any(group.dropped for group in read_release(tmp_path / "approved").groups)
    with store.read() as session:
        older = get_release(session, first["release_id"])
        newer = get_release(session, made["default"]["release_id"])
        added = [row.why for row in diff_releases(session, older, newer) if row.change == "added"]
        assert added == ["dropped by the filter, approved since"]
        wanted = ReleasePlan(datasets=("books",), out=str(tmp_path / "x"))
        plan = plan_release(session, wanted)
        assert count_rescued(session, plan.choice) == 1
        assert preview_release(session, wanted).card.count("had dropped is here") == 1


def test_the_card_is_valid_for_the_hub_and_says_how_the_data_were_made(
    sqlite_store: Store, tmp_path: Path
) -> None:
    make_run(sqlite_store, licence="CC BY-SA 3.0")
    export(sqlite_store, tmp_path / "out", name='Books: "the best" | of #1')
    card = DatasetCard.load(tmp_path / "out" / "README.md")
    data = card.data.to_dict()
    assert data["license"] == "cc-by-sa-3.0"
    assert data["pretty_name"] == 'Books: "the best" | of #1'
    assert data["size_categories"] == ["n<1K"]
    assert "offline-rules" in data["tags"]
    assert data["configs"][0]["data_files"] == [
        {"split": "books", "path": "data/books-00000-of-00001.parquet"}
    ]
    for words in (
        "Made offline, without a language model",
        "| all | 8 | 8 | 12 | 6.00 | 4.00 | 6.67 |",
        "| different | 8 | 8 | 12 |",
        "Of 7 pairs, 4 groups were kept (57.1%)",
        "| validation | 2 |",
        "| rule | 1 |",
        "Groups that a reviewer rejected are left out",
        "Write an instruction.",
        "arXiv:2505.21439",
        'load_dataset("PATH_OR_NAME")',
        "**CC BY-SA 3.0**",
    ):
        assert words in card.content, words


def test_texts_written_by_a_model_carry_no_offline_warning(
    sqlite_store: Store, tmp_path: Path
) -> None:
    make_run(sqlite_store, offline=False, licence="")
    told = export(sqlite_store, tmp_path / "out")
    card = DatasetCard.load(tmp_path / "out" / "README.md")
    assert told["offline"] is False and "offline" not in card.text.lower().split("## columns")[0]
    assert card.data.to_dict()["license"] == "unknown"


def test_an_empty_release_is_refused_with_what_to_do(sqlite_store: Store, tmp_path: Path) -> None:
    make_run(sqlite_store, kept=0, dropped=2)
    with pytest.raises(Refused, match=r"kept none of its 3 groups \(dropped: validation 2, rule 1"):
        export(sqlite_store, tmp_path / "out")
    make_run(sqlite_store, name="papers")
    with pytest.raises(Refused, match=r"none is approved\. Approve groups with `reviews set"):
        export(sqlite_store, tmp_path / "out", dataset="papers", reviews="approved")
    with pytest.raises(NotFound, match="no dataset 'poems'"):
        export(sqlite_store, tmp_path / "out", dataset="poems")
    assert list(tmp_path.glob("out*")) == [] and count_rows(sqlite_store, "release") == 0


def test_the_same_release_again_is_told_again_and_another_is_refused(
    sqlite_store: Store, tmp_path: Path
) -> None:
    run_id = make_run(sqlite_store)
    out = tmp_path / "out"
    first = export(sqlite_store, out)
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()}
    assert export(sqlite_store, out) == first
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == before
    with sqlite_store.write() as session:
        reject_group(session, group_ids(sqlite_store, run_id)[0], reason="vague", reviewed_by="ada")
        session.commit()
    with pytest.raises(Refused, match="holds another release"):
        export(sqlite_store, out)
    with pytest.raises(Refused, match="holds another release"):
        export(sqlite_store, out, format="jsonl")
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*") if path.is_file()} == before
    assert count_rows(sqlite_store, "release") == 1


def test_a_whole_folder_that_the_store_does_not_know_is_taken_over(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """The export died after the folder was in place and before its row was committed."""
    make_run(sqlite_store)
    first = export(sqlite_store, tmp_path / "out")
    with sqlite_store.write() as session:
        session.delete(get_release(session, first["release_id"]))
        session.commit()
    again = export(sqlite_store, tmp_path / "out")
    assert again["content_sha256"] == first["content_sha256"]
    manifest = json.loads((tmp_path / "out" / "release.json").read_text())
    assert manifest["release_id"] == again["release_id"]
    assert count_rows(sqlite_store, "release") == 1
    assert not list(tmp_path.glob(".*unfinished*"))


def test_a_folder_with_something_else_is_left_alone(sqlite_store: Store, tmp_path: Path) -> None:
    make_run(sqlite_store)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("mine")
    with pytest.raises(Refused, match="not empty and not a release"):
        export(sqlite_store, tmp_path / "full")
    with pytest.raises(Refused, match="is a file"):
        export(sqlite_store, tmp_path / "full" / "thesis.tex")
    with pytest.raises(BadInput, match="cannot be written"):
        export(sqlite_store, tmp_path / "full" / "thesis.tex" / "out")
    (tmp_path / "empty").mkdir()
    assert export(sqlite_store, tmp_path / "empty")["groups"] == 4
    assert (tmp_path / "full" / "thesis.tex").read_text() == "mine"


def test_a_stop_leaves_nothing_behind(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(sqlite_store)

    def stop(handle: JobHandle) -> None:
        raise Cancelled("stopped", code="stopped")

    monkeypatch.setattr(JobHandle, "check", stop)
    with pytest.raises(Cancelled):
        export(sqlite_store, tmp_path / "new" / "out")
    assert list((tmp_path / "new").iterdir()) == []
    assert count_rows(sqlite_store, "release") == 0


def test_leftovers_of_a_killed_export_are_removed(sqlite_store: Store, tmp_path: Path) -> None:
    make_run(sqlite_store)
    left = tmp_path / ".out.unfinished-999999999"
    (left / "data").mkdir(parents=True)
    export(sqlite_store, tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir() if "out" in path.name) == ["out"]


def test_an_edited_passage_goes_out_as_edited(sqlite_store: Store, tmp_path: Path) -> None:
    group_id = group_ids(sqlite_store, make_run(sqlite_store))[0]
    with sqlite_store.write() as session:
        edit_group(session, group_id, {"hard_negative_document_2": "Edited."}, reviewed_by="ada")
        session.commit()
    export(sqlite_store, tmp_path / "out", format="jsonl")
    (file,) = (tmp_path / "out" / "data").iterdir()
    row = json.loads(file.read_text().split("\n")[0])
    assert (row["hard_negative_document_2"], row["review"]) == ("Edited.", "edit")
    with sqlite_store.read() as session:
        assert session.scalars(select(Passage.text).where(Passage.text == "Edited.")).one()


def test_a_split_is_named_so_that_datasets_takes_it() -> None:
    names = {"Märchen & Co.": "marchen_co", "all": "all_groups", "書": "groups", "a-b.c": "a_b_c"}
    assert {name: split_name(name) for name in names} == names


def test_the_command_makes_a_release(sqlite_store: Store, tmp_path: Path, inf: Any) -> None:
    make_run(sqlite_store)
    done = inf("export", "--dataset", "books", "--out", tmp_path / "out", "--json")
    assert done.code == 0, done.err
    assert done.json["groups"] == 4 and done.json["job_id"] and done.json["release_id"]
    assert done.json["path"] == str(tmp_path / "out")
    again = inf("export", "--dataset", "books", "--out", tmp_path / "out")
    assert again.code == 0 and "OFFLINE" in again.out
    refused = inf("export", "--dataset", "books", "--out", tmp_path / "b", "--reviews", "approved")
    assert refused.code == 1 and "none is approved" in refused.err
    assert inf("export", "--dataset", "books", "--out", tmp_path, "--format", "xml").code == 2
    missing = inf("export", "--dataset", "poems", "--out", tmp_path / "p", "--json")
    assert missing.code == 1 and "no dataset 'poems'" in missing.json["error"]


@pytest.mark.long
def test_an_export_that_was_killed_gives_the_same_release_when_run_again(
    sqlite_store: Store, tmp_path: Path
) -> None:
    make_run(sqlite_store, kept=300, dropped=0, unwritten=0)
    with sqlite_store.write() as session:
        config = {"dataset": "books", "out": str(tmp_path / "out"), "held_out": 0.2}
        job_id = jobs.enqueue_job(session, "export", config).id
        jobs.claim_job(session, job_id)
        session.commit()
    child = subprocess.Popen([sys.executable, *run_module("app.jobs.entry"), str(job_id), "1"])
    deadline = time.monotonic() + 120
    while not list(tmp_path.glob(".out.unfinished-*")) and time.monotonic() < deadline:
        time.sleep(0.005)
    child.kill()
    child.wait()
    again = export(sqlite_store, tmp_path / "out", held_out=0.2)
    whole = export(sqlite_store, tmp_path / "whole", held_out=0.2)
    assert again["content_sha256"] == whole["content_sha256"]
    assert not list(tmp_path.glob(".*unfinished*"))
    with sqlite_store.read() as session:
        paths = {release.path for release in list_releases(session)}
    assert paths == {str(tmp_path / "out"), str(tmp_path / "whole")}
