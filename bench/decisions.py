"""Nothing that a person decides is lost: a killed server and a cut network under many annotators.

    .venv/bin/python bench/decisions.py [--decisions 10000] [--clients 8] [--kills 20] [--engine E]

On SQLite and on PostgreSQL: `clients` annotators judge one study through real sessions of a real
server (tests/card_client.py does what the judging card does, without drawing). The server is killed
with SIGKILL at random moments and started again; each sending is cut with a chance of one in
twenty, before the answer comes. At the end everything that the annotators remember is compared with
the store, text by text.
"""

import argparse
import asyncio
import time
from dataclasses import asdict
from pathlib import Path

from desks import measure_engines, opened
from lost_decisions import compare, work_through

CUT_CHANCE = 0.05


def measure(url: str, home: Path, *, decisions: int, clients: int, kills: int) -> dict[str, object]:
    """One engine; every item is judged by half of the clients."""
    overlap = max(1, clients // 2)
    items = -(-decisions // overlap)
    with opened(url, home, clients=clients, items=items, overlap=overlap) as office:
        started = time.monotonic()
        between = max(1, decisions // (2 * kills + 1)) if kills else 1
        killed = asyncio.run(
            work_through(
                office.server,
                office.desks,
                kills=kills,
                cut_chance=CUT_CHANCE,
                seed=0,
                least_between=between,
            )
        )
        seconds = time.monotonic() - started
        found = compare(office.store, office.study_id, office.desks, overlap)
    return asdict(found) | {
        "killed": killed,
        "connections": sum(desk.connections for desk in office.desks),
        "cut": sum(desk.cuts for desk in office.desks),
        "broken": sum(desk.breaks for desk in office.desks),
        "seconds": round(seconds, 1),
    }


if __name__ == "__main__":
    about = argparse.ArgumentParser(description=__doc__)
    measure_engines(about, measure, decisions=10_000, clients=8, kills=20)
