"""Running a curation in this process, for tests: a data set, a run, its job, its result."""

import random
from typing import Any

from curation.engine import curate
from curation.starting import job_config, resume_run, start_run
from db import jobs
from db.datasets import text_sha256
from db.job_runner import JobHandle
from db.store import Store
from db.tables import Dataset, Pair, Passage

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
    return curate(claimed_job(store, run_id))


def claimed_job(store: Store, run_id: int) -> JobHandle:
    """A running job for a run, as its process sees it."""
    with store.write() as session:
        job = jobs.enqueue_job(session, "curate", job_config(run_id))
        claimed = jobs.claim_job(session, job.id)
        assert claimed is not None
        session.commit()
        return JobHandle(store, claimed.id, claimed.attempt)
