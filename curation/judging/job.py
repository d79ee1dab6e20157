"""A second judge of all of a run, and the handler of jobs of the kind `study`."""

from sqlalchemy import select

from curation.judges.registry import judge_named
from curation.judging.agreement import AgreementStored, agreement_job
from curation.judging.request import StudyPlan
from curation.judging.studies import (
    RunJudged,
    StudyCreated,
    describe_created,
    enrol,
    judge_all,
    sample_study,
)
from db.corpus.datasets import get_dataset
from db.jobs.runner import JobHandle
from db.run.revalidations import items_of_run
from db.run.runs import get_run
from db.tables import Study


def judge_run(handle: JobHandle, run_id: int, name: str) -> RunJudged:
    """Let a program judge every item of a run's groups.

    A study takes one item of a group, so that no person meets its texts twice. Whether a *group* is
    right takes all of them: a held-out set that a judge other than the run's validator confirmed
    (`trainer.data.confirmed`) is made by this.

    Of an edited group only the last texts. What the judge has answered, also as the run's validator
    or in a study, stands. Continues where it stopped. Raises NotFound for an unknown run.
    """
    judge = judge_named(name, handle.store)
    with handle.store.write() as session:
        get_run(session, run_id)
        judge_id = enrol(session, judge).id
        session.commit()
    with handle.store.read() as session:
        total, waiting = items_of_run(session, run_id, judge_id)
    counted = judge_all(handle, judge, judge_id, waiting, total, run_id=run_id)
    return RunJudged.of(counted, run_id=run_id)


def work_on_study(handle: JobHandle) -> StudyCreated | AgreementStored:
    """Compute the agreement of a study, or create one, as the config's `what` says."""
    if handle.config.get("what") == "agreement":
        return agreement_job(handle)
    return create_study(handle)


def create_study(handle: JobHandle) -> StudyCreated:
    """Create a study by a StudyPlan.

    A job that is resumed after it had created its study reports that one.
    """
    wanted = StudyPlan.read(handle.config)
    with handle.store.read() as session:
        dataset_id = get_dataset(session, wanted.dataset).id
        made = session.scalars(
            select(Study).where(
                Study.dataset_id == dataset_id,
                Study.settings["job_id"].as_integer() == handle.id,
                Study.created_by == handle.started_by,
            )
        ).first()
        if made is not None:
            return describe_created(session, made, wanted)
    handle.report(0, None, "sampling items")
    with handle.store.write() as session:
        done = sample_study(session, wanted, created_by=handle.started_by, job_id=handle.id)
        session.commit()
        return done
