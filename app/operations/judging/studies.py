"""Studies: create, list, show, change, let models judge; their judges, gold and decisions."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeVar

from sqlalchemy.orm import Session

from app.access.identity import Actor, SessionUser
from app.access.permissions import require
from app.operations.acting import Launch, reading, writing
from app.operations.judging.card import CardItem, card_item, judge_id_of
from curation.judges.registry import require_judge
from curation.judging import leases
from curation.judging.agreement import reader_of
from curation.judging.gold_item_file import add_from_file, template_rows
from curation.judging.leases import AnswersRecorded, ItemsLeased
from curation.judging.request import (
    Adjudication,
    AnswersRecord,
    GoldChange,
    ItemsLease,
    JudgeChange,
    JudgeStart,
    RulesChange,
    StudyChange,
    StudyExample,
    StudyFilePlan,
    StudyMessage,
    StudyPlan,
    StudyRecruiting,
    StudyTasks,
    WorkReport,
)
from curation.judging.studies import StudyCreated, sample_study
from db.answers import announcements
from db.answers.announcements import SentRow
from db.assignment import members, places, reassigning
from db.assignment.hidden import open_groups
from db.corpus.datasets import get_dataset
from db.errors import BadInput
from db.events import record_event
from db.home import temporary_folder
from db.people import recruiting
from db.rows import Json, Listed, Row
from db.run.progress import list_runs
from db.run.runs import RunSummary, get_run
from db.study import adjudication, examples, quality, studies
from db.study.gold_items import sample_gold_items
from db.study.quality import JudgeRow
from db.study.rules import StudyRules, rules_of, set_rules
from db.study.sampled_groups import sampled_judges as judges_of_sample
from db.study.studies import JudgeProgress, StudySummary
from db.study.work import WorkRow, work_report
from db.tables import Guideline, Item

if TYPE_CHECKING:
    from curation.questions.study_file import StudyOfFile

RIGHT = "studies"
TEMPLATE_ROWS = 20
T = TypeVar("T")
Upload = tuple[str, bytes]  # the name and content of a file
WITHOUT_GOLD: Mapping[str, Any] = {"gold_right": 0, "gold_seen": 0}
NOTED: Mapping[str, str] = {  # events of changes to a judge
    "pause": "pause_judge",
    "let_in": "let_in_judge",
    "take_back": "take_back",
    "give": "reassign",
    "set": "share",
    "unset": "share",
}


class StudyShown(StudySummary):
    """A study with what its items were sampled from and how (`settings`), and its judges."""

    settings: Json
    scenarios: dict[str, int]
    verdicts: dict[str, int]
    judges: tuple[JudgeProgress, ...]


class StudyChanged(Row):
    """A study's status, judges per item and version of guidelines after a change."""

    id: int
    name: str
    status: str
    overlap: int
    guideline_version: int


class JudgesChanged(Row):
    """How many judges a change was of, how many items it moved to another judge, and how many it
    returned to the queue."""

    action: str
    judges: int
    moved: int = 0
    returned: int = 0


class RecruitingLink(Row):
    """The path of a study's link for people of a platform."""

    study_id: int
    platform: str
    path: str


class GoldChanged(Row):
    """Items with known answers that were added, how many there are, and the rules in effect."""

    added: tuple[int, ...]
    total: int
    rules: StudyRules


class GoldSet(Row):
    """The gold items of a study after a change, and the rules about them."""

    part: ClassVar[Literal["gold"]] = "gold"
    study_id: int
    added: tuple[int, ...]
    gold: int
    gold_threshold: float
    gold_action: str


class QualificationSet(Row):
    """The qualification examples of a study after a change, and the rules about them."""

    part: ClassVar[Literal["training"]] = "training"
    study_id: int
    added: tuple[int, ...]
    qualification: int
    pass_mark: float
    training_rounds: int
    training_items: int


Known = GoldSet | QualificationSet


class TemplateWritten(Row):
    """A file of unused items, in which the right answers are to be filled in."""

    study_id: int
    rows: int
    out: str


