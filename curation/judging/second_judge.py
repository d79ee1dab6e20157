"""A second judge of a whole run: a program answers the items of all its groups, outside of studies.

A study takes one item of a group, so that no person meets its texts twice. Whether a *group* is
right takes all of them: a held-out set that a judge other than the run's validator confirmed
(`trainer.data.confirmed`) is made by this.
"""

from typing import Any

from curation.judges.registry import judge_named
from curation.judging.studies import enrol, judge_all
from db.jobs.runner import JobHandle
from db.run.revalidations import items_of_run
from db.run.runs import get_run


def judge_run(handle: JobHandle) -> dict[str, Any]:
    """Let a program judge every item of a run's groups; the job handler of kind `judge` with
    `run_id` and `judge`.

    Of an edited group only the last texts. What the judge has answered, also as the run's validator
    or in a study, stands. Continues where it stopped. Raises NotFound for an unknown run.
    """
    run_id = int(handle.config["run_id"])
    judge = judge_named(str(handle.config["judge"]), handle.store)
    with handle.store.write() as session:
        get_run(session, run_id)
        judge_id = enrol(session, judge).id
        session.commit()
    with handle.store.read() as session:
        total, waiting = items_of_run(session, run_id, judge_id)
    counted = judge_all(handle, judge, judge_id, waiting, total, place=f"run{run_id}")
    return {"run_id": run_id, **counted}
