"""How fast curation calls a language-model server, next to a bare loop over the same SDK.

    .venv/bin/python bench/curation.py [--in-flight 64 256] [--calls 4000] [--rounds 3] [--postgres]
        [--answer-bytes 4096]

One server (tests/openai_server.py, 200 ms per answer) in a process of its own; against it, one
after the other: the bare `openai` SDK in a loop with the same transport and nothing stored, and the
engine with its journal on SQLite (and on a PostgreSQL cluster of its own with --postgres). The
steady rate is that between 20 % and 80 % of the calls, counted by the server; CPU is that of the
client process in the same span, memory its peak; how long the engine's answers waited until they
were a line of a file, which outlives a kill, and until their commit is what its job tells. Then: a
limit of 50 calls/s, and a kill halfway with 64 and with 256 in flight.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import psutil

from db.store.settings import owners_process

owners_process(True)

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]
LATENCY_SECONDS = 0.2
CALLS_PER_PAIR = 8


@dataclass
class Measured:
    """What one client did."""

    name: str
    in_flight: int
    per_second: float
    cpu_ms_per_call: float
    peak_mb: float
    seconds: float
    waits: dict[str, dict[str, int]]  # in ms, within which such a share of the answers was safe


@contextmanager
def server(**options: float) -> Iterator[str]:
    """A server process; its address."""
    words = [word for name, value in options.items() for word in (f"--{name}", str(value))]
    process = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "openai_server.py"), *words],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.kill()
        process.wait()


def counts(url: str) -> dict[str, int]:
    with urllib.request.urlopen(url.removesuffix("/v1") + "/counts", timeout=30) as answer:
        found: dict[str, int] = json.load(answer)
        return found


def bare_loop(url: str, in_flight: int, calls: int) -> subprocess.Popen[bytes]:
    """The SDK in a loop, as a process of its own."""
    return subprocess.Popen(
        [sys.executable, str(ROOT / "bench" / "bare_loop.py"), url, str(in_flight), str(calls)]
    )


def engine(url: str, store_url: str, run_id: int) -> subprocess.Popen[bytes]:
    """The job of a run in its process, as `inf curate` starts it."""
    from curation.run.starting import RunWork
    from db.jobs import jobs
    from db.modules import run_module
    from db.store.store import open_store

    with open_store(store_url).write() as session:
        job = jobs.enqueue_job(session, "curate", RunWork(run_id=run_id).config())
        claimed = jobs.claim_job(session, job.id)
        assert claimed is not None
        session.commit()
        place = (str(claimed.id), str(claimed.attempt))
    return subprocess.Popen(
        [sys.executable, *run_module("app.jobs.entry"), *place],
        cwd=ROOT,
        env=os.environ | {"OPENAI_BASE_URL": url, "INF_DATABASE_URL": store_url},
        stderr=subprocess.DEVNULL,
    )


def prepare(store_url: str, in_flight: int, pairs: int) -> int:
    """A migrated store with a dataset and a run."""
    from curation_runs import add_dataset

    from curation.run.starting import start_run
    from db.store import schema
    from db.store.store import open_store

    store = open_store(store_url)
    schema.upgrade(store)
    add_dataset(store, name=f"bench{time.time_ns()}", pairs=pairs, pool=50)
    with store.write() as session:
        from db.corpus.datasets import list_datasets

        dataset = max(list_datasets(session), key=lambda one: one.id).name
        run = start_run(
            session,
            dataset=dataset,
            provider="openai",
            settings=["model=small"],
            concurrency=in_flight,
        )
        session.commit()
    store.close()
    return run.id


def waits_of(store_url: str) -> dict[str, dict[str, int]]:
    """What the last job of a store reports about how long its answers waited."""
    from db.store.store import open_store
    from db.tables import Job

    with open_store(store_url).read() as session:
        job = session.query(Job).order_by(Job.id.desc()).first()
        assert job is not None and job.result is not None
        return {"line of a file": job.result["kept_ms"], "commit": job.result["commit_ms"]}


def measure(
    name: str,
    in_flight: int,
    url: str,
    calls: int,
    start: Callable[[], subprocess.Popen[bytes]],
    store_url: str | None = None,
) -> Measured:
    """Run a client in a process of its own and watch it through the server's counts."""
    before = counts(url)["answered"]
    began = time.monotonic()
    process = start()
    watched = psutil.Process(process.pid)
    marks: list[tuple[int, float, float]] = []
    peak = 0.0
    while process.poll() is None:
        try:
            cpu = watched.cpu_times()
            peak = max(peak, watched.memory_info().rss / 2**20)
        except psutil.Error:
            break
        marks.append((counts(url)["answered"] - before, time.monotonic(), cpu.user + cpu.system))
        time.sleep(0.1)
    assert process.wait() == 0, f"{name} failed"
    first = next(mark for mark in marks if mark[0] >= 0.2 * calls)
    last = [mark for mark in marks if mark[0] <= 0.8 * calls][-1]
    done = last[0] - first[0]
    return Measured(
        name,
        in_flight,
        done / (last[1] - first[1]),
        1000 * (last[2] - first[2]) / done,
        peak,
        time.monotonic() - began,
        {} if store_url is None else waits_of(store_url),
    )


