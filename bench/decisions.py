"""Nothing that a person decides is lost: a killed server and a cut network under many annotators.

    .venv/bin/python bench/decisions.py [--decisions 10000] [--clients 8] [--kills 20]

On SQLite and on PostgreSQL: `clients` annotators judge one study through real sessions of a real
server (tests/card_client.py does what the judging card does, without drawing). The server is killed
with SIGKILL at random moments and started again; each sending is cut with a chance of one in
twenty, before the answer comes. At the end everything that the annotators remember is compared with
the store, text by text.
"""

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from dataclasses import asdict
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from card_client import CardClient, add_annotators  # noqa: E402
from lost_decisions import compare, work_through  # noqa: E402
from postgres_cluster import Cluster, missing_programs  # noqa: E402
from restartable import restartable  # noqa: E402
from study_world import make_world  # noqa: E402

from db import schema, studies  # noqa: E402
from db.store import open_store  # noqa: E402

CUT_CHANCE = 0.05


def measure(url: str, home: Path, *, decisions: int, clients: int, kills: int) -> dict[str, object]:
    """One engine; every item is judged by half of the clients."""
    overlap = max(1, clients // 2)
    items = -(-decisions // overlap)
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
        started = time.monotonic()
        between = max(1, decisions // (2 * kills + 1)) if kills else 1
        killed = asyncio.run(
            work_through(
                server,
                desks,
                kills=kills,
                cut_chance=CUT_CHANCE,
                seed=0,
                least_between=between,
            )
        )
        seconds = time.monotonic() - started
    found = compare(store, study_id, desks, overlap)
    store.close()
    return asdict(found) | {
        "killed": killed,
        "connections": sum(desk.connections for desk in desks),
        "cut": sum(desk.cuts for desk in desks),
        "broken": sum(desk.breaks for desk in desks),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--decisions", type=int, default=10_000)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--kills", type=int, default=20)
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
