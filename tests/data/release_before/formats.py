"""Write `expected_formats.json` with the code of an earlier commit: its releases in other formats.

As Parquet and as CSV, and JSON lines on the Hub.

git archive d64fb84 | tar -x -C BEFORE && cd BEFORE
PYTHONPATH=.:tests PYTHON ../REPO/tests/data/release_before/formats.py OUT

The store is that of `store.sql.gz`, which `make.py` wrote. PYTHON: of an environment with the
packages of that commit; OUT: a new folder. What is recorded of a file is
`tests/described_files.py`, which is read from the folder of this script's own checkout.
"""

import contextlib
import gzip
import importlib.util
import io
import json
import os
import sqlite3
import sys
from pathlib import Path

from hub_server import hub_server

from app.cli.main import main

HERE = Path(__file__).resolve().parent
spec = importlib.util.spec_from_file_location("described", HERE.parents[1] / "described_files.py")
described = importlib.util.module_from_spec(spec)
spec.loader.exec_module(described)


def inf(*words):
    """What a command prints as JSON."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.suppress(SystemExit):
        main([*map(str, words), "--json"])
    return json.loads(out.getvalue())


def write(out):
    """By run and format the files of a release, and by run those of its repository."""
    os.environ.update(INF_HOME=str(out), INF_DATABASE_URL=f"sqlite:///{out}/inf.db")
    with sqlite3.connect(out / "inf.db") as database:
        database.executescript(gzip.decompress((HERE / "store.sql.gz").read_bytes()).decode())
    found = {"parquet": {}, "csv": {}, "hub": {}}
    with hub_server() as hub:
        os.environ.update(
            HF_ENDPOINT=hub.url,
            HF_HUB_OFFLINE="0",
            HF_HUB_DISABLE_XET="1",
            HF_TOKEN="hf_writer",
            HF_HOME=str(out / "hf"),
        )
        for run in (1, 2):
            for form in ("parquet", "csv"):
                release = out / f"{form}{run}"
                views = ("--view", "sentence-transformers", "--view", "tevatron")
                words = ("--run", run, "--out", release, "--format", form)
                made = inf("export", "--dataset", "demo", *words, *(views if form != "csv" else ()))
                found[form][run] = described.files_of(release)
            release = out / f"hub{run}"
            words = ("--run", run, "--out", release, "--format", "jsonl")
            made = inf("export", "--dataset", "demo", *words)
            repo = f"ada/before{run}"
            inf("hub", "push", "--release", made["release_id"], "--repo", repo)
            found["hub"][run] = described.of_repository(hub.files(f"datasets/{repo}"))
    return found


out = Path(sys.argv[1]).resolve()
out.mkdir(parents=True)
text = json.dumps(write(out), indent=1, sort_keys=True) + "\n"
(out / "expected_formats.json").write_text(text)