class TasksWritten(Row):
    """The files of a study's items for another tool, in the folder `out`."""

    study_id: int
    tool: str
    out: str
    files: tuple[str, ...]


class StudyJudges(Listed[JudgeRow]):
    """The judges of a study; `message`: what was changed about them, "" without a change."""

    study_id: int
    message: str


class Adjudicated(Row):
    """An item that was decided."""

    study_id: int
    item_id: int
    choice: str
    decided_by: str


def create(actor: Actor, wanted: StudyPlan) -> StudyCreated:
    """Sample a study now. Raises as `curation.judging.studies.sample_study`."""
    with writing(actor, RIGHT) as session:
        return sample_study(session, wanted, created_by=actor.name)


def create_from_file(
    actor: Actor, wanted: StudyFilePlan, *, upload: Upload | None = None
) -> "StudyOfFile":
    """Create a study of a file's items, and the dataset of its texts, on which the actor has their
    rights. The file is one of the server, an admin's; an `upload` is its name and content.

    Raises Refused, and as `curation.questions.study_file.study_from_file`.
    """
    from curation.questions.questions_file import read_questions  # here: they load readers
    from curation.questions.study_file import study_from_file

    require(actor, "server" if upload is None else "upload")
    questions = read_questions(wanted.questions, wanted.questions_file)
    with _uploaded(upload, wanted.items_file) as file, writing(actor, RIGHT) as session:
        made = study_from_file(
            session,
            file,
            questions,
            overlap=wanted.overlap,
            name=wanted.name,
            guidelines=wanted.guidelines,
            seed=wanted.seed,
            created_by=actor.name,
        )
        if wanted.close_when_done:
            set_rules(session, made.id, closes_when_done=True)
        return made


def preview(actor: Actor, questions: str, upload: Upload | None = None) -> tuple[CardItem, ...]:
    """The items of the first card of an uploaded file, or of an example, as a judge has them.

    Raises BadInput and BadRows as creating it does.
    """
    from curation.questions.preview import card_of_file
    from curation.questions.questions_file import read_questions

    require(actor, RIGHT)
    entries = read_questions(questions, "the questions").entries
    with _uploaded(upload, "") as file:
        items = card_of_file(entries, None if upload is None else file)
    return tuple(
        card_item(one, before=last) for last, one in zip((None, *items), items, strict=False)
    )


@contextmanager
def _uploaded(upload: Upload | None, path: str) -> Iterator[Path]:
    """The file of this path, or an uploaded one in a folder that is removed afterwards."""
    with temporary_folder("inf-study-") as folder:
        file = Path(path)
        if upload is not None:
            name, content = upload
            file = folder / Path(name).name
            file.write_bytes(content)
        yield file


def create_as_job(actor: Actor, wanted: StudyPlan, launch: Launch[T]) -> T:
    """Let a job sample a study. Raises NotFound for an unknown dataset before it is launched."""
    with reading(actor, RIGHT) as session:
        get_dataset(session, wanted.dataset)
    return launch(actor, "study", wanted)


def list_all(
    actor: Actor,
    dataset: str | None = None,
    *,
    statuses: Sequence[str] = (),
    right: str = RIGHT,
) -> Listed[StudySummary]:
    """List studies, newest first, with their progress."""
    with reading(actor, right) as session:
        dataset_id = None if dataset is None else get_dataset(session, dataset).id
        found = studies.list_studies(session, dataset_id=dataset_id, statuses=tuple(statuses))
    return Listed[StudySummary].all(found)


