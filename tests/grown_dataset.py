"""For the tests of analysis: a run whose groups have texts but no calls, and jobs in process."""

from typing import Any

from finished_run import finished_run
from slot_rows import slot_rows

from analysis import work
from db.jobs import jobs
from db.jobs.runner import JobHandle
from db.run.runs import keep_count
from db.store.bulk import insert_rows
from db.store.store import Store
from db.tables import Group, Pair, Passage, SlotText

SUBJECTS = ["bees", "rivers", "violins", "volcanoes", "bread", "comets", "chess", "tea"]


def grown(store: Store, name: str = "demo", groups: int = 8, *, offline: bool = True) -> int:
    """A data set with a finished run of `groups` groups, the last one dropped; the run's id."""
    with store.write() as session:
        run = finished_run(session, name, offline=offline, source=None, licence=None)
        for number in range(groups):
            subject = SUBJECTS[number % len(SUBJECTS)]
            passages = [
                Passage(
                    dataset_id=run.dataset_id,
                    external_id=f"{number}-{role}",
                    text=f"{name} {number}: a passage on {subject}, {role}",
                    sha256="0",
                    origin="seed" if role == "positive" else "generated",
                )
                for role in ("positive", "instruction_negative", "query_negative")
            ]
            session.add_all(passages)
            session.flush()
            pair = Pair(
                dataset_id=run.dataset_id,
                external_id=str(number),
                query=f"what about {subject} {number}",
                passage_id=passages[0].id,
            )
            session.add(pair)
            session.flush()
            last = number == groups - 1
            group = Group(
                run_id=run.id,
                pair_id=pair.id,
                state="done",
                verdict="dropped" if last else "kept",
                drop_reason="judge_disagrees" if last else None,
            )
            session.add(group)
            session.flush()
            first, second, third = (passage.id for passage in passages)
            triplets = {
                "positive": (f"Mention {subject}.", pair.query, first),
                "instruction_negative": (f"Omit {subject}.", pair.query, second),
                "query_negative": (f"Mention {subject}.", f"who sells {subject}", third),
            }
            insert_rows(session, SlotText, slot_rows(group.id, triplets))
        keep_count(session, run.id)
        session.commit()
        return run.id


def run_job(store: Store, what: str, **config: Any) -> dict[str, Any]:
    """What the job returns, run in this process: one load of torch for many jobs."""
    kind = "project" if what == "coverage" else "embed"
    with store.write() as session:
        job_id = jobs.enqueue_job(
            session, kind, config if kind == "project" else {"what": what, **config}
        ).id
        job = jobs.claim_job(session, job_id)
        assert job is not None
        session.commit()
    handler = work.coverage if what == "coverage" else work.embed
    return handler(JobHandle(store, job.id, job.attempt)).as_json()
