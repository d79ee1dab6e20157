"""The judge of a job and its budget, a second judge of all of a run, jobs of the kind `study`."""

from sqlalchemy import select

from curation.judges.asking import Budget
from curation.judges.judge import ItemJudge, PaidJudge
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
from db.errors import BadInput
from db.jobs.jobs import get_job
from db.jobs.runner import JobHandle
from db.run.revalidations import items_of_run
from db.run.runs import get_run
from db.tables import Study


def judge_of(handle: JobHandle, name: str, budget_usd: float | None) -> ItemJudge:
    """The judge of that name, whose answers may cost `budget_usd`, a resumed job's before included.

    Raises BadInput for an unknown one, or a budget of one that counts no cost.
    """
    judge = handle.patiently(lambda: judge_named(name, handle.store))
    if budget_usd is None:
        return judge
    if not isinstance(judge, PaidJudge):
        raise BadInput(
            f"{judge.name} costs nothing that a budget limits",
            "leave `budget_usd=` out",
            code="judge_without_cost",
        )

    def spent_before() -> float:
        with handle.store.read() as session:
            return float(get_job(session, handle.id).shown.get("spent_usd", 0.0))

    spent = handle.patiently(spent_before)
    judge.budget = Budget(budget_usd, spent, lambda usd: handle.show(spent_usd=usd))
    return judge


def judge_run(handle: JobHandle, run_id: int, judge: ItemJudge) -> RunJudged:
    """Let a program judge every item of a run's groups.

    A study takes one item of a group, so that no person meets its texts twice. Whether a *group* is
    right takes all of them: a held-out set that a judge other than the run's validator confirmed
    (`trainer.data.judged`) is made by this.

    Of an edited group only the last texts. What the judge has answered, also as the run's validator
    or in a study, stands. Continues where it stopped. Raises NotFound for an unknown run, BadInput
    for a judge that reads guidelines, which only a study has.
    """
    if isinstance(judge, PaidJudge) and judge.guidelines is not None:
        raise BadInput(
            f"{judge.name} reads the guidelines of a study, and run {run_id} has none",
            "choose it without :guidelines",
            code="judge_reads_guidelines",
        )

    def begin() -> tuple[int, int, list[int]]:
        with handle.store.write() as session:
            get_run(session, run_id)
            judge_id = enrol(session, judge).id
            session.commit()
        with handle.store.read() as session:
            return judge_id, *items_of_run(session, run_id, judge_id)

    judge_id, total, waiting = handle.patiently(begin)
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