def show(actor: Actor, study_id: int) -> StudyShown:
    """Show one study: its sample, progress and judges. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        row = studies.summarise_study(session, study_id).model_dump()
        composition = asdict(studies.compose(session, study_id))
        judges = studies.judge_progress(session, study_id)
        settings = studies.get_study(session, study_id).settings
    return StudyShown(**row, **composition, settings=settings, judges=tuple(judges))


def judge(actor: Actor, wanted: JudgeStart, launch: Launch[T]) -> T:
    """Let a model answer what it has not judged yet of a study, or of a run's groups.

    Raises NotFound, and BadInput for a name of no judge, before it is launched.
    """
    with reading(actor, RIGHT) as session:
        if wanted.study_id is not None:
            studies.get_study(session, wanted.study_id)
        if wanted.run_id is not None:
            get_run(session, wanted.run_id)
    if wanted.judge is not None:
        require_judge(wanted.judge)
    return launch(actor, "judge", wanted)


def lease_items(actor: Actor, wanted: ItemsLease) -> ItemsLeased:
    """Lease blind items to a program of the actor's that judges: see `curation.judging.leases`."""
    with writing(actor, RIGHT) as session:
        return leases.lease(session, wanted, person=actor.name)


def record_answers(actor: Actor, wanted: AnswersRecord) -> AnswersRecorded:
    """Store answers to items that were leased to the actor's program, all or none."""
    with writing(actor, RIGHT) as session:
        return leases.record(session, wanted, person=actor.name)


def change(actor: Actor, wanted: StudyChange) -> StudyChanged:
    """Change status, judges per item or guidelines of a study, all of it or nothing.

    A closed one stays closed. Raises NotFound, Refused, BadInput.
    """
    study_id, status, overlap = wanted.study_id, wanted.status, wanted.overlap
    with writing(actor, RIGHT) as session:
        found = studies.get_study(session, study_id)
        if status is not None:
            was = found.status
            studies.set_status(session, study_id, status)
            record_event(session, actor.name, f"study.{status}", study_id)
            if status == "closed" != was:
                record_event(session, actor.name, "study.finished", study_id)
        if overlap is not None:
            studies.extend_overlap(session, study_id, overlap)
            record_event(session, actor.name, "study.overlap", study_id, overlap=overlap)
        if wanted.guidelines is not None:
            text = wanted.guidelines
            made = studies.write_guideline(session, study_id, text, created_by=actor.name)
            record_event(session, actor.name, "study.guideline", study_id, version=made.version)
        return _changed(session, study_id)


def close(actor: Actor, study_id: int) -> StudyChanged:
    """Close a study for good: answers become final. Raises NotFound."""
    return change(actor, StudyChange(study_id=study_id, status="closed"))


def add_example(actor: Actor, wanted: StudyExample) -> StudyChanged:
    """Add an item with an answer, right or wrong, to the guidelines, as their next version.

    Whoever does it has read the item's group. Raises NotFound, BadInput, and Refused for an item
    that people judge.
    """
    study_id = wanted.study_id
    with writing(actor, RIGHT) as session:
        given = wanted.model_dump()
        version = examples.add_example(session, **given, created_by=actor.name).version
        if isinstance(actor, SessionUser):
            group_id = session.get_one(Item, wanted.item_id).group_id
            open_groups(session, [group_id], person=actor.name, where="example")
        noted = {"version": version, "item": wanted.item_id}
        record_event(session, actor.name, "study.guideline", study_id, **noted)
        return _changed(session, study_id)


def _changed(session: Session, study_id: int) -> StudyChanged:
    found = studies.get_study(session, study_id)
    return StudyChanged(
        id=study_id,
        name=found.name,
        status=found.status,
        overlap=found.overlap,
        guideline_version=studies.current_guideline(session, study_id).version,
    )


def judges(actor: Actor, study_id: int) -> Listed[JudgeRow]:
    """Every judge of a study with pace, quality and agreement with the others.

    Without the actor's own gold answers until it is closed: after each answer, a count would tell
    whether it was gold and right. Agreement is of items that are not hidden from the actor. Raises
    NotFound.
    """
    with reading(actor, RIGHT) as session:
        is_closed = studies.get_study(session, study_id).status == "closed"
        found = quality.judge_quality(session, study_id)
        own = judge_id_of(session, actor)
        hidden = reader_of(session, study_id, actor.name).left_out if own is not None else ()
        agreed = quality.agreement_with_others(session, study_id, without=hidden)
    rows = []
    for each in found:
        share, pairs = agreed.get(each.id, (None, 0))
        more = {**WITHOUT_GOLD, "doubt": ""} if each.id == own and not is_closed else {}
        rows.append(each.model_copy(update={"agreement": share, "compared": pairs, **more}))
    return Listed[JudgeRow].all(rows)


