"""Many annotators at one server: exact overlap, how long a decision takes, the server's CPU.

    .venv/bin/python bench/annotators.py [--clients 50] [--items 400] [--overlap 3] [--think 3.0]
        [--engine sqlite|postgresql]

Each annotator thinks for `think` seconds in the mean before a decision (exponential) and sends it
by itself, through a real session of a real server (tests/card_client.py); `--think 0` sends all
leased items at once, one sending after the other: what the server can do at most. Submit times are
from sending to the answer that it is stored. The clients run in this process: their processor time
is not in the server's. `server_mb` is the server's memory when everybody's first page is drawn: the
difference between two numbers of clients is what a session takes.
"""

import argparse
import asyncio
import statistics
import time
from dataclasses import asdict
from pathlib import Path

import psutil
from desks import Office, measure_engines, opened
from lost_decisions import compare


def measure(
    url: str, home: Path, *, clients: int, items: int, overlap: int, think: float
) -> dict[str, object]:
    """One engine."""
    with opened(url, home, clients=clients, items=items, overlap=overlap) as office:
        assert office.server.process is not None
        process = psutil.Process(office.server.process.pid)
        seconds, processor, memory = asyncio.run(work(office, think, process))
        found = compare(office.store, office.study_id, office.desks, overlap)
    times = [1000 * one for desk in office.desks for one in desk.answer_seconds]
    cut = statistics.quantiles(times, n=20)
    return asdict(found) | {
        "seconds": round(seconds, 1),
        "decisions_per_second": round(found.decided / seconds, 1),
        "submit_p50_ms": round(cut[9], 1),
        "submit_p95_ms": round(cut[18], 1),
        "sendings": len(times),
        "server_mb": round(memory / 1024**2, 1),
        "server_cpu_seconds": round(processor, 1),
        "server_cpu_share": round(processor / seconds, 2),
        "server_cpu_ms_per_sending": round(1000 * processor / len(times), 1),
    }


async def work(office: Office, think: float, process: psutil.Process) -> tuple[float, float, int]:
    """Let all work to the end. Returns seconds, and the server's CPU seconds, from the moment
    when everybody's first page was drawn, and the server's memory at that moment, in bytes."""
    start = asyncio.Barrier(len(office.desks) + 1)
    working = asyncio.gather(
        *(desk.work(think_seconds=think, start=start) for desk in office.desks)
    )
    await start.wait()
    memory = process.memory_info().rss
    before, started = sum(process.cpu_times()[:2]), time.monotonic()
    await working
    return time.monotonic() - started, sum(process.cpu_times()[:2]) - before, memory


if __name__ == "__main__":
    about = argparse.ArgumentParser(description=__doc__)
    measure_engines(about, measure, clients=50, items=400, overlap=3, think=3.0)
