"""Write `store.sql.gz` and `expected.json` with the code of an earlier commit.

git worktree add ../before d64fb84 && cd ../before
PYTHONPATH=.:tests PYTHON ../REPO/tests/data/release_before/make.py OUT

Two runs of the demo set's first pairs, one from the recording and one on the test server, two model
judges on a study, three reviews, a release of each run. PYTHON: of an environment with its
packages; OUT: a new folder.
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import sqlite3
import sys
from pathlib import Path

from curation_runs import texts_of
from openai_server import Server

from app.cli.main import main
from curation.recorded.recording import SHIPPED
from db.store.store import open_store

PAIRS = 10


def inf(*words):
    """What a command prints as JSON."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main([*map(str, words), "--json"])
    return json.loads(out.getvalue())


def write(out):
    """The store of a fresh home, what it exports, and what its runs made."""
    os.environ.update(INF_HOME=str(out), INF_DATABASE_URL=f"sqlite:///{out}/inf.db")
    demo = SHIPPED.parent
    inf("db", "upgrade")
    named = ("--dataset", "demo")
    files = ("--pairs", demo / "pairs.jsonl", "--passages", demo / "passages.jsonl")
    inf("import", *named, *files, "--source", "InF Studio demo set", "--licence", "cc0-1.0")
    with Server() as server:
        os.environ["OPENAI_BASE_URL"] = server.url
        curate = ("curate", *named, "--limit", PAIRS)
        inf(*curate, "--provider", "recorded")
        inf(*curate, "--provider", "openai", "--set", "model=small")
        inf("study", "create", *named, "--items", 6, "--overlap", 2, "--run", 1)
        for judge in ("simulated:1", "openai:judge"):
            inf("study", "judge", "--study", 1, "--judge", judge)
    groups = inf("groups", "list", "--run", 1)["groups"]
    dropped, *kept = sorted(groups, key=lambda row: row["verdict"])
    inf("review", "one", "--group", kept[0]["group_id"], "--approve")
    inf("review", "one", "--group", kept[1]["group_id"], "--reject", "--reason", "instruction")
    changed = "query_negative=how to store garlic through the winter"
    inf("review", "one", "--group", kept[2]["group_id"], "--edit", changed, "--reason", "style")
    inf("review", "one", "--group", dropped["group_id"], "--approve")
    store = open_store()
    expected = {"content_sha256": {}, "files": {}, "texts": {}}
    for run in (1, 2):
        release = out / f"release{run}"
        views = ("--view", "sentence-transformers", "--view", "tevatron")
        made = inf("export", *named, "--run", run, "--out", release, "--format", "jsonl", *views)
        expected["content_sha256"][run] = made["content_sha256"]
        expected["files"][run] = {
            path.relative_to(release).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
            for path in sorted(release.rglob("*"))
            if path.is_file()
        }
        texts = json.dumps(texts_of(store, run), sort_keys=True)
        expected["texts"][run] = hashlib.sha256(texts.encode()).hexdigest()
    store.close()
    return expected


out = Path(sys.argv[1]).resolve()
out.mkdir(parents=True)
(out / "expected.json").write_text(json.dumps(write(out), indent=1) + "\n")
database = sqlite3.connect(out / "inf.db")
database.execute("DELETE FROM embedding")
script = "\n".join(database.iterdump())
(out / "store.sql.gz").write_bytes(gzip.compress(script.encode(), 9, mtime=0))
