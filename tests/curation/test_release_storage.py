"""A release on another storage, through fsspec: the same files, complete or absent."""

import hashlib
from collections.abc import Iterator
from pathlib import Path

import fsspec
import pytest
from exporting import export
from records_world import make_run

from analysis.files.storage import UPLOADING, Place, place_of
from curation.release.plan import MANIFEST, read_manifest
from db.errors import BadInput, NotFound, Refused
from db.store.store import Store
from trainer.data.release_files import find_release, read_release

BUCKET = "memory://bucket/releases/one"


@pytest.fixture
def memory(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[fsspec.AbstractFileSystem]:
    """The file system in memory, empty."""
    monkeypatch.setenv("INF_HOME", str(tmp_path / "home"))
    files = fsspec.filesystem("memory")
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]


def hashes(files: dict[str, bytes]) -> dict[str, str]:
    return {name: hashlib.sha256(data).hexdigest() for name, data in files.items()}


def test_an_upload_cut_short_is_no_release_and_the_next_export_replaces_it(
    sqlite_store: Store, memory: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_run(sqlite_store)
    put = memory.put_file

    def cut(source: str, target: str) -> None:
        if target.endswith("README.md"):
            raise OSError("connection lost")
        put(source, target)

    with monkeypatch.context() as patched:
        patched.setattr(memory, "put_file", cut)
        with pytest.raises(BadInput, match="connection lost"):
            export(sqlite_store, BUCKET)
    assert read_manifest(place_of(BUCKET)) is None
    with pytest.raises(NotFound, match="no release at memory://bucket"):
        find_release(sqlite_store, BUCKET)
    export(sqlite_store, BUCKET)
    assert read_manifest(place_of(BUCKET)) is not None
    assert place_of(BUCKET).read(UPLOADING) is None


def test_a_folder_with_other_files_is_left_alone(
    sqlite_store: Store, memory: fsspec.AbstractFileSystem
) -> None:
    make_run(sqlite_store)
    memory.pipe_file("/bucket/releases/one/notes.txt", b"mine")
    with pytest.raises(Refused, match="not empty and not a release"):
        export(sqlite_store, BUCKET)
    assert memory.cat_file("/bucket/releases/one/notes.txt") == b"mine"


def test_an_unknown_storage_is_refused_with_its_name(sqlite_store: Store) -> None:
    make_run(sqlite_store)
    with pytest.raises(BadInput, match="nowhere"):
        export(sqlite_store, "nowhere://bucket/one")


@pytest.mark.parametrize("format", ["parquet", "jsonl", "csv"])
def test_the_data_files_are_equal_by_hash_on_a_disk_and_on_another_storage(
    sqlite_store: Store, memory: fsspec.AbstractFileSystem, tmp_path: Path, format: str
) -> None:
    make_run(sqlite_store)
    local = export(sqlite_store, tmp_path / "local", format=format)
    remote = export(sqlite_store, BUCKET, format=format)
    assert local["content_sha256"] == remote["content_sha256"]
    assert remote["path"] == BUCKET
    here, there = read_manifest(tmp_path / "local"), read_manifest(place_of(BUCKET))
    assert here is not None and there is not None and here["files"] == there["files"]
    names = [file["path"] for file in here["files"]]
    assert hashes({name: (tmp_path / "local" / name).read_bytes() for name in names}) == {
        file["path"]: file["sha256"] for file in there["files"]
    }
    stored = {name: place_of(BUCKET).read(name) or b"" for name in names}
    assert hashes(stored) == {file["path"]: file["sha256"] for file in there["files"]}
    root = "/bucket/releases/one/"
    found = {path.removeprefix(root) for path in memory.find(root)}
    assert found == {*names, "README.md", "croissant.json", MANIFEST}


def test_training_reads_a_release_of_another_storage_and_copies_it_once(
    sqlite_store: Store, memory: fsspec.AbstractFileSystem, tmp_path: Path
) -> None:
    make_run(sqlite_store)
    export(sqlite_store, tmp_path / "local")
    told = export(sqlite_store, BUCKET)
    folder = find_release(sqlite_store, BUCKET)
    assert [g.texts for g in read_release(folder).groups] == [
        g.texts for g in read_release(tmp_path / "local").groups
    ]
    memory.rm("/bucket/releases/one/data", recursive=True)
    assert find_release(sqlite_store, str(told["release_id"])) == folder


def test_the_same_release_exported_again_is_reported_and_another_is_refused(
    sqlite_store: Store, memory: fsspec.AbstractFileSystem
) -> None:
    make_run(sqlite_store)
    first = export(sqlite_store, BUCKET)
    assert export(sqlite_store, BUCKET)["release_id"] == first["release_id"]
    with pytest.raises(Refused, match="a release is never overwritten"):
        export(sqlite_store, BUCKET, include_dropped=True)


def test_a_file_url_and_a_path_are_the_same_folder(tmp_path: Path) -> None:
    assert place_of(f"file://{tmp_path}/out") == place_of(f"{tmp_path}/out")
    assert place_of("s3://bucket/out/") == Place("s3://bucket/out")
