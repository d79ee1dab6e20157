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
from sqlalchemy import delete, select

from db.review.reviews import reject_group
from db.store.store import Store
from db.tables import Checkpoint, Event

pytestmark = pytest.mark.long

REPO = "datasets/ada/books"


@pytest.fixture
def push(there: dict[str, str], inf: Any) -> Callable[..., Any]:
    def run(*words: object, token: str = "hf_writer", **environment: str) -> Any:
        told = there | {"HF_TOKEN": token}
        command = ["hub", "push", "--repo", "ada/books", "--json", *words]
        return inf(*command, **(told | environment))

    return run


@pytest.mark.long
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
    assert again.json["pushed"] is False and again.json["tag"] == told.json["tag"]

    with sqlite_store.write() as session:
        reject_group(session, group_ids(sqlite_store, run_id)[0], reason="x", reviewed_by="ada")
        session.commit()
    second = export(sqlite_store, tmp_path / "two")["release_id"]
    refused = push("--release", second)
    assert refused.code == 1 and "holds other files" in refused.json["error"]
    assert hub.files(REPO) == files
    aside = push("--release", second, "--pull-request")
    assert aside.code == 0 and aside.json["pull_request"].endswith("/discussions/1")
    assert hub.files(REPO) == files
    assert push("--release", second, "--branch", "v2").code == 0
    assert hub.files(REPO, "v2") != files == hub.files(REPO)
    replaced = push("--release", second, "--replace")
    assert replaced.code == 0 and hub.files(REPO) != files
    assert hub.files(REPO, told.json["tag"]) == files  # the first release stays under its tag


def test_a_push_is_one_event_a_commit_of_its_release(
    sqlite_store: Store, tmp_path: Path, hub: Hub, push: Callable[..., Any]
) -> None:
    """Neither a look, a failure nor a repeated push is one; one killed before its event is."""
    make_run(sqlite_store)
    release = export(sqlite_store, tmp_path / "out")["release_id"]

    def told() -> list[tuple[str, str, dict[str, Any]]]:
        query = select(Event).where(Event.name == "release.pushed").order_by(Event.id)
        with sqlite_store.read() as session:
            return [(each.noun, each.noun_id, each.data) for each in session.scalars(query)]

    assert push("--release", release, "--dry-run").code == 0
    hub.faults["POST /commit/"] = ["cut"]
    assert push("--release", release).code == 1
    assert told() == []
    done = push("--release", release)
    assert done.json["pushed"] is True
    place = {"repo": "ada/books", "commit": done.json["commit"]}
    ((noun, noun_id, data),) = told()
    assert (noun, noun_id) == ("release", str(release)) and data.items() >= place.items()
    assert push("--release", release).json["pushed"] is False
    assert len(told()) == 1
    with sqlite_store.write() as session:
        session.execute(delete(Event).where(Event.name == "release.pushed"))
        session.commit()
    assert push("--release", release).code == 0
    assert [data.items() >= place.items() for _, _, data in told()] == [True]


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
    ("hf_writer", {"POST repos/create": [409]}, "a conflicting change"),
    ("hf_writer", {"POST repos/create": [403]}, "may not do this here"),
    ("hf_writer", {"POST /commit/": [412]}, "another user has pushed to the repository"),
    ("hf_writer", {"POST /commit/": [507]}, "storage is full"),
    ("hf_writer", {"POST /commit/": [500]}, "an internal error"),
    ("hf_writer", {"POST /commit/": [429]}, "too many requests"),
    ("hf_writer", {"GET /api/datasets": [401]}, "the token is not valid"),
]
TRY_ALL = """
import json, os, sys, urllib.request
from curation.hub.push import push
from db.jobs import jobs
from db.errors import InfError
from db.jobs.runner import JobHandle
from inf_studio import open_store
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
        print(json.dumps([str(error), error.message, error.remedy]))
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
    for said, (_, faults, words) in zip(map(json.loads, told), REFUSALS, strict=True):
        text, message, remedy = said
        assert words in text and remedy and remedy not in message, faults
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


PUSHES = """
import json, os, sys, urllib.request
from pathlib import Path
from curation.hub.push import push
from db.jobs import jobs
from db.errors import InfError
from db.jobs.runner import JobHandle
from inf_studio import open_store
store = open_store()
for config in json.loads(sys.argv[1]):
    told = json.dumps(config.pop("faults", {})).encode()
    urllib.request.urlopen(os.environ["HF_ENDPOINT"] + "/_faults", data=told).close()
    told = json.dumps(config.pop("whoami", {})).encode()
    urllib.request.urlopen(os.environ["HF_ENDPOINT"] + "/_whoami", data=told).close()
    moved = config.pop("moved_tag", False)
    if moved:
        urllib.request.urlopen(os.environ["HF_ENDPOINT"] + "/_moved_tag", data=b"").close()
    for path, text in config.pop("write", {}).items():
        Path(path).write_text(text)
    with store.write() as session:
        job_id = jobs.enqueue_job(session, "push", {"repo": "ada/books"} | config).id
        jobs.claim_job(session, job_id)
        session.commit()
    try:
        print(json.dumps(push(JobHandle(store, job_id, 1)).as_json()))
    except InfError as error:
        print(json.dumps({"error": str(error)}))