def change_judges(actor: Actor, wanted: JudgeChange) -> JudgesChanged:
    """Pause judges or let them in, return their items to the queue or give them `to` another one,
    set or unset their quota and due date: all of them or, where one is refused, none.

    Raises NotFound, BadInput without a reason, Refused.
    """
    study_id, moved, returned = wanted.study_id, 0, 0
    with writing(actor, RIGHT) as session:
        ids = quality.judges_of_study(session, study_id, wanted.judges)
        to = None
        if wanted.to is not None:
            (to,) = quality.judges_of_study(session, study_id, (wanted.to,))
        for judge_id in ids:
            detail: dict[str, Any] = {"judge": judge_id}
            if wanted.action == "pause":
                members.pause_judge(session, study_id, judge_id, wanted.reason)
            elif wanted.action == "let_in":
                members.readmit_judge(session, study_id, judge_id)
            elif wanted.action == "take_back":
                returned += places.return_leases(session, study_id, judge_id)
            elif to is not None:
                detail["to"] = to
                given = reassigning.reassign(session, study_id, judge_id, to)
                moved, returned = moved + given.moved, returned + given.returned
            else:
                share = members.set_share(
                    session, study_id, judge_id, quota=wanted.quota, due_on=wanted.due_on
                )
                detail |= {"quota": share.quota, "due_on": share.due_on and str(share.due_on)}
            record_event(session, actor.name, f"study.{NOTED[wanted.action]}", study_id, **detail)
    return JudgesChanged(action=wanted.action, judges=len(ids), moved=moved, returned=returned)


def recruit(actor: Actor, wanted: StudyRecruiting) -> RecruitingLink:
    """A new link for people of a platform, which ends the one before; it is not stored.

    Raises NotFound, and Refused as `db.people.recruiting.open_recruiting`.
    """
    given = wanted.model_dump()
    with writing(actor, RIGHT) as session:
        token = recruiting.open_recruiting(session, **given, actor=actor.name)
    query = recruiting.PLATFORMS[wanted.platform].query
    path = f"/recruited/{wanted.study_id}/{token}{query}"
    return RecruitingLink(study_id=wanted.study_id, platform=wanted.platform, path=path)


def write(actor: Actor, wanted: StudyMessage) -> SentRow:
    """Write to judges of a study, or to everyone in it, also who joins later.

    They read it on their card. Raises NotFound, BadInput, Refused for a closed study.
    """
    study_id = wanted.study_id
    with writing(actor, RIGHT) as session:
        to = quality.judges_of_study(session, study_id, wanted.to)
        made = announcements.announce(session, study_id, wanted.body, by=actor.name, to=to).id
        return next(one for one in announcements.sent(session, study_id) if one.id == made)


