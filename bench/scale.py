"""A simulation of many nodes on one store, calibrated with the figures of bench/cluster.py.

    .venv/bin/python bench/scale.py [--cluster bench/cluster.json] [--nodes 1 2 5 10 20 50 100]
        [--pairs 10000000] [--workers-per-node 8] [--in-flight 64] [--answer-seconds 2]
        [--database-cores 16] [--flush-ms 2] [--model-calls-per-second N] [--node-days 30]
        [--json FILE]

Events: an answer comes from a model server (log-normal, as its queue allows), waits for its
worker's journal, is committed with all others that have come (two transactions: answers, and what
else a worker writes), and costs its worker CPU until the next call of its place is sent. The
database is `--database-cores` servers with one queue and a log with one flush at a time, which
takes all commits that wait. Each worker has a heartbeat a second. From the figures of
bench/cluster.py: CPU of a worker per call, of the database per call and per transaction (least
squares over its runs) and per heartbeat, bytes of log per call. What is assumed and what is left
out is in docs/scale.md.
"""

import argparse
import heapq
import json
import math
import random
from collections import deque
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np

MEASURED = Path(__file__).with_name("cluster.json")
CALLS_PER_PAIR = 8
PAUSE_SECONDS = 0.01  # curation/run/journal.py
TRANSACTIONS = 2  # of a worker's round: answers, then what else is to be written
WARM_UP_SECONDS, SECONDS = 10.0, 30.0
BEAT_SECONDS = 1.0  # curation/run/engine.py
ROUND_TRIP_SECONDS = 0.0005
SPREAD = 0.6  # of the logarithm of a model server's time


@dataclass(frozen=True)
class Costs:
    """Seconds of CPU per call and per transaction, and bytes of log per call, as measured."""

    worker: float
    database_per_call: float
    database_per_transaction: float
    log_bytes: float
    beat: float
    beat_per_worker: float  # each reads what the others hold

    @classmethod
    def measured(cls, figures: dict[str, list[dict[str, float]]]) -> "Costs":
        """Of bench/cluster.py's figures; the worker's CPU is that where it was highest."""
        runs, beats = figures["runs"], figures["beats"]
        transactions = np.array([one["transactions"] for one in runs])
        cpu = np.array([one["database_cpu_ms"] for one in runs]) / 1000
        design = np.column_stack([np.ones_like(transactions), transactions])
        fitted, *_ = np.linalg.lstsq(design, cpu, rcond=None)
        per_call, per_transaction = (max(0.0, float(one)) for one in fitted)
        workers = [one["workers"] for one in beats]
        slope, intercept = np.polyfit(workers, [one["database_cpu_ms"] / 1000 for one in beats], 1)
        return cls(
            worker=max(one["worker_cpu_ms"] for one in runs) / 1000,
            database_per_call=per_call,
            database_per_transaction=per_transaction,
            log_bytes=max(one["wal_bytes"] for one in runs),
            beat=float(intercept),
            beat_per_worker=float(slope),
        )


@dataclass(frozen=True)
class Fleet:
    """Who works with what: `answer_seconds` is the mean time of a model server without a queue."""

    nodes: int
    workers_per_node: int = 8
    in_flight: int = 64
    answer_seconds: float = 2.0
    database_cores: int = 16
    flush_seconds: float = 0.002
    model_calls_per_second: float = math.inf

    @property
    def workers(self) -> int:
        """Of all nodes."""
        return self.nodes * self.workers_per_node


@dataclass
class Found:
    """What the simulated seconds showed; counts of answers are means over time."""

    nodes: int
    calls_per_second: float
    database_busy: float
    log_mb_per_second: float
    commit_p50_ms: float
    commit_p99_ms: float
    answers_per_commit: float
    uncommitted_of_a_node: float
    in_flight_of_a_node: float


@dataclass
class _Worker:
    waiting: list[float] = field(default_factory=list)  # when each answer came
    is_committing: bool = False
    cpu_free_at: float = 0.0


