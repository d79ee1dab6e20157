"""How long a release of many groups takes and how much memory, against pandas of the same rows.

    .venv/bin/python bench/release.py [--groups 1000000] [--configs default|all] [--held-out 0.1]

The groups are made here, with the paper's mean lengths (Table 1), in an SQLite store in a temporary
folder (or the empty one that INF_DATABASE_URL names). The export runs as its job does, in
a process of its own, whose peak memory is measured; then pandas reads the same rows with one query
and writes them with `to_parquet`. The limits at 1,000,000 groups are 120 s and 600 MB.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from sqlalchemy import insert

sys.path[:0] = [str(Path(__file__).parents[1] / "tests")]

from finished_run import finished_run  # noqa: E402
from slot_rows import slot_rows  # noqa: E402

from db.modules import run_module  # noqa: E402
from db.store import schema  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402
from db.tables import Group, Pair, Passage, SlotText  # noqa: E402

owners_process(True)

WORDS = [f"word{number}" for number in range(20_000)]
AT_ONCE = 5000
PANDAS = """
import sys, time, sqlite3, pandas
began = time.perf_counter()
query = '''select g.id, p.query, t1.text i0, p1.text d0, t3.text q, t2.text i,
    p2.text d1, p3.text d2 from "group" g join pair p on p.id = g.pair_id
    join group_text t1 on t1.group_id = g.id and t1.slot = 'I+'
    join group_text t2 on t2.group_id = g.id and t2.slot = 'I-'
    join group_text t3 on t3.group_id = g.id and t3.slot = 'Q-'
    join group_text s1 on s1.group_id = g.id and s1.slot = 'P+'
    join group_text s2 on s2.group_id = g.id and s2.slot = 'P1-'
    join group_text s3 on s3.group_id = g.id and s3.slot = 'P2-'
    join passage p1 on p1.id = s1.passage_id join passage p2 on p2.id = s2.passage_id
    join passage p3 on p3.id = s3.passage_id order by g.id'''
pandas.read_sql(query, sqlite3.connect(sys.argv[1])).to_parquet(sys.argv[2])
print(time.perf_counter() - began)
"""


def fill(store: Store, groups: int) -> None:
    """A dataset with one done run of `groups` kept groups."""
    chance = random.Random(0)
    with store.write() as session:
        run = finished_run(session, "bench")
        session.commit()
        made = (run.dataset_id, run.id)
    for start in range(0, groups, AT_ONCE):
        with store.write() as session:
            numbers = range(start + 1, min(start + AT_ONCE, groups) + 1)
            _add(session, numbers, *made, chance)
            session.commit()


def _add(session: Any, numbers: range, dataset_id: int, run_id: int, chance: random.Random) -> None:
    def notify(words: int) -> str:
        return " ".join(chance.choices(WORDS, k=words))

    passages, pairs, groups, texts = [], [], [], []
    for number in numbers:
        ids = [3 * number + place for place in range(3)]
        for place, passage_id in enumerate(ids):
            passages.append(
                {
                    "id": passage_id,
                    "dataset_id": dataset_id,
                    "external_id": f"p{passage_id}",
                    "title": "",
                    "text": notify(55),
                    "sha256": "",
                    "origin": "generated" if place else "seed",
                    "meta": {},
                }
            )
        query, positive = notify(8), notify(35)
        pairs.append(
            {
                "id": number,
                "dataset_id": dataset_id,
                "external_id": f"q{number}",
                "query": query,
                "passage_id": ids[0],
                "meta": {},
            }
        )
        groups.append(
            {
                "id": number,
                "run_id": run_id,
                "pair_id": number,
                "state": "done",
                "stage": "validation",
                "verdict": "kept",
                "attempt": 1,
            }
        )
        triplets = {
            "positive": (positive, query, ids[0]),
            "instruction_negative": (notify(35), query, ids[1]),
            "query_negative": (positive, notify(8), ids[2]),
        }
        texts += slot_rows(number, triplets)
    for table, rows in ((Passage, passages), (Pair, pairs), (Group, groups), (SlotText, texts)):
        session.execute(insert(table), rows)


def measure(words: list[str], environment: dict[str, str]) -> tuple[float, float, float]:
    """Seconds, seconds of CPU and peak memory in MB of a process."""
    began = time.perf_counter()
    with subprocess.Popen(words, env=environment, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        printed = child.stdout.read().decode()
        _, status, usage = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
    assert child.returncode == 0, printed
    seconds = time.perf_counter() - began
    return seconds, usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--groups", type=int, default=1_000_000)
    parser.add_argument("--configs", choices=("default", "all"), default="all")
    parser.add_argument("--format", default="parquet")
    parser.add_argument("--held-out", type=float, default=0.1)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        url = os.environ.get("INF_DATABASE_URL") or f"sqlite:///{folder}/inf.db"
        environment = os.environ | {"INF_DATABASE_URL": url, "INF_HOME": folder}
        store = open_store(url)
        schema.upgrade(store)
        fill(store, arguments.groups)
        from db.jobs import jobs

        config: dict[str, Any] = {
            "dataset": "bench",
            "out": f"{folder}/out",
            "format": arguments.format,
            "held_out": arguments.held_out,
        }
        if arguments.configs == "default":
            config["configs"] = ["default"]
        with store.write() as session:
            job_id = jobs.enqueue_job(session, "export", config).id
            jobs.claim_job(session, job_id)
            session.commit()
        seconds, cpu, memory = measure(
            [sys.executable, *run_module("app.jobs.entry"), str(job_id), "1"], environment
        )
        result = {
            "groups": arguments.groups,
            "configs": arguments.configs,
            "held_out": arguments.held_out,
            "engine": url.split(":")[0],
            "seconds": round(seconds, 1),
            "cpu_seconds": round(cpu, 1),
            "peak_memory_mb": round(memory),
            "mb": round(sum(f.stat().st_size for f in Path(folder, "out").rglob("*.*")) / 1e6),
        }
        if url.startswith("sqlite"):
            database = url.removeprefix("sqlite:///")
            seconds, cpu, memory = measure(
                [sys.executable, "-c", PANDAS, database, f"{folder}/pandas.parquet"], environment
            )
            result |= {
                "pandas_seconds": round(seconds, 1),
                "pandas_cpu_seconds": round(cpu, 1),
                "pandas_memory_mb": round(memory),
            }
        print(json.dumps(result))


if __name__ == "__main__":
    main()
