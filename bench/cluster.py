"""Several workers on one run, on PostgreSQL, with prices, a budget and limits per minute.

    .venv/bin/python bench/cluster.py [--workers 1 2 4 8] [--pairs 2000] [--concurrency 32]
        [--budget-share 2.0] [--rpm N] [--tpm N] [--latency 0] [--growing] [--beats 1 50 400]
        [--json FILE]

One server (tests/openai_server.py) in a process of its own, one private cluster (its log is not
flushed to disk: a commit's time is that of the database's work and locks). For each number of
workers a new database and run; 8 calls a pair, none of them known. CPU, log and lock waits are of
the span between 20 % and 80 % of the calls, counted by the server: workers by their processes, the
database by all of its. Lock waits: how often a session of a worker was seen to wait for a lock,
of all looks at one, 20 a second. `--budget-share`: of what the run costs; below 1 it ends the run.
`--growing`: one run of all pairs, whose workers become more: each number of them has an equal part
of the calls; CPU, log and lock waits are of the middle of that part, commits and claims of the
whole run, `commit_p99_of_span` of that part as far as its workers have written it. `--beats`: what
a worker's heartbeat costs in a run of so many, for bench/scale.py.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path[:1] = [str(ROOT / "tests"), str(ROOT)]  # not this folder: it has a curation.py, too

import psutil  # noqa: E402
import psycopg  # noqa: E402
from postgres_cluster import Cluster  # noqa: E402
from sqlalchemy import select, text  # noqa: E402

from bench.curation import CALLS_PER_PAIR, counts, engine, prepare, server  # noqa: E402
from db.run.runs import get_run  # noqa: E402
from db.run.workers import COMMIT_MS, add_worker, beat_worker, lease_share  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402
from db.tables import Job, Run, RunWorker  # noqa: E402

LOOK_SECONDS = 0.05
BEATS = 500
TICKS = os.sysconf("SC_CLK_TCK")
PRICES = '["small"]\ninput = 1.0\noutput = 10.0\n'
USD_PER_CALL = 0.00052  # about, of the test server's answers at these prices
WAITS = (
    "SELECT count(*) FILTER (WHERE wait_event_type = 'Lock'),"
    " count(*) FILTER (WHERE state <> 'idle'), count(*) FROM pg_stat_activity"
    " WHERE datname = current_database() AND backend_type = 'client backend'"
    " AND pid <> pg_backend_pid()"
)
LOG = (
    "SELECT pg_current_wal_lsn() - '0/0'::pg_lsn, xact_commit FROM pg_stat_database"
    " WHERE datname = current_database()"
)


@dataclass
class Figures:
    """What some workers did together; CPU, log and transactions per call, waits in ms."""

    workers: int
    calls: int
    seconds: float
    calls_per_second: float
    worker_cpu_ms: float
    database_cpu_ms: float
    wal_bytes: float
    transactions: float
    lock_waits: float
    lock_waits_of_busy: float
    commit_p50: int
    commit_p99: int
    claim_p50: int
    claim_p99: int
    spent_usd: float
    budget_usd: float
    status: str
    most_per_minute: float
    most_tokens_per_minute: float
    most_tokens_in_ten_seconds: float
    commit_p99_of_span: str


class Watch:
    """Looks at workers and database until `stop`: marks of calls, CPU and log, and lock waits."""

    def __init__(self, url: str, store_url: str, pids: list[int], postmaster: int) -> None:
        self._url, self._store_url = url, store_url
        self._pids, self._postmaster = pids, postmaster
        self.marks: list[tuple[int, float, float, float, int, int, int]] = []
        self.looks: list[tuple[float, int, int, int]] = []
        self._over = threading.Event()
        self._threads = [threading.Thread(target=of) for of in (self._mark, self._look)]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _mark(self) -> None:
        with psycopg.connect(_plain(self._store_url), autocommit=True) as connection:
            while not self._over.wait(0.2):
                wal, transactions = connection.execute(LOG).fetchone()
                cpu = sum(_cpu_seconds(pid) for pid in self._pids)
                database = _cpu_seconds(self._postmaster, ended=True) + sum(
                    _cpu_seconds(each.pid)
                    for each in psutil.Process(self._postmaster).children(recursive=True)
                )
                done = counts(self._url)
                now = time.monotonic()
                self.marks.append(
                    (done["answered"], now, cpu, database, int(wal), transactions, done["tokens"])
                )

    def _look(self) -> None:
        with psycopg.connect(_plain(self._store_url), autocommit=True) as connection:
            while not self._over.wait(LOOK_SECONDS):
                found = connection.execute(WAITS).fetchone()
                self.looks.append((time.monotonic(), *found))


def _plain(store_url: str) -> str:
    return store_url.replace("postgresql+psycopg", "postgresql")


def _cpu_seconds(pid: int, *, ended: bool = False) -> float:
    """A process's CPU; `ended`: with that of its children that ended. 0.0 once it is gone."""
    try:
        words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return sum(map(int, words[11 : 15 if ended else 13])) / TICKS