def messages(actor: Actor, study_id: int) -> Listed[SentRow]:
    """The messages to people of a study, newest first, and how many read each. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        return Listed[SentRow].all(announcements.sent(session, study_id))


def change_gold(actor: Actor, wanted: GoldChange, *, upload: Upload | None = None) -> GoldChanged:
    """Add gold or qualification items from a file or by sampling; set their rules.

    Its file is a place of the server, an admin's; an `upload` is its name and content. Who writes
    the answers of a file has seen the groups. Raises Refused, NotFound, BadInput, BadRows.
    """
    study_id, part = wanted.study_id, wanted.part
    if wanted.file is not None:
        require(actor, "server")
    with _uploaded(upload, wanted.file or "") as file, writing(actor, RIGHT) as session:
        is_given = wanted.file is not None or upload is not None
        added = add_from_file(session, study_id, part, file) if is_given else []
        if added and isinstance(actor, SessionUser):
            groups = [session.get_one(Item, item_id).group_id for item_id in added]
            open_groups(session, groups, person=actor.name, where="gold file")
        if wanted.sample is not None:
            added += sample_gold_items(session, study_id, part, wanted.sample)
        now = set_rules(session, study_id, **wanted.rules)
        noted = {"rules": dict(wanted.rules)} if wanted.rules else {}
        record_event(session, actor.name, f"study.{part}", study_id, items=len(added), **noted)
        total = studies.count_parts(session, study_id).get(part, 0)
    return GoldChanged(added=tuple(added), total=total, rules=now)


def change_rules(actor: Actor, wanted: RulesChange) -> StudyRules:
    """Set rules of a study; returns all. Raises as `db.study.rules.set_rules`."""
    with writing(actor, RIGHT) as session:
        record_event(session, actor.name, "study.rules", wanted.study_id, rules=dict(wanted.rules))
        return set_rules(session, wanted.study_id, **wanted.rules)


def rules(actor: Actor, study_id: int) -> StudyRules:
    """The rules of a study. Raises NotFound."""
    with reading(actor, RIGHT) as session:
        return rules_of(studies.get_study(session, study_id))


def guideline(actor: Actor, study_id: int, *, right: str = RIGHT) -> Guideline:
    """The current version of a study's guidelines, for who has this right. Raises NotFound."""
    with reading(actor, right) as session:
        return studies.current_guideline(session, study_id)


def runs_to_sample(actor: Actor, dataset_id: int) -> list[RunSummary]:
    """The runs of a dataset with groups that reached an end, from which a study is sampled."""
    with reading(actor, RIGHT) as session:
        return [run for run in list_runs(session, dataset_id) if run.kept + run.dropped]


def sampled_judges(actor: Actor, run_id: int, of_study: int | None) -> list[str]:
    """The judges whose disagreement can be sampled: of a run, or of an earlier study of it."""
    with reading(actor, RIGHT) as session:
        return judges_of_sample(session, run_id, of_study)


def template(actor: Actor, study_id: int, items: int = TEMPLATE_ROWS) -> str:
    """Unused items as JSON lines, in which the right answer and the reason are to be filled in.

    Raises BadInput where no group is left.
    """
    with reading(actor, RIGHT) as session:
        rows = template_rows(session, study_id, items)
    if not rows:
        raise BadInput(
            f"study {study_id} uses every group of its run: no items are left",
            "grow the run, or create a study of another one",
            code="study_groups_exhausted",
        )
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def tasks(actor: Actor, wanted: StudyTasks) -> dict[str, str]:
    """The files by name that hand a study's items to another tool: tasks and labelling config.

    Blind as the card is: no label, role or id of a passage; main items and gold. Raises NotFound.
    """
    from curation.questions.tasks import study_tasks  # here: nothing else needs it

    with reading(actor, RIGHT) as session:
        return study_tasks(session, wanted.study_id, wanted.tool)


def work(actor: Actor, wanted: WorkReport) -> Listed[WorkRow]:
    """The time and work report, of one study or of all.

    Without the actor's own gold answers of studies that are not closed, as in `judges`. Raises
    NotFound.
    """
    with reading(actor, RIGHT) as session:
        if wanted.study_id is not None:
            studies.get_study(session, wanted.study_id)
        closed = {each.id for each in studies.list_studies(session, statuses=("closed",))}
        own = judge_id_of(session, actor)
        rows = work_report(
            session, study_id=wanted.study_id, since=wanted.since, until=wanted.until
        )
    return Listed[WorkRow].all(
        [
            each
            if each.judge_id != own or each.study_id in closed
            else each.model_copy(update=WITHOUT_GOLD)
            for each in rows
        ]
    )


def adjudicate(actor: Actor, wanted: Adjudication) -> Adjudicated:
    """Decide an item by the label of its right candidate, as an admin. Raises as `adjudicate`."""
    with writing(actor, "accounts") as session:
        adjudication.adjudicate(
            session, wanted.study_id, wanted.item_id, wanted.choice, by=actor.name, note=wanted.note
        )
    decided = wanted.model_dump(exclude={"note"})
    return Adjudicated(**decided, decided_by=actor.name)
