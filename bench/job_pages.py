"""Server time of the pages of jobs and trainings, at 500 jobs and 2,000,000 numbers of curves.

    .venv/bin/python bench/job_pages.py [--jobs 500] [--points 2000000]

The rows are written in bulk into an SQLite file and a PostgreSQL cluster of the bench's own (where
its programs are installed). Each question that a page asks is requested five times and the median
printed, then the Jobs and Train pages are drawn whole (Streamlit's AppTest, five times, without the
first). Limit: 300 ms.
"""

import argparse
import os
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from postgres_cluster import Cluster, missing_programs  # noqa: E402
from sqlalchemy import insert, text  # noqa: E402
from streamlit.testing.v1 import AppTest  # noqa: E402

from app.kit.menu import FILES  # noqa: E402
from db.jobs import jobs  # noqa: E402
from db.store import schema  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402
from db.tables import Job, MetricPoint, utc_now  # noqa: E402

owners_process(True)

NAMES = ("loss", "learning_rate", "grad_norm", "tokens_per_second")
ENDS = ("done", "done", "failed", "cancelled", "lost")
OVERLAID = 5
CHUNK = 100_000
TIMES = 5


def fill(store: Store, count: int, points: int) -> None:
    """`count` trainings that are over, with `numbers` numbers in all."""
    now = utc_now()
    with store.write() as session:
        for number in range(count):
            settings = {"objective": "P", "seed": number}
            config = {"settings": settings, **({"sweep": "s"} if number % 2 else {})}
            job = Job(kind="train", status=ENDS[number % 5], config=config, started_by="bench")
            job.started_at = job.finished_at = now
            job.result = {"held_out": {"after": {"ndcg@10": number / count}}}
            session.add(job)
        session.commit()
    steps = points // (count * len(NAMES))
    rows: list[dict[str, object]] = []
    for job_id in range(1, count + 1):
        rows += [
            {
                "job_id": job_id,
                "name": name,
                "step": step,
                "value": 1.0 / (step + 1),
                "created_at": now,
            }
            for name in NAMES
            for step in range(steps)
        ]
        if len(rows) >= CHUNK or job_id == count:
            with store.write() as session:
                session.execute(insert(MetricPoint), rows)
                session.commit()
            rows = []
    if not store.is_sqlite:
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("ANALYZE"))


def median_ms(ask: Callable[[], object]) -> float:
    """The median of several askings, after one that warms up."""
    ask()
    times = []
    for _ in range(TIMES):
        began = time.perf_counter()
        ask()
        times.append(1000 * (time.perf_counter() - began))
    return statistics.median(times)


def questions(store: Store, count: int) -> dict[str, Callable[[], object]]:
    """What the pages ask."""

    def timed(question: Callable[..., object], *given: object, **named: object) -> object:
        with store.read() as session:
            return question(session, *given, **named)

    some = list(range(1, OVERLAID + 1))
    return {
        "jobs by status": lambda: timed(jobs.count_jobs),
        "the newest 20": lambda: timed(jobs.list_jobs, limit=20),
        "20 of the failed, last page": lambda: timed(
            jobs.list_jobs, statuses=("failed",), limit=20, offset=max(0, count // 5 - 20)
        ),
        "lost jobs": lambda: timed(jobs.mark_lost_jobs),
        "curves of one training": lambda: timed(jobs.metric_series, some[:1]),
        f"curves of {OVERLAID} trainings": lambda: timed(jobs.metric_series, some),
        "trainings of the leaderboard": lambda: timed(jobs.list_jobs, kind="train", limit=1000),
    }


def page(name: str, job: int) -> Callable[[], object]:
    """Draws a page whole."""

    def draw() -> None:
        at = AppTest.from_file(str(ROOT / "app" / "server" / "main.py"), default_timeout=120).run()
        at.query_params["job"] = str(job)
        began = time.perf_counter()
        at = at.switch_page(os.path.relpath(FILES[name], ROOT / "app" / "server")).run()
        assert not at.exception, at.exception
        seconds.append(time.perf_counter() - began)

    seconds: list[float] = []

    def timed() -> float:
        seconds.clear()
        for _ in range(TIMES + 1):
            draw()
        return 1000 * statistics.median(seconds[1:])

    return timed


def measure(title: str, url: str, count: int, points: int) -> None:
    os.environ["INF_DATABASE_URL"] = url
    store = open_store(url)
    schema.upgrade(store)
    fill(store, count, points)
    print(f"{title}: {count:,} jobs, {points:,} numbers")
    for name, ask in questions(store, count).items():
        print(f"  {name:<32} {median_ms(ask):7.1f} ms")
    for name in ("jobs", "train"):
        print(f"  {'page ' + name:<32} {page(name, count)():7.1f} ms")
    store.close()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--jobs", type=int, default=500)
    parser.add_argument("--points", type=int, default=2_000_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        os.environ["INF_HOME"] = folder
        measure("SQLite", f"sqlite:///{folder}/inf.db", given.jobs, given.points)
        if missing_programs() is None:
            with Cluster() as cluster:
                measure("PostgreSQL", cluster.create(), given.jobs, given.points)


if __name__ == "__main__":
    main()