def most_per_minute(
    marks: list[tuple[int, float, float, float, int, int, int]], of: int, seconds: float = 10
) -> float:
    """The highest rate over any span of `seconds` of a run, per minute, of column `of`; of all of a
    shorter run."""
    rates = [
        (later[of] - first[of]) / (later[1] - first[1])
        for at, first in enumerate(marks)
        for later in marks[at:]
        if later[1] - first[1] >= seconds
    ]
    whole = (marks[-1][of] - marks[0][of]) / (marks[-1][1] - marks[0][1])
    return 60 * max(rates, default=whole)


def measure(cluster: Cluster, numbers: list[int], wanted: argparse.Namespace) -> list[Figures]:
    """A new database and run, whose workers become `numbers` in turn: what they did."""
    store_url = cluster.create(f"workers{numbers[-1]}_{time.time_ns()}")
    postmaster = int((cluster.folder / "data" / "postmaster.pid").read_text().split()[0])
    run_id = prepare(store_url, wanted.concurrency * numbers[0], wanted.pairs)
    calls = wanted.pairs * CALLS_PER_PAIR
    budget = wanted.budget_share * calls * wanted.usd_per_call
    store = open_store(store_url)
    _limit(
        store,
        run_id,
        budget_usd=budget,
        requests_per_minute=wanted.rpm,
        tokens_per_minute=wanted.tpm,
        guard=False,
    )
    with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
        connection.execute(text("VACUUM ANALYZE"))
    started: list[subprocess.Popen[bytes]] = []
    pids: list[int] = []
    spans: list[tuple[float, float]] = []
    commits = [Counter[str]()]
    with server(latency=wanted.latency) as url:
        watch = Watch(url, store_url, pids, postmaster)
        for part, workers in enumerate(numbers, 1):
            began = time.monotonic()
            _limit(store, run_id, concurrency=wanted.concurrency * workers)
            while len(started) < workers:
                started.append(engine(url, store_url, run_id))
                pids.append(started[-1].pid)
            while counts(url)["answered"] < part * calls / len(numbers) and _works(started):
                time.sleep(0.2)
            if part == len(numbers):
                codes = [one.wait() for one in started]
            spans.append((began, time.monotonic()))
            commits.append(_commits(store, run_id))
        watch.stop()
    assert not any(codes), f"workers ended with {codes}"
    with store.read() as session:
        run = get_run(session, run_id)
        spent, status = run.spent_usd, run.status
        results = [one.result for one in session.scalars(select(Job).where(Job.kind == "curate"))]
    store.close()
    waits = {
        f"{what}_{share}": max(
            ((of or {}).get(f"{what}_ms", {}).get(share, 0) for of in results), default=0
        )
        for what in ("commit", "claim")
        for share in ("p50", "p99")
    }
    of_run = {"spent_usd": round(spent, 4), "budget_usd": round(budget, 4), "status": status}
    return [
        Figures(
            workers=workers,
            **_middle(watch, *span),
            **waits,
            **of_run,
            commit_p99_of_span=_p99(after - before),
        )
        for workers, span, (before, after) in zip(numbers, spans, pairwise(commits), strict=True)
    ]


def _commits(store: Store, run_id: int) -> Counter[str]:
    """Answers of a run by within how many ms they were committed; `all`: how many there were."""
    with store.read() as session:
        of_workers = select(RunWorker.commits).where(RunWorker.run_id == run_id)
        return sum((Counter(one) for one in session.scalars(of_workers)), Counter[str]())


def _p99(commits: Counter[str]) -> str:
    """Within which of the milliseconds that workers count 99 % of these answers were committed."""
    within = [most for most in COMMIT_MS if commits[str(most)] >= 0.99 * commits["all"]]
    return f"{within[0]} ms" if within else f"over {COMMIT_MS[-1]} ms"


def _limit(store: Store, run_id: int, **limits: object) -> None:
    with store.write() as session:
        run = session.get_one(Run, run_id)
        for name, value in limits.items():
            setattr(run, name, value)
        session.commit()


def _works(started: list[subprocess.Popen[bytes]]) -> bool:
    return any(one.poll() is None for one in started)


