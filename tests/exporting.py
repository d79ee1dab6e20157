"""Making a release in this process, and reading it with `datasets` in another one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from curation.release.job import export_release
from db.jobs import jobs
from db.jobs.runner import JobHandle
from db.store.store import Store


def export(store: Store, out: Path | str, **config: Any) -> dict[str, Any]:
    """Run the handler of an export job in this process."""
    with store.write() as session:
        wanted = {"dataset": "books", "out": str(out), "split_by": "dataset"} | config
        job_id = jobs.enqueue_job(session, "export", wanted, started_by="ada").id
        claimed = jobs.claim_job(session, job_id)
        assert claimed is not None
        session.commit()
    return export_release(JobHandle(store, job_id, 1)).as_json()


LOAD = """
import json, sys
from datasets import load_dataset
told = load_dataset(*sys.argv[1:])
print(json.dumps({name: {
    "rows": split.to_list(),
    "types": {
        column: getattr(feature, "dtype", "list") for column, feature in split.features.items()
    },
} for name, split in told.items()}))
"""


def load_afresh(folder: Path, tmp_path: Path, config: str = "default") -> dict[str, Any]:
    """What `datasets.load_dataset` reads in a new process without a network."""
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "hf")}
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(folder), config],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    read: dict[str, Any] = json.loads(done.stdout)
    return read


def rows_of(folder: Path, config: str = "data") -> dict[str, list[dict[str, Any]]]:
    """The rows of a JSONL release, by split, its parts one after the other."""
    found: dict[str, list[dict[str, Any]]] = {}
    for file in sorted((folder / config).iterdir()):
        lines = file.read_text().split("\n")[:-1]
        found.setdefault(file.name.split("-")[0], []).extend(map(json.loads, lines))
    return found
