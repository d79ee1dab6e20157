"""Running a curation in this process, for tests: a data set, a run, its job, its result."""

import json
import multiprocessing
import os
import random
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from records_world import list_groups
from sqlalchemy import event, func, select

from curation.run.engine import curate
from curation.run.starting import RunWork, resume_run, start_run
from db.corpus.datasets import text_sha256
from db.jobs import jobs
from db.jobs.runner import JobHandle
from db.jobs.runner import run as run_handler
from db.run.group_detail import get_group
from db.store.settings import owners_process
from db.store.store import Store, open_store
from db.tables import Call, Dataset, Pair, Passage, SlotText

SYLLABLES = ("ka", "lo", "mi", "ren", "tus", "vor", "pel", "da", "shi", "gor", "bel", "nak")


def made_up(chance: random.Random, syllables: int) -> str:
    """A word that means nothing."""
    return "".join(chance.choice(SYLLABLES) for _ in range(syllables))


def add_dataset(store: Store, *, name: str = "small", pairs: int = 12, pool: int = 8) -> int:
    """A data set of made-up passages, each with a word of its own."""
    with store.write() as session:
        dataset = Dataset(name=name)
        session.add(dataset)
        session.flush()
        for number in range(pairs + pool):
            chance = random.Random(number)
            subject = made_up(chance, 3)
            told = " ".join(made_up(chance, 2) for _ in range(12))
            text = f"The {subject} was built by hand. It has {told} and {made_up(chance, 9)}."
            passage = Passage(
                dataset_id=dataset.id,
                external_id=f"p{number}",
                text=text,
                sha256=text_sha256(text),
                origin="seed" if number < pairs else "pool",
            )
            session.add(passage)
            session.flush()
            if number < pairs:
                query = f"who built the {subject}"
                session.add(
                    Pair(
                        dataset_id=dataset.id,
                        external_id=f"q{number}",
                        query=query,
                        passage_id=passage.id,
                    )
                )
        session.commit()
        return dataset.id


def pairs_file(folder: Path, count: int) -> Path:
    """A file of pairs of made-up passages, as JSON lines."""
    path = folder / "pairs.jsonl"
    with path.open("w", encoding="utf-8") as file:
        for number in range(count):
            chance = random.Random(number)
            subject, told = made_up(chance, 3), " ".join(made_up(chance, 2) for _ in range(12))
            text = f"The {subject} was built by hand. It has {told} and {made_up(chance, 9)}."
            row = {"query_id": f"q{number}", "query": f"who built the {subject}"}
            file.write(json.dumps(row | {"passage_id": f"p{number}", "passage": text}) + "\n")
    return path


def offline_run(store: Store) -> int:
    """A run of a small dataset by the offline rules, which no worker has begun."""
    add_dataset(store)
    with store.write() as session:
        run_id = start_run(session, dataset="small", provider="offline").id
        session.commit()
    return run_id


def run_curation(store: Store, run_id: int | None = None, **asked: Any) -> dict[str, Any]:
    """Start a run (or go on with one) and work on it here, as the job would; its result."""
    with store.write() as session:
        if run_id is None:
            run_id = start_run(session, **asked).id
        else:
            resume_run(session, run_id, **asked)
        session.commit()
    return work_on(store, run_id)


def work_on(store: Store, run_id: int) -> dict[str, Any]:
    """Work on a run in this process."""
    return curate(claimed_job(store, run_id)).as_json()


def start_worker(
    store: Store, run_id: int, *, base_url: str, concurrency: int | None = None
) -> multiprocessing.Process:
    """A process of its own that works on a run, as `inf curate --worker` would start it.

    It is forked from a process that has the modules loaded: it works within milliseconds.
    """
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["curation.run.engine", "curation.providers.openai_server"])
    with store.write() as session:
        config = RunWork(run_id=run_id, concurrency=concurrency).config()
        job = jobs.enqueue_job(session, "curate", config)
        claimed = jobs.claim_job(session, job.id)
        assert claimed is not None
        session.commit()
        place = (claimed.id, claimed.attempt)
    started = context.Process(
        target=_work, args=(store.url, *place, base_url, os.environ["INF_HOME"]), daemon=True
    )
    started.start()
    return started


def _work(url: str, job_id: int, attempt: int, base_url: str, home: str) -> None:
    os.environ.update(OPENAI_BASE_URL=base_url, INF_HOME=home)
    owners_process(True)
    handle = JobHandle(open_store(url), job_id, attempt)
    threading.Thread(target=handle.beat_until_over, daemon=True).start()
    sys.exit(run_handler(handle, curate))


def claimed_job(store: Store, run_id: int, *, patience_minutes: float = 0.0) -> JobHandle:
    """A running job for a run, as its process sees it; it waits for no server that is away."""
    with store.write() as session:
        config = RunWork(run_id=run_id, patience_minutes=patience_minutes).config()
        job = jobs.enqueue_job(session, "curate", config)
        claimed = jobs.claim_job(session, job.id)
        assert claimed is not None
        session.commit()
        return JobHandle(store, claimed.id, claimed.attempt)


def texts_of(store: Store, run_id: int) -> dict[str, Any]:
    """Everything a run says about its pairs, ids and times aside."""
    with store.read() as session:
        return {
            group.name: (
                group.verdict,
                group.drop_reason,
                group.drop_detail,
                group.stage,
                {role: (*texts.as_json().values(),) for role, texts in group.triplets.items()},
                [
                    (one.scenario, one.choice, one.order_shown, one.candidates)
                    for one in group.judgments
                ],
                sorted((call.task, call.sample, call.outcome, call.answer) for call in group.calls),
            )
            for group in (
                get_group(session, row.id)
                for row in list_groups(session, run_id, limit=10_000).rows
            )
        }


def slots_of(store: Store, run_id: int) -> dict[int, dict[str, tuple[str, str | None]]]:
    """Every text of a run's groups by name, with why it was dropped."""
    with store.read() as session:
        ids = [row.id for row in list_groups(session, run_id, limit=1000).rows]
        rows = session.execute(
            select(SlotText, Passage.text)
            .outerjoin(Passage, Passage.id == SlotText.passage_id)
            .where(SlotText.group_id.in_(ids))
            .order_by(SlotText.slot, SlotText.ordinal)
        ).all()
    found: dict[int, dict[str, tuple[str, str | None]]] = {group_id: {} for group_id in ids}
    for slot, passage in rows:
        name = f"{slot.slot}[{slot.ordinal}]" if slot.ordinal else slot.slot
        found[slot.group_id][name] = (slot.text or passage, slot.dropped_reason)
    return found


def wait_for(what: Callable[[], Any], seconds: float = 120.0) -> Any:
    """What `what` gives once it gives something."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found = what()
        if found:
            return found
        time.sleep(0.002)
    raise AssertionError("it never happened")


def stored_calls(store: Store) -> int:
    """How many answers the journal holds."""
    with store.read() as session:
        return session.scalar(select(func.count()).select_from(Call)) or 0


@contextmanager
def group_reads(store: Store) -> Iterator[list[str]]:
    """The statements that read the table of groups, in whatever way."""
    seen: list[str] = []

    def note(_c: object, _cursor: object, statement: str, *_: object) -> None:
        if '"group"' in statement and statement.lstrip().startswith(("SELECT", "WITH")):
            seen.append(statement)

    event.listen(store.engine, "before_cursor_execute", note)
    try:
        yield seen
    finally:
        event.remove(store.engine, "before_cursor_execute", note)