def _middle(watch: Watch, began: float, ended: float) -> dict[str, Any]:
    """Figures per call of the middle of a span, between 20 and 80 % of its calls."""
    marks = [mark for mark in watch.marks if began <= mark[1] <= ended]
    before, total = marks[0][0], marks[-1][0] - marks[0][0]
    first = next(mark for mark in marks if mark[0] >= before + 0.2 * total)
    last = [mark for mark in marks if mark[0] <= before + 0.8 * total][-1]
    done = last[0] - first[0]
    looks = [one for one in watch.looks if first[1] <= one[0] <= last[1]]
    locked, busy, sessions = (sum(one[at] for one in looks) for at in (1, 2, 3))
    return {
        "calls": total,
        "seconds": round(ended - began, 1),
        "calls_per_second": round(done / (last[1] - first[1]), 1),
        "worker_cpu_ms": round(1000 * (last[2] - first[2]) / done, 3),
        "database_cpu_ms": round(1000 * (last[3] - first[3]) / done, 3),
        "wal_bytes": round((last[4] - first[4]) / done),
        "transactions": round((last[5] - first[5]) / done, 4),
        "lock_waits": round(locked / max(1, sessions), 4),
        "lock_waits_of_busy": round(locked / max(1, busy), 4),
        "most_per_minute": round(most_per_minute(marks, of=0)),
        "most_tokens_per_minute": round(most_per_minute(marks, of=6, seconds=60)),
        "most_tokens_in_ten_seconds": round(most_per_minute(marks, of=6) / 6),
    }


def beat(cluster: Cluster, workers: int) -> dict[str, float]:
    """CPU of the database and of a worker for one heartbeat, in a run of N workers."""
    store_url = cluster.create(f"beats{workers}_{time.time_ns()}")
    run_id = prepare(store_url, 64 * workers, 10)
    store = open_store(store_url)
    owners = [f"worker{number}" for number in range(workers)]
    with store.write() as session:
        for owner in owners:
            add_worker(session, run_id, owner)
        session.commit()
        of_backend = session.scalar(text("SELECT pg_backend_pid()"))
        spent = []
        for _ in range(3):  # the first deals out the limits
            before = _cpu_seconds(of_backend), time.thread_time()
            for number in range(max(BEATS, workers)):
                owner = owners[number % workers]
                beat_worker(
                    session, owner, in_flight=0, width=1, made=0, reused=0, failures=0, throttled=0
                )
                lease_share(session, run_id, owner, in_flight=0)
                session.commit()
            beats = max(BEATS, workers)
            after = _cpu_seconds(of_backend), time.thread_time()
            spent.append([1000 * (b - a) / beats for a, b in zip(before, after, strict=True)])
    store.close()
    database, worker = spent[-1]
    return {
        "workers": workers,
        "database_cpu_ms": round(database, 3),
        "worker_cpu_ms": round(worker, 3),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workers", type=int, nargs="*", default=[1, 2, 4, 8])
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--concurrency", type=int, default=32, help="calls in flight of a worker")
    parser.add_argument("--budget-share", type=float, default=2.0)
    parser.add_argument("--usd-per-call", type=float, default=USD_PER_CALL)
    parser.add_argument("--rpm", type=int)
    parser.add_argument("--tpm", type=int)
    parser.add_argument("--latency", type=float, default=0.0)
    parser.add_argument("--growing", action="store_true", help="one run, more and more workers")
    parser.add_argument("--beats", type=int, nargs="*", default=[])
    parser.add_argument("--json", type=Path)
    wanted = parser.parse_args()
    found, beats = [], []
    with tempfile.TemporaryDirectory() as folder, Cluster() as cluster:
        os.environ["INF_HOME"] = folder
        # the leakage check after a run: its threads spin for each other, which `chrt` makes minutes
        os.environ["OPENBLAS_NUM_THREADS"] = os.environ["OMP_NUM_THREADS"] = "1"
        (Path(folder) / "prices.toml").write_text(PRICES)
        for numbers in [wanted.workers] if wanted.growing else [[one] for one in wanted.workers]:
            for figures in measure(cluster, numbers, wanted):
                found.append(asdict(figures))
                print(json.dumps(found[-1]), flush=True)
        for workers in wanted.beats:
            beats.append(beat(cluster, workers))
            print(json.dumps(beats[-1]), flush=True)
    if wanted.json:
        options = {name: each for name, each in vars(wanted).items() if name != "json"}
        figures = {"options": options, "runs": found, "beats": beats}
        wanted.json.write_text(json.dumps(figures, indent=1) + "\n")


if __name__ == "__main__":
    main()
