"""Finished groups from files and from the Hub become a run that can be released again."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import count_rows
from curation_runs import group_reads
from exporting import export
from hub_server import Repo, hub_server
from records_world import make_run
from sqlalchemy import select
from study_world import sampled_study

from curation.importing.groups import import_groups
from db.corpus.datasets import get_dataset
from db.errors import BadInput, BadRows
from db.run.progress import list_runs
from db.run.runs import funnel, latest_run
from db.shape import INF_IR
from db.store.store import Store
from db.tables import Passage


def row(number: int, **more: Any) -> dict[str, Any]:
    """A row of published InF-IR: the seven columns and nothing else."""
    return {name: f"{name} {number}" for name in INF_IR.columns} | more


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_published_groups_become_a_run_and_again_adds_nothing(store: Store, tmp_path: Path) -> None:
    file = write(tmp_path / "msmarco.jsonl", [row(n) for n in range(5)])
    options: dict[str, Any] = {"name": "inf-ir", "files": [file], "origin": "msmarco.jsonl"}
    first = import_groups(store, licence="cc-by-4.0", **options, shape=INF_IR)
    assert (first.imported, first.unchanged) == (5, 0)
    again = import_groups(store, **options, shape=INF_IR)
    assert (again.run_id, again.imported, again.unchanged) == (first.run_id, 0, 5)
    with group_reads(store) as reads, store.read() as session:
        assert [(run.pairs, run.kept) for run in list_runs(session)] == [(5, 5)] and not reads
    with store.read() as session:
        told = funnel(session, first.run_id)
        assert (told.pairs, told.kept, told.generated) == (5, 5, 5)
        dataset = get_dataset(session, "inf-ir")
        assert latest_run(session, dataset.id).provider == "import"
        origins = list(session.scalars(select(Passage.origin)))
        assert (origins.count("seed"), origins.count("generated")) == (5, 10)
    with store.write() as session:
        study = sampled_study(session, run_id=first.run_id, items=3, overlap=1)
        assert study.id
    released = export(store, tmp_path / "out", dataset="inf-ir", format="jsonl")
    back = (tmp_path / "out" / "data" / "inf_ir-00000-of-00001.jsonl").read_text().splitlines()
    assert [{name: json.loads(line)[name] for name in INF_IR.columns} for line in back] == [
        row(n) for n in range(5)
    ]
    assert released["offline"] is False
    card = (tmp_path / "out" / "README.md").read_text()
    assert "made elsewhere and imported from `msmarco.jsonl`" in card and "Acceptance" not in card


def test_a_release_comes_into_another_data_set_with_its_ids_and_its_offline_label(
    store: Store, tmp_path: Path
) -> None:
    make_run(store)
    export(store, tmp_path / "out", include_dropped=True)
    file = tmp_path / "out" / "data" / "books-00000-of-00001.parquet"
    done = import_groups(store, name="copy", files=[file], origin="a release", shape=INF_IR)
    assert done.imported == 6
    again = export(store, tmp_path / "again", dataset="copy", include_dropped=True)
    assert again["offline"] is True and again["groups"] == 6
    with store.read() as session:
        assert funnel(session, done.run_id).dropped == {"validation": 2}


def test_a_bad_group_is_told_with_its_line_and_nothing_is_imported(
    sqlite_store: Store, tmp_path: Path
) -> None:
    rows = [row(0), row(1, query_negative=""), row(2, query_id="x"), row(3, query_id="x")]
    file = write(tmp_path / "groups.jsonl", rows)
    options: dict[str, Any] = {"name": "inf-ir", "files": [file], "origin": "o"}
    with pytest.raises(BadRows) as caught:
        import_groups(sqlite_store, **options, shape=INF_IR)
    assert [(bad.line, bad.reason) for bad in caught.value.rows] == [
        (2, "no `query_negative`: every group needs the 7 texts of InF-IR"),
        (4, "duplicate query_id 'x' with other texts"),
    ]
    assert count_rows(sqlite_store, "dataset") == 0
    done = import_groups(sqlite_store, skip_bad=True, **options, shape=INF_IR)
    assert (done.imported, len(done.skipped)) == (2, 2)
    with pytest.raises(BadInput, match="no rows"):
        import_groups(
            sqlite_store, **options | {"files": [write(tmp_path / "e.jsonl", [])]}, shape=INF_IR
        )


@pytest.mark.long
def test_the_commands_import_groups_from_a_file_and_from_the_hub(
    sqlite_store: Store, tmp_path: Path, inf: Any
) -> None:
    file = write(tmp_path / "groups.jsonl", [row(n) for n in range(3)])
    told = inf("import", "--dataset", "mine", "--groups", file, "--json")
    assert told.code == 0, told.err
    assert told.json["imported"] == 3 and told.json["run_id"] == 1
    assert inf("import", "--dataset", "mine").code == 2
    make_run(sqlite_store)
    export(sqlite_store, tmp_path / "out")
    with hub_server() as hub:
        repo = Repo(private=False)
        hub.repos["datasets/ada/books"] = repo
        local = tmp_path / "out"
        files = {
            path.relative_to(local).as_posix(): path.read_bytes()
            for path in local.rglob("*")
            if path.is_file()
        }
        commit = repo.commit(files, "main")
        repo.commit({"README.md": b"# nothing"}, "empty")
        environment = {
            "HF_ENDPOINT": hub.url,
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "HF_HOME": str(tmp_path / "hf"),
        }
        command = ("hub", "pull", "ada/books", "--dataset", "pulled", "--json")
        pulled = inf(*command, **environment)
        assert pulled.code == 0, pulled.err + pulled.out
        assert (pulled.json["imported"], pulled.json["commit"]) == (4, commit)
        missing = inf(*command, "--revision", "nowhere", **environment)
        assert missing.code == 1 and "no such revision" in missing.json["error"]
        empty = inf(*command, "--revision", "empty", **environment)
        assert empty.code == 1 and "has no .parquet" in empty.json["error"]
    with sqlite_store.read() as session:
        assert get_dataset(session, "pulled").source == "hf:ada/books"
