"""Pushing to a server that speaks the Hub's protocol, with the real `huggingface_hub`."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exporting import export, load_afresh
from hub_server import Hub
from records_world import group_ids, make_run

from db.reviews import reject_group
from db.store import Store
from db.tables import Checkpoint

REPO = "datasets/ada/books"


@pytest.fixture
def push(there: dict[str, str], inf: Any) -> Callable[..., Any]:
    def run(*words: object, token: str = "hf_writer", **environment: str) -> Any:
        told = there | {"HF_TOKEN": token}
        command = ["hub", "push", "--repo", "ada/books", "--json", *words]
        return inf(*command, **(told | environment))

    return run


def test_a_pushed_release_comes_back_equal_and_is_not_silently_overwritten(
    sqlite_store: Store, tmp_path: Path, hub: Hub, push: Callable[..., Any]
) -> None:
    run_id = make_run(sqlite_store)
    first = export(sqlite_store, tmp_path / "one")["release_id"]
    looked = push("--release", first, "--dry-run")
    assert looked.code == 0, looked.err + looked.out
    assert looked.json["pushed"] is False and hub.repos == {}
    assert "data/books-00000-of-00001.parquet" in looked.json["added"]
    told = push("--release", first)
    assert told.code == 0, told.err + told.out
    assert hub.repos[REPO].private
    files = hub.files(REPO, told.json["tag"])
    local = {
        path.relative_to(tmp_path / "one").as_posix(): path.read_bytes()
        for path in (tmp_path / "one").rglob("*")
        if path.is_file()
    }
    assert {name: data for name, data in files.items() if name != ".gitattributes"} == local
    back = tmp_path / "back"
    for name, data in files.items():
        (back / name).parent.mkdir(parents=True, exist_ok=True)
        (back / name).write_bytes(data)
    rows = load_afresh(back, tmp_path)["books"]["rows"]
    assert [row["group_id"] for row in rows] == group_ids(sqlite_store, run_id)
    again = push("--release", first)
    assert again.code == 0 and again.json["url"] is None and again.json["added"] == []

    with sqlite_store.write() as session:
        reject_group(session, group_ids(sqlite_store, run_id)[0], reason="x", reviewed_by="ada")
        session.commit()
    second = export(sqlite_store, tmp_path / "two")["release_id"]
    refused = push("--release", second)
    assert refused.code == 1 and "holds something else" in refused.json["error"]
    assert hub.files(REPO) == files
    aside = push("--release", second, "--pull-request")
    assert aside.code == 0 and aside.json["pull_request"].endswith("/discussions/1")
    assert hub.files(REPO) == files
    assert push("--release", second, "--branch", "v2").code == 0
    assert hub.files(REPO, "v2") != files == hub.files(REPO)
    replaced = push("--release", second, "--replace")
    assert replaced.code == 0 and hub.files(REPO) != files
    assert hub.files(REPO, told.json["tag"]) == files  # the first release stays under its tag


def test_a_push_that_broke_off_goes_on_where_it_was(
    sqlite_store: Store, tmp_path: Path, hub: Hub, push: Callable[..., Any]
) -> None:
    make_run(sqlite_store)
    release = export(sqlite_store, tmp_path / "out")["release_id"]
    hub.faults["POST /commit/"] = ["cut"]
    broken = push("--release", release)
    assert broken.code == 1 and "cannot be reached" in broken.json["error"]
    assert "is not uploaded again" in broken.json["error"]
    uploaded = sum(request.startswith("PUT") for request in hub.seen)
    assert uploaded == 4
    assert push("--release", release).code == 0
    assert sum(request.startswith("PUT") for request in hub.seen) == uploaded


REFUSALS: list[tuple[str, dict[str, list[Any]], str]] = [
    ("", {}, "no token for the Hub: set HF_TOKEN"),
    ("hf_wrong", {}, "the token is not valid"),
    ("hf_reader", {}, "may only read"),
    ("hf_writer", {"POST repos/create": [409]}, "taken or changed meanwhile"),
    ("hf_writer", {"POST repos/create": [403]}, "may not do this here"),
    ("hf_writer", {"POST /commit/": [412]}, "somebody pushed to the repository meanwhile"),
    ("hf_writer", {"POST /commit/": [507]}, "storage is full"),
    ("hf_writer", {"POST /commit/": [500]}, "trouble of its own"),
    ("hf_writer", {"POST /commit/": [429]}, "too many requests"),
    ("hf_writer", {"GET /api/datasets": [401]}, "the token is not valid"),
]
TRY_ALL = """
import json, os, sys, urllib.request
from curation.hub_push import push
from db import jobs
from db.errors import InfError
from db.job_runner import JobHandle
from db.store import open_store
store = open_store()
for token, faults, _ in json.loads(sys.argv[2]):
    os.environ["HF_TOKEN"] = token
    told = json.dumps(faults).encode()
    urllib.request.urlopen(os.environ["HF_ENDPOINT"] + "/_faults", data=told).close()
    with store.write() as session:
        config = {"release_id": int(sys.argv[1]), "repo": "ada/books"}
        job_id = jobs.enqueue_job(session, "push", config).id
        jobs.claim_job(session, job_id)
        session.commit()
    try:
        push(JobHandle(store, job_id, 1))
        print("pushed")
    except InfError as error:
        print(json.dumps(str(error)))
"""


def test_what_the_hub_refuses_is_told_in_words(
    sqlite_store: Store, tmp_path: Path, hub: Hub
) -> None:
    make_run(sqlite_store)
    release = export(sqlite_store, tmp_path / "out")["release_id"]
    environment = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    done = subprocess.run(
        [sys.executable, "-c", TRY_ALL, str(release), json.dumps(REFUSALS)],
        capture_output=True,
        text=True,
        env=os.environ | environment | {"HF_HOME": str(tmp_path / "hf")},
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = done.stdout.splitlines()
    assert len(told) == len(REFUSALS)
    for said, (_, faults, words) in zip(told, REFUSALS, strict=True):
        assert words in said, faults
    assert "hf_w" not in done.stdout + done.stderr  # never a token


def test_a_checkpoint_goes_out_as_a_model(
    sqlite_store: Store, tmp_path: Path, hub: Hub, push: Callable[..., Any]
) -> None:
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "model.safetensors").write_bytes(b"weights")
    (folder / "README.md").write_text("---\nlicense: mit\n---\n# m\n")
    with sqlite_store.write() as session:
        session.add(Checkpoint(path=str(folder), base_model="m", config={}))
        session.commit()
    told = push("--checkpoint", 1)
    assert told.code == 0, told.out + told.err
    assert hub.files("models/ada/books")["model.safetensors"] == b"weights"
    assert push("--checkpoint", 1, "--release", 1).code == 2
    missing = push("--checkpoint", 9)
    assert missing.code == 1 and "no checkpoint 9" in missing.json["error"]