class Simulation:
    """Events in the order of their time; `run` gives what happened after a warm-up."""

    def __init__(self, fleet: Fleet, costs: Costs, seed: int = 0) -> None:
        self.fleet, self.costs = fleet, costs
        self._random = random.Random(seed)
        self._now = 0.0
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._number = 0
        self._workers = [_Worker() for _ in range(fleet.workers)]
        self._database: deque[tuple[float, Callable[[], None]]] = deque()
        self._database_free = fleet.database_cores
        self._to_flush: list[Callable[[], None]] = []
        self._is_flushing = False
        self._model_free_at = 0.0
        self._busy = self._uncommitted = self._changed_at = 0.0
        self._held = 0
        self._waits: list[float] = []
        self._batches: list[int] = []
        self._mean = math.log(fleet.answer_seconds) - SPREAD**2 / 2

    def run(self) -> Found:
        """All places of all workers, for WARM_UP_SECONDS and then SECONDS that count."""
        for worker in self._workers:
            for _ in range(self.fleet.in_flight):
                self._ask(worker, self._random.uniform(0, self.fleet.answer_seconds))
            self._at(self._random.uniform(0, BEAT_SECONDS), self._beat)
        until = WARM_UP_SECONDS + SECONDS
        while self._events and self._events[0][0] < until:
            self._now, _, then = heapq.heappop(self._events)
            then()
        done = len(self._waits)
        waits = sorted(self._waits) or [math.nan]
        fleet = self.fleet
        uncommitted = self._uncommitted / SECONDS / fleet.nodes
        return Found(
            nodes=fleet.nodes,
            calls_per_second=done / SECONDS,
            database_busy=self._busy / SECONDS / fleet.database_cores,
            log_mb_per_second=done / SECONDS * self.costs.log_bytes / 1e6,
            commit_p50_ms=1000 * waits[len(waits) // 2],
            commit_p99_ms=1000 * waits[int(0.99 * len(waits))],
            answers_per_commit=done / max(1, len(self._batches)),
            uncommitted_of_a_node=uncommitted,
            in_flight_of_a_node=fleet.workers_per_node * fleet.in_flight - uncommitted,
        )

    def _at(self, time: float, then: Callable[[], None]) -> None:
        self._number += 1
        heapq.heappush(self._events, (time, self._number, then))

    def _hold(self, answers: int) -> None:
        """More or fewer answers wait for their commit: their number times the time it was so."""
        since = max(self._changed_at, WARM_UP_SECONDS)
        if self._now > since:
            self._uncommitted += self._held * (self._now - since)
        self._held += answers
        self._changed_at = self._now

    def _ask(self, worker: _Worker, at: float) -> None:
        """A call leaves at this time and its answer comes, later where the servers are full."""
        begins = max(at, self._model_free_at)
        if math.isfinite(self.fleet.model_calls_per_second):
            self._model_free_at = begins + 1 / self.fleet.model_calls_per_second
        seconds = self._random.lognormvariate(self._mean, SPREAD)
        self._at(begins + seconds, lambda: self._answered(worker))

    def _answered(self, worker: _Worker) -> None:
        worker.waiting.append(self._now)
        self._hold(1)
        if not worker.is_committing:
            worker.is_committing = True
            self._at(self._now + PAUSE_SECONDS, lambda: self._commit(worker))

    def _commit(self, worker: _Worker) -> None:
        came, worker.waiting = worker.waiting, []
        if not came:
            worker.is_committing = False
            return
        costs = self.costs
        seconds = (
            len(came) * costs.database_per_call + TRANSACTIONS * costs.database_per_transaction
        )

        def begin() -> None:
            self._in_database(seconds, lambda: self._flush(lambda: self._committed(worker, came)))

        self._at(self._now + ROUND_TRIP_SECONDS, begin)

    def _committed(self, worker: _Worker, came: list[float]) -> None:
        self._hold(-len(came))
        if self._now >= WARM_UP_SECONDS:
            self._waits += [self._now - each for each in came]
            self._batches.append(len(came))
        for _ in came:
            worker.cpu_free_at = max(self._now, worker.cpu_free_at) + self.costs.worker
            self._ask(worker, worker.cpu_free_at)
        self._at(self._now + PAUSE_SECONDS, lambda: self._commit(worker))

    def _beat(self) -> None:
        seconds = self.costs.beat + self.costs.beat_per_worker * len(self._workers)
        self._in_database(seconds, lambda: self._flush(lambda: None))
        self._at(self._now + BEAT_SECONDS, self._beat)

    def _in_database(self, seconds: float, then: Callable[[], None]) -> None:
        if not self._database_free:
            self._database.append((seconds, then))
            return
        self._database_free -= 1
        if self._now >= WARM_UP_SECONDS:
            self._busy += seconds

        def done() -> None:
            self._database_free += 1
            then()
            if self._database:
                self._in_database(*self._database.popleft())

        self._at(self._now + seconds, done)

    def _flush(self, then: Callable[[], None]) -> None:
        """One flush at a time; those that come meanwhile share the next."""
        self._to_flush.append(then)
        if not self._is_flushing:
            self._is_flushing = True
            self._at(self._now + self.fleet.flush_seconds, self._flushed(self._taken()))

    def _taken(self) -> list[Callable[[], None]]:
        taken, self._to_flush = self._to_flush, []
        return taken

    def _flushed(self, taken: list[Callable[[], None]]) -> Callable[[], None]:
        def done() -> None:
            for then in taken:
                then()
            if self._to_flush:
                self._at(self._now + self.fleet.flush_seconds, self._flushed(self._taken()))
            else:
                self._is_flushing = False

        return done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--cluster", type=Path, default=MEASURED)
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 5, 10, 20, 50, 100])
    parser.add_argument("--pairs", type=int, default=10_000_000)
    parser.add_argument("--workers-per-node", type=int, default=8)
    parser.add_argument("--in-flight", type=int, default=64)
    parser.add_argument("--answer-seconds", type=float, default=2.0)
    parser.add_argument("--database-cores", type=int, default=16)
    parser.add_argument("--flush-ms", type=float, default=2.0)
    parser.add_argument("--model-calls-per-second", type=float, default=math.inf)
    parser.add_argument("--node-days", type=float, default=30.0)
    parser.add_argument("--json", type=Path)
    wanted = parser.parse_args()
    costs = Costs.measured(json.loads(wanted.cluster.read_text()))
    print(json.dumps({"costs": asdict(costs)}))
    found = []
    for nodes in wanted.nodes:
        fleet = Fleet(
            nodes,
            wanted.workers_per_node,
            wanted.in_flight,
            wanted.answer_seconds,
            wanted.database_cores,
            wanted.flush_ms / 1000,
            wanted.model_calls_per_second,
        )
        shown = asdict(Simulation(fleet, costs).run())
        hours = wanted.pairs * CALLS_PER_PAIR / shown["calls_per_second"] / 3600
        deaths = nodes * hours / 24 / wanted.node_days
        shown |= {"hours": hours, "node_deaths": deaths}
        shown["lost_answers"] = deaths * shown["uncommitted_of_a_node"]
        shown["calls_in_flight_lost"] = deaths * shown["in_flight_of_a_node"]
        found.append({name: round(each, 3) for name, each in shown.items()})
        print(json.dumps(found[-1]), flush=True)
    if wanted.json:
        wanted.json.write_text(json.dumps({"costs": asdict(costs), "fleets": found}, indent=1))


if __name__ == "__main__":
    main()
