"""Studies as work: sampling one from a dataset, and letting a program judge its items (a job).

Note: programs take no place from people. The overlap of a study counts people only; a model or a
simulated judge answers every item of the study. If it has judged an item before (in another study,
or as the validator of the run) that judgment is not requested again; it counts in the study once
the program has been through the whole queue.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from curation.judges.asking import OUT_OF_BUDGET, Patience
from curation.judges.judge import Choice, ItemJudge, ItemView, PaidJudge, WaitingJudge
from curation.judging.request import StudyPlan
from curation.judging.sampling import sample_study_items
from db.assignment.shown_items import shuffled_labels
from db.corpus.datasets import get_dataset
from db.corpus.texts import passage_texts
from db.errors import BadInput, Refused
from db.events import record_event
from db.jobs.runner import JobHandle
from db.patience import patience_of
from db.question import about_shown
from db.rows import Json, Row
from db.run.new_items import questions_of
from db.run.runs import choose_run
from db.study.gold_items import count_approved, sample_gold_items
from db.study.items import questions_of_study
from db.study.judgments import count_known, get_or_create_judge, has_judged, record_judgment
from db.study.rules import set_rules
from db.study.studies import GUIDELINES, add_study, compose, current_guideline, get_study
from db.tables import Item, Judge, Study, StudyItem
from db.values import AMBIGUOUS, NONE


@dataclass(frozen=True)
class Waiting:
    """An item that a program has not judged yet, in the view of that judge."""

    item_id: int
    order_shown: list[str]
    view: ItemView


class Judged(Row):
    """What a judge answered of `items`, some `judged_before`; `unusable`: reasons of no answer."""

    judge: str
    kind: str
    simulated: bool
    offline: bool
    items: int
    judged: int
    judged_before: int
    none: int
    ambiguous: int
    unusable: dict[str, int]
    spent_usd: float = 0.0


class StudyJudged(Judged):
    """The result of a job that judged a study."""

    study_id: int


class RunJudged(Judged):
    """The result of a job that judged all of a run."""

    run_id: int


class StudyCreated(Row):
    """A study that was sampled: from what, how (`sampling`), and how many items of each kind."""

    id: int
    study_id: int
    name: str
    dataset: str
    run_id: int
    items: int
    overlap: int
    seed: int
    sampling: Json
    scenarios: dict[str, int]
    verdicts: dict[str, int]
    qualification: int
    gold: int


def sample_study(
    session: Session, wanted: StudyPlan, *, created_by: str = "", job_id: int | None = None
) -> StudyCreated:
    """Sample a study from a dataset's run (by default the newest finished one) and describe it.

    Raises NotFound for an unknown dataset or one without a finished run, BadInput if the run has
    too few groups, or too few approved ones for `qualification` and `gold` items. `qualification`
    is the number of examples in a round; each further round has others, as far as groups are
    approved. `job_id`: the job that creates it; recorded, so that a resumed job finds what it
    created. Does not commit.
    """
    found = get_dataset(session, wanted.dataset)
    run = choose_run(session, found.id, wanted.run_id)
    sampled = sample_study_items(session, run.id, wanted.sampling, wanted.items, wanted.seed)
    study = add_study(
        session,
        run_id=run.id,
        item_ids=sampled.item_ids,
        settings=sampled.settings | ({} if job_id is None else {"job_id": job_id}),
        overlap=wanted.overlap,
        seed=wanted.seed,
        name=wanted.name or f"{wanted.dataset}, run {run.id}",
        guidelines=GUIDELINES if wanted.guidelines is None else wanted.guidelines,
        created_by=created_by,
    )
    qualification, gold = wanted.qualification, wanted.gold
    if wanted.close_when_done:
        set_rules(session, study.id, closes_when_done=True)
    if qualification:
        rounds = set_rules(session, study.id, training_items=qualification).training_rounds
        free = count_approved(session, study.id) - gold
        sample_gold_items(
            session, study.id, "training", max(qualification, min(qualification * rounds, free))
        )
    if gold:
        sample_gold_items(session, study.id, "gold", gold)
    record_event(session, created_by, "study.create", study.id)
    return describe_created(session, study, wanted)


def describe_created(session: Session, study: Study, wanted: StudyPlan) -> StudyCreated:
    """What the creation of a study reports: its sample and its composition."""
    composition = compose(session, study.id)
    main = select(func.count()).where(StudyItem.study_id == study.id, StudyItem.part == "main")
    return StudyCreated.of(
        study,
        study_id=study.id,
        dataset=wanted.dataset,
        items=session.scalars(main).one(),
        sampling=study.settings,
        scenarios=composition.scenarios,
        verdicts=composition.verdicts,
        qualification=wanted.qualification,
        gold=wanted.gold,
    )


def judge_study(handle: JobHandle, study_id: int, judge: ItemJudge) -> StudyJudged:
    """Let a program judge the items of a study.

    Continues where it stopped: judged items stay judged. Raises
    Refused for a closed study.
    """

    def begin() -> tuple[int, int, int, list[int]]:
        with handle.store.write() as session:
            study = get_study(session, study_id)
            if study.status == "closed":
                raise closed(study_id)
            kinds = getattr(judge, "kinds", ("pick",))
            for question in questions_of_study(session, study_id):
                if question.kind not in kinds:
                    raise BadInput(
                        f"{judge.name} answers {', '.join(kinds)}: the question "
                        f"{question.name!r} of study {study_id} is {question.kind}",
                        "let another judge answer",
                        code="question_kind_not_judged",
                    )
            judge_id = enrol(session, judge).id
            guideline = current_guideline(session, study_id)
            guideline_id = guideline.id
            if isinstance(judge, PaidJudge) and judge.guidelines is not None:
                judge.guidelines = guideline.body
            session.commit()
        with handle.store.read() as session:
            return judge_id, guideline_id, *unjudged_items(session, study_id, judge_id)

    judge_id, guideline_id, total, waiting = handle.patiently(begin)
    counted = judge_all(
        handle,
        judge,
        judge_id,
        waiting,
        total,
        study_id=study_id,
        guideline_id=guideline_id,
    )

    def count() -> None:
        with handle.store.write() as session:
            count_known(session, study_id, judge_id)
            session.commit()

    handle.patiently(count)
    return StudyJudged.of(counted, study_id=study_id)


def closed(study_id: int) -> Refused:
    """Nothing can be judged in a closed study."""
    return Refused(
        f"study {study_id} is closed: nothing can be judged in it",
        "create another one",
        code="study_not_open",
    )


def judge_all(
    handle: JobHandle,
    judge: ItemJudge,
    judge_id: int,
    waiting: Sequence[int],
    total: int,
    *,
    study_id: int | None = None,
    guideline_id: int | None = None,
    run_id: int | None = None,
) -> Judged:
    """Let a judge answer these items of `total`, of a study or a run; count its answers."""
    before = total - len(waiting)
    place = f"run{run_id}" if study_id is None else str(study_id)
    handle.report(before, total, judge.name)

    def record(session: Session, shown: Waiting, choice: Choice) -> str:
        label, _ = record_choice(
            session,
            shown,
            choice,
            judge_id=judge_id,
            event_id=f"{judge.name}@{place}/{shown.item_id}",
            study_id=study_id,
            guideline_id=guideline_id,
        )
        return label

    of = ("study", study_id) if study_id is not None else ("run", run_id)
    budget = judge.budget if isinstance(judge, PaidJudge) else None
    counts, unusable = judge_waiting(handle, judge, judge_id, waiting, record, of=of, before=before)
    return Judged(
        judge=judge.name,
        kind=judge.kind,
        simulated=judge.simulated,
        offline=judge.offline,
        items=total,
        judged=counts.total(),
        judged_before=before,
        none=counts[NONE],
        ambiguous=counts[AMBIGUOUS],
        unusable=dict(unusable),
        spent_usd=budget.spent_usd if budget is not None else 0.0,
    )


def judge_waiting(
    handle: JobHandle,
    judge: ItemJudge,
    judge_id: int,
    waiting: Sequence[int],
    record: Callable[[Session, Waiting, Choice], str],
    *,
    of: tuple[str, object],
    before: int = 0,
) -> tuple[Counter[str], Counter[str]]:
    """Let a judge answer these items, as many per call as it takes; `record` stores an answer.

    A server or store that is away is waited for as the job's config says.

    The answers of a call are committed together, with one event for all of them, to the study or
    run they are `of`: whoever listens wants to know that it has new answers, and the answers of a
    model to a run would be a million rows. Its actor is who started the job, as a model may have a
    person's name. A stop is checked between calls. Returns what `record` returned, counted, and the
    reasons of unusable answers, which are not recorded.
    """
    counts, unusable, total = Counter[str](), Counter[str](), before + len(waiting)
    patience = Patience(
        patience_of(handle.config),
        lambda message: handle.report(before + counts.total(), total, message or judge.name),
        handle.patiently,
        was_reached=before > 0,
    )
    if isinstance(judge, WaitingJudge):
        judge.patience = patience

    def show(start: int) -> list[Waiting]:
        with handle.store.read() as session:
            return show_items(session, waiting[start : start + judge.at_once], judge_id)

    def store(batch: Sequence[Waiting], choices: Sequence[Choice]) -> Counter[str]:
        with handle.store.write() as session:
            found = Counter(
                record(session, each, choice)
                for each, choice in zip(batch, choices, strict=True)
                if not choice.unusable
            )
            if stored := found.total():
                about = {"judge": judge_id, "judgments": stored}
                record_event(session, handle.started_by, "judgment.stored", of, **about)
            session.commit()
        return found

    for start in range(0, len(waiting), judge.at_once):
        handle.check()
        batch = handle.patiently(partial(show, start))
        choices = judge.choose([each.view for each in batch], check=handle.check)
        counts += handle.patiently(partial(store, batch, choices))
        unusable.update(choice.unusable for choice in choices if choice.unusable)
        handle.report(before + start + len(batch), total, judge.name)
        if unusable[OUT_OF_BUDGET]:
            unusable[OUT_OF_BUDGET] += len(waiting) - start - len(batch)  # nobody was asked
            break
    return counts, unusable


def enrol(session: Session, judge: ItemJudge) -> Judge:
    """The judge's row. Does not commit."""
    return get_or_create_judge(
        session,
        judge.name,
        kind=judge.kind,
        provider=judge.provider,
        model=judge.model,
        offline=judge.offline,
        simulated=judge.simulated,
    )


