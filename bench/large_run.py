"""A run over very many pairs: memory of one process, time of a claim, pages of groups.

    .venv/bin/python bench/large_run.py [--pairs 500000] [--groups 100000] [--seconds 60]

Memory: `inf runs join` on a generated dataset, 64 calls in flight against the test server
(200 ms an answer) for a while; the peak of its resident memory. Claims: 128 groups leased at the
start of the run and when all but 1 % are done, the median of 20. Pages: 50 of 100,000 groups as the
Groups page asks for them, with each filter, the median of 5; the limit to stay under is 300 ms.
Claims and pages on SQLite and, where its programs are installed, on PostgreSQL.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

import psutil  # noqa: E402
from postgres_cluster import Cluster, missing_programs  # noqa: E402
from slot_rows import slot_rows  # noqa: E402
from sqlalchemy import insert, text, update  # noqa: E402

from db.modules import run_module  # noqa: E402
from db.review.queue import QueueFilter, listed_groups  # noqa: E402
from db.run.group_queue import claim_groups, release_groups  # noqa: E402
from db.run.runs import funnel  # noqa: E402
from db.shape import INF_IR  # noqa: E402
from db.store import schema  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402
from db.tables import Dataset, Group, Pair, Passage, SlotText  # noqa: E402

owners_process(True)

CHUNK = 20_000
CLAIMED = 128


def fill(store: Store, pairs: int) -> int:
    """A dataset of `pairs` pairs with passages of about 400 characters; its id."""
    with store.write() as session:
        dataset = Dataset(name="large")
        session.add(dataset)
        session.flush()
        for start in range(0, pairs, CHUNK):
            numbers = range(start, min(pairs, start + CHUNK))
            session.execute(
                insert(Passage),
                [
                    {
                        "id": number + 1,
                        "dataset_id": dataset.id,
                        "external_id": f"p{number}",
                        "text": f"Passage {number} reports what is known of subject {number}. "
                        + f"It was written down in year {number % 2000} by hand {number % 97}. "
                        * 7,
                        "sha256": f"{number:064x}",
                        "origin": "seed",
                        "meta": {},
                    }
                    for number in numbers
                ],
            )
            session.execute(
                insert(Pair),
                [
                    {
                        "dataset_id": dataset.id,
                        "external_id": f"q{number}",
                        "query": f"what is known of subject {number}",
                        "passage_id": number + 1,
                        "meta": {},
                    }
                    for number in numbers
                ],
            )
        session.commit()
        return dataset.id


def start(store: Store, limit: int | None = None) -> int:
    """A run over all pairs, or the first `limit`; its id."""
    with store.write() as session:
        from curation.run.starting import start_run

        run = start_run(
            session,
            dataset="large",
            provider="openai",
            settings=["model=small"],
            concurrency=64,
            limit=limit,
        )
        session.commit()
        return run.id


def measure_memory(store: Store, run_id: int, seconds: float) -> None:
    """A worker for a while: its peak memory and what it got done."""
    server = subprocess.Popen(
        [sys.executable, str(ROOT / "tests" / "openai_server.py"), "--latency", "0.2"],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert server.stdout is not None
    os.environ["OPENAI_BASE_URL"] = server.stdout.readline().strip()
    command = [sys.executable, *run_module("app.cli.main"), "curate", "--worker", str(run_id)]
    worker = subprocess.Popen(command, env=os.environ, stdout=subprocess.DEVNULL)
    peak, until = 0.0, time.monotonic() + seconds
    try:
        while time.monotonic() < until and worker.poll() is None:
            for child in psutil.Process(worker.pid).children(recursive=True):
                try:
                    peak = max(peak, child.memory_info().rss / 2**20)
                except psutil.Error:
                    continue
            time.sleep(0.2)
    finally:
        worker.terminate()
        worker.wait()
        server.terminate()
    with store.read() as session:
        counted = funnel(session, run_id)
    print(
        f"one worker on a run of {counted.pairs:,} pairs: {peak:.0f} MB at its peak, "
        f"{counted.finished:,} groups finished in {seconds:.0f} s",
        flush=True,
    )


def measure_claims(store: Store, run_id: int, name: str) -> None:
    """The time of a claim while the run is new, and when it is nearly done."""

    def median_ms() -> float:
        found = []
        for _ in range(20):
            with store.write() as session:
                began = time.perf_counter()
                claimed = claim_groups(session, run_id, "bench", CLAIMED)
                session.commit()
                found.append(1000 * (time.perf_counter() - began))
                assert len(claimed) == CLAIMED
                release_groups(session, run_id, ["bench"])
                session.commit()
        return statistics.median(found)

    new = median_ms()
    with store.write() as session:
        groups = Group.__table__
        last = session.scalar(
            text('SELECT max(id) FROM "group" WHERE run_id = :run'), {"run": run_id}
        )
        first = session.scalar(
            text('SELECT min(id) FROM "group" WHERE run_id = :run'), {"run": run_id}
        )
        session.execute(
            update(groups)
            .where(
                groups.c.run_id == run_id,
                groups.c.state != "done",
                groups.c.id < last - (last - first) // 100,
            )
            .values(state="done", verdict="kept")
        )
        session.commit()
    print(
        f"claim of {CLAIMED} groups, {name}: {new:.1f} ms in a new run, "
        f"{median_ms():.1f} ms with 99 % done",
        flush=True,
    )


def finish(store: Store, run_id: int) -> None:
    """Give every group of a run a verdict and its triplets."""
    with store.write() as session:
        rows = session.execute(
            text('SELECT id, pair_id FROM "group" WHERE run_id = :run ORDER BY id'), {"run": run_id}
        ).all()
        for at in range(0, len(rows), CHUNK):
            texts = []
            for group_id, pair_id in rows[at : at + CHUNK]:
                triplets = {
                    role: (
                        f"I only want what hand {group_id % 97} wrote, not {role}",
                        f"what is known of subject {pair_id}",
                        pair_id,
                    )
                    for role in INF_IR.roles
                }
                texts += slot_rows(group_id, triplets)
            session.execute(insert(SlotText), texts)
        session.execute(
            text(
                "UPDATE \"group\" SET state = 'done', stage = 'validation', "
                "verdict = CASE WHEN id % 3 = 0 THEN 'dropped' ELSE 'kept' END, "
                "drop_reason = CASE WHEN id % 3 = 0 THEN 'judge_none' END WHERE run_id = :run"
            ),
            {"run": run_id},
        )
        session.commit()


def measure_pages(store: Store, run_id: int, name: str) -> None:
    """The Groups page's questions."""
    questions: dict[str, dict[str, object]] = {
        "first page": {},
        "last page": {"offset": None},
        "kept": {"verdict": "kept"},
        "one reason": {"verdict": "dropped", "reason": "judge_none"},
        "one stage": {"stage": "validation"},
        "one source": {"source": "large"},
        "not reviewed": {"review": "none"},
        "search, many hits": {"search": "hand 7"},
        "search, one hit": {"search": "subject 77777"},
        "search, no hit": {"search": "no such words"},
    }
    with store.read() as session:

        def page(*, offset: int = 0, **words: object) -> int:
            wanted = QueueFilter.read({"run_id": run_id, **words})
            return listed_groups(
                session, wanted, viewer=None, blind=False, offset=offset, limit=50
            ).total

        total = page()
        for what, words in questions.items():
            if "offset" in words:
                words = {"offset": total - 50}

            def ask(words: dict[str, object] = words) -> None:
                page(**words)  # type: ignore[arg-type]

            ask()
            times = []
            for _ in range(5):
                began = time.perf_counter()
                ask()
                times.append(1000 * (time.perf_counter() - began))
            print(
                f"page of {total:,} groups, {name}, {what}: {statistics.median(times):.0f} ms",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--pairs", type=int, default=500_000)
    parser.add_argument("--groups", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--only", choices=["memory", "claims", "pages"])
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["INF_HOME"] = folder
        os.environ["INF_DATABASE_URL"] = f"sqlite:///{folder}/large.db"
        measure(open_store(), "SQLite", arguments)
        if arguments.only != "memory" and not missing_programs():
            with Cluster() as cluster:
                arguments.seconds = 0.0
                measure(open_store(cluster.create("large")), "PostgreSQL", arguments)


def measure(store: Store, name: str, arguments: argparse.Namespace) -> None:
    schema.upgrade(store)
    fill(store, arguments.pairs)
    run_id = start(store)
    if arguments.seconds and arguments.only in (None, "memory"):
        measure_memory(store, run_id, arguments.seconds)
    if store.engine.dialect.name == "postgresql":
        with store.write() as session:
            session.execute(text("ANALYZE"))
            session.commit()
    if arguments.only in (None, "claims"):
        measure_claims(store, run_id, name)
    if arguments.only in (None, "pages"):
        finished = start(store, arguments.groups)
        finish(store, finished)
        if store.engine.dialect.name == "postgresql":
            with store.write() as session:
                session.execute(text("ANALYZE"))
                session.commit()
        measure_pages(store, finished, name)
    store.close()


if __name__ == "__main__":
    main()
