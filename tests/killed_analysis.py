"""Analyses of small parts that are killed after some time, as a program that forks one a line.

    python tests/killed_analysis.py < LINES

A line is a JSON object of `url`, `what` and `config` (as of `grown_dataset.run_job`), and `seconds`
after which the process is killed by SIGKILL, null for never; each is answered with its exit status.
"""

import json
import os
import signal
import sys
import threading
from typing import Any

import numpy as np
from grown_dataset import run_job
from killed_purge import in_a_fork
from sqlalchemy.orm import configure_mappers

from analysis.map import projection
from analysis.text import near_duplicates
from db.store.settings import owners_process
from db.store.store import open_store

# numba's pool of GNU OpenMP ends a process that forks
os.environ["NUMBA_THREADING_LAYER"] = "workqueue"
near_duplicates.KEPT = 150
projection.PLACED = 60


def killed_after(wanted: dict[str, Any]) -> None:
    """Do the analysis in this process, which is killed meanwhile."""
    owners_process(True)
    if wanted["seconds"] is not None:
        kill = os.kill, (os.getpid(), signal.SIGKILL)
        threading.Timer(wanted["seconds"], *kill).start()
    run_job(open_store(wanted["url"]), wanted["what"], **wanted["config"])


if __name__ == "__main__":
    configure_mappers()  # once, not in each fork
    some = np.random.default_rng(0).standard_normal((40, 8)).astype(np.float32)
    some /= np.linalg.norm(some, axis=1, keepdims=True)
    projection.place(some[20:], some[:20], projection.project(some[:20]))  # numba compiles
    for line in sys.stdin:
        sys.stdout.write(f"{in_a_fork(killed_after, json.loads(line))}\n")
        sys.stdout.flush()