def unjudged_items(session: Session, study_id: int, judge_id: int) -> tuple[int, list[int]]:
    """How many items the study has to judge, and those this judge has not judged, in order."""
    rows = session.execute(
        select(StudyItem.item_id, has_judged(judge_id, StudyItem.item_id))
        .where(StudyItem.study_id == study_id, StudyItem.part == "main")
        .order_by(StudyItem.position)
    ).all()
    return len(rows), [item_id for item_id, is_judged in rows if not is_judged]


def show_items(session: Session, item_ids: Sequence[int], judge_id: int) -> list[Waiting]:
    """The items as this judge sees them: texts in an order of its own, no label in the view."""
    items = {item.id: item for item in session.scalars(select(Item).where(Item.id.in_(item_ids)))}
    wanted = {entry["passage_id"] for item in items.values() for entry in item.candidates}
    texts, questions = passage_texts(session, wanted), questions_of(session, items.values())
    shown = []
    for item in (items[item_id] for item_id in item_ids):
        order = shuffled_labels(item, judge_id)
        by_label = {entry["label"]: texts[entry["passage_id"]] for entry in item.candidates}
        candidates = tuple(by_label[label] for label in order)
        question, about = questions[item.question_id], about_shown(item.scenario, order)
        view = ItemView(item.instruction, item.query, candidates, question, about)
        shown.append(Waiting(item.id, order, view))
    return shown


def label_of(each: Waiting, choice: Choice) -> str:
    """The label that a choice stands for."""
    if choice.answer:
        return choice.answer
    if choice.position is not None:
        return each.order_shown[choice.position]
    return AMBIGUOUS if choice.ambiguous else NONE


def record_choice(
    session: Session,
    each: Waiting,
    choice: Choice,
    *,
    judge_id: int,
    event_id: str,
    study_id: int | None = None,
    run_id: int | None = None,
    guideline_id: int | None = None,
) -> tuple[str, str | None]:
    """Store a program's choice. Returns its label and the one expected. Does not commit."""
    label = label_of(each, choice)
    record_judgment(
        session,
        judge_id=judge_id,
        item_id=each.item_id,
        choice=label,
        order_shown=each.order_shown,
        event_id=event_id,
        study_id=study_id,
        run_id=run_id,
        guideline_id=guideline_id,
        detail=choice.detail,
    )
    return label, session.get_one(Item, each.item_id).expected