"""


def push_each(
    hub: Hub, tmp_path: Path, configs: list[dict[str, Any]], *, token: str = "hf_writer"
) -> list[dict[str, Any]]:
    """The results of push jobs, one after the other in a process of their own."""
    environment = {"HF_ENDPOINT": hub.url, "HF_HUB_OFFLINE": "0", "HF_HUB_DISABLE_XET": "1"}
    environment |= {"HF_HOME": str(tmp_path / "hf"), "HF_TOKEN": token}
    done = subprocess.run(
        [sys.executable, "-c", PUSHES, json.dumps(configs)],
        capture_output=True,
        text=True,
        env=os.environ | environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "%|" not in done.stderr  # no bars without a terminal
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_a_tag_that_failed_is_made_by_the_next_push_and_one_on_other_files_is_refused(
    sqlite_store: Store, tmp_path: Path, hub: Hub
) -> None:
    make_run(sqlite_store)
    release = {"release_id": export(sqlite_store, tmp_path / "out")["release_id"]}
    broken, aside, made, again, moved, requested = push_each(
        hub,
        tmp_path,
        [
            release | {"faults": {"POST /tag/": [500]}},
            release | {"pull_request": True},
            release,
            release,
            release | {"moved_tag": True},
            release | {"pull_request": True},
        ],
    )
    assert "tagging ada/books" in broken["error"]
    assert aside["tag"] is None and aside["pushed"] is False
    assert made["pushed"] is False and made["tag"].startswith("release-1-")
    assert made["commit"] == hub.repos[REPO].refs["main"]
    assert again["tag"] == made["tag"] and again["pushed"] is False
    assert f"has a tag {made['tag']} that names other files" in moved["error"]
    assert "error" not in requested
    assert sum("/tag/" in request for request in hub.seen) == 2


def test_a_release_folder_that_was_changed_is_not_pushed(
    sqlite_store: Store, tmp_path: Path, hub: Hub
) -> None:
    make_run(sqlite_store)
    out = tmp_path / "out"
    release = {"release_id": export(sqlite_store, out, format="jsonl")["release_id"]}
    data = next((out / "data").iterdir())
    kept = {path: path.read_text() for path in (data, out / "README.md", out / "release.json")}
    text = kept[data]
    swapped = text.replace("a", "b", 1)
    assert len(swapped) == len(text) and swapped != text
    manifest = json.loads(kept[out / "release.json"])
    other = json.dumps(manifest | {"content_sha256": "0" * 64})
    whole = {str(path): words for path, words in kept.items()}
    told = push_each(
        hub,
        tmp_path,
        [
            release | {"write": {str(data): swapped}},
            release | {"write": whole | {str(out / "README.md"): kept[out / "README.md"] + "x"}},
            release | {"write": whole | {str(out / "release.json"): other}},
            release | {"write": whole | {str(out / "data" / "more.jsonl"): text}},
        ],
    )
    named = [
        f"data/{data.name} differs",
        "README.md differs",
        "release.json differs",
        "data/more.jsonl was added",
    ]
    for result, words in zip(told, named, strict=True):
        assert f"the folder is no longer release 1: {words}" in result["error"]
        assert "export again" in result["error"]
    (out / "data" / "more.jsonl").unlink()
    data.unlink()
    (gone,) = push_each(hub, tmp_path, [release])
    assert f"data/{data.name} is missing" in gone["error"]
    assert not any("whoami-v2" in request for request in hub.seen)  # before connecting


def fine_grained(*entities: tuple[str, str]) -> dict[str, Any]:
    scoped = [
        {"entity": {"type": kind, "name": name}, "permissions": ["repo.write"]}
        for kind, name in entities
    ]
    token = {"displayName": "t", "role": "fineGrained", "fineGrained": {"scoped": scoped}}
    return {"auth": {"accessToken": token}}


def test_a_repository_of_another_is_refused_in_words_and_a_dry_run_sees_it(
    sqlite_store: Store, tmp_path: Path, hub: Hub
) -> None:
    make_run(sqlite_store)
    looked = {"release_id": export(sqlite_store, tmp_path / "out")["release_id"], "dry_run": True}
    cases: list[tuple[dict[str, Any], str]] = [
        ({"repo": "bob/books"}, "bob/books belongs to another account: the token of 'ada'"),
        ({"repo": "bob/books", "pull_request": True}, "bob/books belongs to another account"),
        ({"repo": "Lab/books", "whoami": {"orgs": [{"name": "lab"}]}}, ""),
        ({"whoami": fine_grained(("org", "lab"))}, "its scope is lab"),
        ({"whoami": fine_grained(("model", "ada/books"))}, "its scope is ada/books"),
        ({"whoami": fine_grained(("dataset", "ada/books"))}, ""),
        ({"whoami": fine_grained(("user", "ada"))}, ""),
        ({"whoami": fine_grained()}, "may only read"),
        ({"repo": "ada/"}, "a repository is named USER/NAME"),
    ]
    told = push_each(hub, tmp_path, [looked | config for config, _ in cases])
    for result, (config, words) in zip(told, cases, strict=True):
        assert (words in result["error"]) if words else ("error" not in result), config
    assert hub.repos == {}


def test_a_dry_run_needs_no_token_and_a_push_does(
    sqlite_store: Store, tmp_path: Path, hub: Hub
) -> None:
    make_run(sqlite_store)
    release = {"release_id": export(sqlite_store, tmp_path / "out")["release_id"]}
    new, refused = push_each(hub, tmp_path, [release | {"dry_run": True}, release], token="")
    assert new["repository_exists"] is new["pushed"] is new["signed_in"] is False
    assert "README.md" in new["added"] and "no token for the Hub" in refused["error"]
    assert not any("whoami-v2" in request for request in hub.seen) and hub.repos == {}
    push_each(hub, tmp_path, [release | {"public": True}])
    (same,) = push_each(hub, tmp_path, [release | {"dry_run": True}], token="")
    assert same["repository_exists"] and same["added"] == same["changed"] == []


def test_a_pull_speaks_of_pulling_and_draws_no_bars_without_a_terminal(
    sqlite_store: Store, tmp_path: Path, hub: Hub, there: dict[str, str], inf: Any
) -> None:
    make_run(sqlite_store)
    release = {"release_id": export(sqlite_store, tmp_path / "out")["release_id"]}
    push_each(hub, tmp_path, [release])
    environment = there | {"HF_TOKEN": "hf_writer"}
    hub.faults["GET /api/datasets"] = ["cut"]
    cut = inf("hub", "pull", "ada/books", "--dataset", "x", "--json", **environment)
    assert cut.code == 1 and "Nothing was imported: run it again" in cut.json["error"]
    bad = inf("hub", "pull", "bad", "--dataset", "x", "--json", **environment)
    assert bad.code == 1 and "no such repository" in bad.json["error"]
    assert "upload" not in cut.out + cut.err + bad.out + bad.err
    pulled = inf("hub", "pull", "ada/books", "--dataset", "x", "--json", **environment)
    assert pulled.code == 0, pulled.err + pulled.out
    assert "%|" not in pulled.err and "Fetching" not in pulled.err