def show(found: Measured, baseline: float | None = None) -> None:
    share = "" if baseline is None else f"  {found.per_second / baseline:5.2f} of the bare loop"
    print(
        f"{found.name:<18} {found.in_flight:>4} in flight  {found.per_second:7.1f} calls/s  "
        f"{found.cpu_ms_per_call:5.2f} ms CPU/call  {found.peak_mb:5.0f} MB{share}",
        flush=True,
    )
    from curation.run.journal import SHARES

    for end, waited in found.waits.items():
        times = ", ".join(f"{name} {waited[name]}" for name in SHARES)
        print(f"{'':<18} ms from an answer to its {end}: {times}", flush=True)


def side_by_side(
    in_flight: int, calls: int, stores: dict[str, str], answer_bytes: int
) -> list[Measured]:
    """The bare loop and the engine on each store, one after the other on one server."""
    every = []
    options = {"latency": LATENCY_SECONDS, "thinking-bytes": answer_bytes}
    with server(**options) as url:
        bare = measure(
            "bare SDK loop", in_flight, url, calls, lambda: bare_loop(url, in_flight, calls)
        )
        show(bare)
        every.append(bare)
        for name, store_url in stores.items():
            run_id = prepare(store_url, in_flight, calls // CALLS_PER_PAIR)
            start = partial(engine, url, store_url, run_id)
            found = measure(name, in_flight, url, calls, start, store_url)
            show(found, bare.per_second)
            every.append(found)
    return every


def show_medians(rounds: list[list[Measured]]) -> None:
    """Each client's median over the rounds, next to that of the bare loop."""
    bare, *others = (
        statistics.median(one.per_second for one in each) for each in zip(*rounds, strict=True)
    )
    for found, rate in zip(rounds[0][1:], others, strict=True):
        print(
            f"{found.name:<18} {found.in_flight:>4} in flight: median of {len(rounds)} rounds "
            f"{rate:.0f} calls/s, {rate / bare:.2f} of the bare loop's {bare:.0f}",
            flush=True,
        )


def limited(store_url: str, calls: int = 600, per_second: int = 50) -> None:
    """A server that refuses more than a number of calls per second."""
    with server(latency=LATENCY_SECONDS, **{"per-second": per_second}) as url:
        run_id = prepare(store_url, 64, calls // CALLS_PER_PAIR)
        process = engine(url, store_url, run_id)
        while counts(url)["answered"] == 0:
            time.sleep(0.02)
        began = time.monotonic()
        while counts(url)["answered"] < calls and process.poll() is None:
            time.sleep(0.05)
        seconds = time.monotonic() - began
        process.wait()
        lost = calls - counts(url)["answered"]
    ideal = calls / per_second
    print(
        f"limit of {per_second}/s: {calls} calls in {seconds:.1f} s, "
        f"{seconds / ideal:.2f} of the ideal {ideal:.1f} s; {lost} lost",
        flush=True,
    )


def killed(store_url: str, in_flight: int, calls: int = 2000) -> None:
    """SIGKILL at half, then the run goes on."""
    with server(latency=LATENCY_SECONDS) as url:
        run_id = prepare(store_url, in_flight, calls // CALLS_PER_PAIR)
        process = engine(url, store_url, run_id)
        while counts(url)["answered"] < calls // 2:
            time.sleep(0.02)
        process.kill()
        process.wait()
        engine(url, store_url, run_id).wait()
        found = counts(url)
    different = found["answered"] - found["repeated"]
    print(
        f"killed at half with {in_flight} in flight: {found['repeated']} of {calls} repeated, "
        f"{calls - different} missing",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--in-flight", type=int, nargs="+", default=[64, 256])
    parser.add_argument("--calls", type=int, default=4000)
    parser.add_argument("--rounds", type=int, default=1, help="of the speed, each in turn")
    parser.add_argument(
        "--answer-bytes", type=int, default=0, help="reasoning before each answer, parsed away"
    )
    parser.add_argument("--postgres", action="store_true")
    parser.add_argument("--only", choices=["speed", "limit", "kill"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["INF_HOME"] = folder
        cluster = None
        if arguments.postgres:
            from postgres_cluster import Cluster

            cluster = Cluster()
            cluster.__enter__()

        def stores(name: str) -> dict[str, str]:
            """New stores: an answer that is journaled is never asked for again."""
            found = {"engine, SQLite": f"sqlite:///{folder}/{name}.db"}
            if cluster is not None:
                found["engine, PostgreSQL"] = cluster.create(name)
            return found

        try:
            if arguments.only in (None, "speed"):
                for in_flight in arguments.in_flight:
                    rounds = [
                        side_by_side(
                            in_flight,
                            arguments.calls,
                            stores(f"{in_flight}_{number}"),
                            arguments.answer_bytes,
                        )
                        for number in range(arguments.rounds)
                    ]
                    if len(rounds) > 1:
                        show_medians(rounds)
            if arguments.only in (None, "limit"):
                limited(stores("limit")["engine, SQLite"])
            if arguments.only in (None, "kill"):
                for in_flight in arguments.in_flight:
                    for name, store_url in stores(f"kill{in_flight}").items():
                        print(name, end=" ")
                        killed(store_url, in_flight)
        finally:
            if cluster is not None:
                cluster.__exit__(None, None, None)


if __name__ == "__main__":
    main()
