"""Many annotators at one server: exact overlap, how long a decision takes, the server's processor.

    .venv/bin/python bench/annotators.py [--clients 50] [--items 400] [--overlap 3] [--think 3.0]

Each annotator thinks for `think` seconds in the mean before a decision (exponential) and sends it
by itself, through a real session of a real server (tests/card_client.py); `--think 0` sends all
leased items at once, one sending after the other: what the server can do at most. Submit times are
from sending to the answer that it is stored. The clients run in this process: their processor time
is not in the server's.
"""

import argparse
import asyncio
import json
import os
import statistics
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

import psutil

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from card_client import CardClient, add_annotators  # noqa: E402
from lost_decisions import compare  # noqa: E402
from postgres_cluster import Cluster, missing_programs  # noqa: E402
from restartable import restartable  # noqa: E402
from study_world import make_world  # noqa: E402

from db import schema, studies  # noqa: E402
from db.store import open_store  # noqa: E402


def measure(
    url: str, home: Path, *, clients: int, items: int, overlap: int, think: float
) -> dict[str, object]:
    """One engine."""
    store = open_store(url)
    schema.upgrade(store)
    run_id = make_world(store, items)
    with store.write() as session:
        study_id = studies.create_study(session, run_id=run_id, items=items, overlap=overlap).id
        session.commit()
    people = add_annotators(store, clients)
    with restartable(home, url) as server:
        desks = [
            CardClient(server.url, study_id, name, cookie, seed=number)
            for number, (name, cookie) in enumerate(people)
        ]

        assert server.process is not None
        process = psutil.Process(server.process.pid)
        seconds, processor = asyncio.run(work(desks, think, process))
    found = compare(store, study_id, desks, overlap)
    store.close()
    times = [1000 * one for desk in desks for one in desk.answer_seconds]
    cut = statistics.quantiles(times, n=20)
    return asdict(found) | {
        "seconds": round(seconds, 1),
        "decisions_per_second": round(found.decided / seconds, 1),
        "submit_p50_ms": round(cut[9], 1),
        "submit_p95_ms": round(cut[18], 1),
        "sendings": len(times),
        "server_cpu_seconds": round(processor, 1),
        "server_cpu_share": round(processor / seconds, 2),
        "server_cpu_ms_per_sending": round(1000 * processor / len(times), 1),
    }


async def work(
    desks: list[CardClient], think: float, process: psutil.Process
) -> tuple[float, float]:
    """Let all work to the end. Returns seconds, and the server's processor seconds, from the moment
    when everybody's first page was drawn."""
    start = asyncio.Barrier(len(desks) + 1)
    working = asyncio.gather(*(desk.work(think_seconds=think, start=start) for desk in desks))
    await start.wait()
    before, started = sum(process.cpu_times()[:2]), time.monotonic()
    await working
    return time.monotonic() - started, sum(process.cpu_times()[:2]) - before


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clients", type=int, default=50)
    parser.add_argument("--items", type=int, default=400)
    parser.add_argument("--overlap", type=int, default=3)
    parser.add_argument("--think", type=float, default=3.0)
    given = vars(parser.parse_args())
    found: dict[str, object] = {}
    with tempfile.TemporaryDirectory() as folder:
        os.environ["INF_HOME"] = f"{folder}/sqlite"
        found["sqlite"] = measure(f"sqlite:///{folder}/inf.db", Path(folder) / "sqlite", **given)
        if missing_programs() is None:
            os.environ["INF_HOME"] = f"{folder}/postgresql"
            with Cluster() as cluster:
                home = Path(folder) / "postgresql"
                found["postgresql"] = measure(cluster.create(), home, **given)
    sys.stdout.write(json.dumps(given | found, indent=2) + "\n")


if __name__ == "__main__":
    main()
