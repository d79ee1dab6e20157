"""Server time of what the study pages and the review queue ask the store, at 100,000 items (and
groups) and 300,000 judgments.

    .venv/bin/python bench/study_pages.py [--items 100000] [--engine sqlite|postgresql]

The rows are written in bulk into an SQLite file and a PostgreSQL cluster of the bench's own (where
its programs are installed); each question is asked five times and the median is printed. The limit
to stay under is 300 ms. PostgreSQL's tables are analyzed first, as its autovacuum does within a
minute of such a load.
"""

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT)]

from finished_run import finished_run  # noqa: E402
from leases import lease_items  # noqa: E402
from postgres_cluster import Cluster, missing_programs  # noqa: E402
from slot_rows import slot_rows  # noqa: E402
from sqlalchemy import insert, text  # noqa: E402
from sqlalchemy.orm import Session  # noqa: E402

from db.assignment import progress  # noqa: E402
from db.review import queue as review_queue  # noqa: E402
from db.review.queue import QueueFilter  # noqa: E402
from db.store import schema  # noqa: E402
from db.store.settings import owners_process  # noqa: E402
from db.store.store import Store, open_store  # noqa: E402
from db.study import adjudication, quality, studies  # noqa: E402
from db.tables import (  # noqa: E402
    Assignment,
    Group,
    Guideline,
    Item,
    Judge,
    Judgment,
    Pair,
    Passage,
    SlotText,
    Study,
    StudyItem,
    utc_now,
)
from db.tables.judging import new_token  # noqa: E402

owners_process(True)

LABELS = ("positive", "instruction_negative", "query_negative")
JUDGES = 12
OVERLAP = 4  # three are done: one place of every item is still free
CHUNK = 20_000


def fill(session: Session, items: int) -> tuple[int, int]:
    """A study of `items` items with three judgments each, and a judge who is new to it."""
    run = finished_run(session, "big", source="made for a measurement")
    dataset_id = run.dataset_id
    passages = [
        Passage(dataset_id=dataset_id, external_id=label, text=label, sha256=label, origin="seed")
        for label in LABELS
    ]
    session.add_all(passages)
    session.flush()
    judges = [Judge(name=f"judge {number}", kind="person") for number in range(JUDGES + 1)]
    study = Study(dataset_id=dataset_id, run_id=run.id, name="big", overlap=OVERLAP)
    session.add_all([*judges, study])
    session.flush()
    session.add(Guideline(study_id=study.id, version=1, body="read"))
    now = utc_now()
    candidates = [{"passage_id": p.id, "label": p.external_id} for p in passages]
    for start in range(1, items + 1, CHUNK):
        numbers = range(start, min(items + 1, start + CHUNK))
        session.execute(
            insert(Pair),
            [
                {
                    "id": n,
                    "dataset_id": dataset_id,
                    "external_id": str(n),
                    "query": f"query {n}",
                    "passage_id": passages[0].id,
                    "meta": {},
                }
                for n in numbers
            ],
        )
        session.execute(
            insert(Group),
            [
                {
                    "id": n,
                    "run_id": run.id,
                    "pair_id": n,
                    "state": "done",
                    "stage": "validation",
                    "verdict": "kept",
                    "attempt": 1,
                }
                for n in numbers
            ],
        )
        triplets = {passage.external_id: ("i", "q", passage.id) for passage in passages}
        session.execute(insert(SlotText), [row for n in numbers for row in slot_rows(n, triplets)])
        session.execute(
            insert(Item),
            [
                {
                    "id": n,
                    "group_id": n,
                    "scenario": LABELS[n % 3],
                    "revision": 1,
                    "instruction": "i",
                    "query": "q",
                    "candidates": candidates,
                    "created_at": now,
                }
                for n in numbers
            ],
        )
        session.execute(
            insert(StudyItem),
            [
                {
                    "study_id": study.id,
                    "item_id": n,
                    "part": "main",
                    "position": n,
                    "explanation": "",
                    "places": OVERLAP,
                    "taken": 3,
                }
                for n in numbers
            ],
        )
        given = [(n, judges[(n + k) % JUDGES].id) for n in numbers for k in range(3)]
        session.execute(
            insert(Assignment),
            [
                {
                    "study_id": study.id,
                    "item_id": n,
                    "judge_id": judge_id,
                    "token": new_token(),
                    "state": "done",
                    "order_shown": list(LABELS),
                    "note": "",
                    "flagged": False,
                    "created_at": now,
                }
                for n, judge_id in given
            ],
        )
        session.execute(
            insert(Judgment),
            [
                {
                    "event_id": f"{n}/{judge_id}",
                    "judge_id": judge_id,
                    "item_id": n,
                    "study_id": study.id,
                    "choice": LABELS[(n * 7 + judge_id * (n % 10 == 0)) % 3],
                    "order_shown": list(LABELS),
                    "shown_at": now - timedelta(seconds=4),
                    "decided_at": now,
                    "is_current": True,
                    "flagged": False,
                    "note": "",
                    "detail": {},
                }
                for n, judge_id in given
            ],
        )
    return study.id, judges[0].id


