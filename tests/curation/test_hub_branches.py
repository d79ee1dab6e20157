"""A revision holds exactly the release that was pushed to it, whatever the branch began as."""

import copy
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from exporting import export
from hub_server import Hub
from records_world import make_run

from db.store.store import Store

pytestmark = pytest.mark.long

REPO = "datasets/ada/books"
MAX_REQUESTS = 40


def pushed_files(hub: Hub, revision: str) -> dict[str, bytes]:
    """The files of a revision, without what the Hub itself keeps there."""
    return {name: data for name, data in hub.files(REPO, revision).items() if name[0] != "."}


def files_of(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


@pytest.fixture
def releases(sqlite_store: Store, tmp_path: Path) -> tuple[int, int]:
    """Two releases of which no data file has the same name."""
    make_run(sqlite_store)
    first = export(sqlite_store, tmp_path / "one", format="parquet")["release_id"]
    second = export(sqlite_store, tmp_path / "two", format="jsonl")["release_id"]
    return first, second


def test_a_push_to_a_new_branch_leaves_nothing_of_main_there(
    releases: tuple[int, int],
    tmp_path: Path,
    hub: Hub,
    there: dict[str, str],
    inf: Callable[..., Any],
) -> None:
    def push(*words: object) -> Any:
        done = inf("hub", "push", "--repo", "ada/books", "--json", *words, **there)
        assert done.code == 0, done.err + done.out
        return done.json

    push("--release", releases[0])
    main = hub.files(REPO)
    looked = push("--release", releases[1], "--branch", "v2", "--dry-run")
    assert "data/books-00000-of-00001.parquet" in looked["removed"]
    assert "v2" not in hub.repos[REPO].refs
    told = push("--release", releases[1], "--branch", "v2")
    assert pushed_files(hub, "v2") == files_of(tmp_path / "two")
    assert pushed_files(hub, told["tag"]) == files_of(tmp_path / "two")
    assert hub.files(REPO) == main


KILLED_AT_EVERY_REQUEST = """
import json, os, sys, urllib.request
from curation.hub.push import push
from db.jobs import jobs
from db.jobs.runner import JobHandle
from inf_studio import open_store
import huggingface_hub, httpx2

config = json.loads(sys.argv[1])

def tell(path, told):
    url = os.environ["HF_ENDPOINT"] + path
    with urllib.request.urlopen(url, data=json.dumps(told).encode()) as answer:
        return json.load(answer)

def forked(kill=None):
    pid = os.fork()
    if pid == 0:
        if kill is not None:
            tell("/_kill", [os.getpid(), *kill])
        store = open_store()
        with store.write() as session:
            job_id = jobs.enqueue_job(session, "push", config).id
            jobs.claim_job(session, job_id)
            session.commit()
        push(JobHandle(store, job_id, 1))
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

for when in ("before", "after"):
    for number in range(1, int(sys.argv[2])):
        killed = forked((number, when))
        over = tell("/_kill_is_open", None)
        print(json.dumps([when, number, killed, forked(), tell("/_state", None)]), flush=True)
        if over:
            break
"""


@pytest.mark.long
def test_a_push_killed_at_any_request_is_made_whole_by_the_next_and_never_mixes_releases(
    releases: tuple[int, int], tmp_path: Path, hub: Hub, there: dict[str, str], inf: Any
) -> None:
    first, second = releases
    done = inf("hub", "push", "--repo", "ada/books", "--release", first, **there)
    assert done.code == 0, done.err
    hub.saved = copy.deepcopy(hub.repos)
    main, release = hub.files(REPO), files_of(tmp_path / "two")
    hub.watch = lambda: {
        "v2": pushed_files(hub, "v2") == release,
        "main": hub.files(REPO) == main,
        "tags": [
            pushed_files(hub, tag) == release
            for tag in hub.repos[REPO].tags
            if tag.startswith("release-2-")
        ],
    }
    config = {"release_id": second, "repo": "ada/books", "branch": "v2"}
    ran = subprocess.run(
        [sys.executable, "-c", KILLED_AT_EVERY_REQUEST, json.dumps(config), str(MAX_REQUESTS)],
        capture_output=True,
        text=True,
        env=os.environ | there,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    rows = [json.loads(line) for line in ran.stdout.splitlines()]
    assert len(rows) > 10 and {row[0] for row in rows} == {"before", "after"}
    for when, number, _, again, state in rows:
        assert again == 0, (when, number)
        assert state == {"v2": True, "main": True, "tags": [True]}, (when, number, state)
    assert [row[2] for row in rows].count(-9) == len(rows) - 2  # all but the last of each