def questions(study_id: int, judge_id: int) -> dict[str, Callable[[Session], object]]:
    """What the pages ask."""
    return {
        "list of studies": studies.list_studies,
        "composition": lambda session: studies.compose(session, study_id),
        "quality per judge": lambda session: quality.judge_quality(session, study_id),
        "next five items": lambda session: lease_items(session, study_id, judge_id, 5),
        "own progress": lambda session: progress.own_progress(session, study_id, judge_id),
        "disputed items": lambda session: adjudication.disputed_ids(session, study_id),
        "all items, disputed first": lambda session: adjudication.disputed_ids(
            session, study_id, include_agreed=True
        ),
        "groups to review": lambda session: review_queue.listed_groups(
            session,
            QueueFilter(run_id=1, verdict="kept", review="none"),
            viewer="a",
            blind=False,
            offset=0,
            limit=50,
        ),
        "groups to review, blind": lambda session: review_queue.listed_groups(
            session,
            QueueFilter(run_id=1, review="none"),
            viewer="a",
            blind=True,
            offset=0,
            limit=50,
        ),
    }


def measure(store: Store, ask: Callable[[Session], object]) -> float:
    """The median of five, in milliseconds."""
    times = []
    for _ in range(5):
        with store.write() as session:
            start = time.perf_counter()
            ask(session)
            times.append(1000 * (time.perf_counter() - start))
    return round(statistics.median(times), 1)


def ask_all(url: str, items: int) -> dict[str, float]:
    """The times of every question on a new store at `url`."""
    store = open_store(url)
    schema.upgrade(store)
    with store.write() as session:
        study_id, judge_id = fill(session, items)
        session.commit()
    if not store.is_sqlite:
        with store.engine.connect().execution_options(isolation_level="AUTOCOMMIT") as connection:
            connection.execute(text("VACUUM ANALYZE"))
    found = {name: measure(store, ask) for name, ask in questions(study_id, judge_id).items()}
    store.close()
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=100_000)
    parser.add_argument("--engine", choices=("sqlite", "postgresql"), help="this one only")
    given = parser.parse_args()
    items, only = given.items, given.engine
    found = {}
    if only in (None, "sqlite"):
        with tempfile.TemporaryDirectory() as folder:
            found["sqlite"] = ask_all(f"sqlite:///{folder}/inf.db", items)
    if only == "postgresql" or (only is None and missing_programs() is None):
        with Cluster() as cluster:
            found["postgresql"] = ask_all(cluster.create(), items)
    sys.stdout.write(json.dumps({"items": items, "ms": found}, indent=2) + "\n")


if __name__ == "__main__":
    main()
