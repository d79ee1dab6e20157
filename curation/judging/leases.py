"""Items leased to a program elsewhere, that answers as a model judge: a function of a notebook.

A leased item is what a person sees of it, named by a random token: texts in an order from the
system's random source, as one that can be computed would reveal the roles, and the program's owner
may read all that it gets. Leases are short, and renewed whenever their worker asks or answers; of
one that is over, the item is given to whoever asks next, and an answer that comes late is not
stored then. As every program's, the answers take no place from people.
"""

from collections import Counter
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from sqlalchemy import Select, delete, func, select, update
from sqlalchemy.orm import Session

from curation.judges.function import PROVIDER, name_of
from curation.judging.request import AnswersRecord, ItemsLease, LeaseAnswer
from curation.judging.studies import closed
from db.assignment.places import lock_study
from db.assignment.shown_items import ShownItem, random_order, show_all
from db.errors import Refused
from db.events import record_event
from db.rows import Row, SparseRow
from db.run.new_items import question_of
from db.store.bulk import insert_of
from db.study.judgments import (
    count_known,
    current_judgment,
    find_judgment,
    get_or_create_judge,
    has_judged,
    record_judgment,
)
from db.study.studies import current_guideline
from db.tables import Item, Judge, Judgment, ProgramLease, Study, StudyItem, utc_now
from db.tables.judging import new_token

LEASE = timedelta(minutes=2)
EVENT = "lease:{token}"


class AskedQuestion(SparseRow):
    """A question as it is asked; `labels`: of a grade, its numbers with their meanings."""

    name: str
    kind: str
    labels: dict[str, str]
    prompt_sha256: str
    text: str = ""


class LeasedItem(Row):
    """An item as its judge sees it: texts, and what is asked; `lease` names it to this program.

    `about`: the place of the candidate that it asks about, "query" or "instruction"; null for all.
    """

    lease: str
    instruction: str
    query: str
    candidates: tuple[str, ...]
    question: AskedQuestion
    about: int | str | None


class ItemsLeased(Row):
    """Items that a program holds for some `seconds`; `waiting` of the study's are not answered by
    its judge, these and those that other programs hold among them."""

    judge: str
    data: tuple[LeasedItem, ...]
    waiting: int
    seconds: int


class AnswersRecorded(Row):
    """How many answers were stored, were stored before, or came late; `waiting` as of leases."""

    stored: int
    repeated: int
    late: int
    waiting: int


def lease(session: Session, wanted: ItemsLease, *, person: str) -> ItemsLeased:
    """The items that a worker holds from now on; those it held come first.

    Raises NotFound, Refused for a closed study, BadInput for a label without visible text. Does not
    commit.
    """
    study = _open_study(session, wanted.study_id)
    judge = _judge(session, wanted)
    now = utc_now()
    own = (
        ProgramLease.study_id == study.id,
        ProgramLease.judge_id == judge.id,
        ProgramLease.person == person,
        ProgramLease.worker == wanted.worker,
        ProgramLease.lease_until > now,
    )
    until = now + LEASE
    session.execute(update(ProgramLease).where(*own).values(lease_until=until))
    held = session.scalar(select(func.count(ProgramLease.id)).where(*own)) or 0
    free = _free(session, study.id, judge.id, wanted.count - held)
    over = ProgramLease.item_id.in_([item.id for item in free])
    session.execute(delete(ProgramLease).where(ProgramLease.judge_id == judge.id, over))
    rows = [
        {
            "study_id": study.id,
            "item_id": item.id,
            "judge_id": judge.id,
            "person": person,
            "worker": wanted.worker,
            "token": new_token(),
            "order_shown": random_order(item),
            "shown_at": utc_now(),
            "lease_until": until,
        }
        for item in free
    ]
    if rows:  # in another study, a program of this judge may have taken an item meanwhile
        insert = insert_of(session)(ProgramLease).values(rows)
        session.execute(insert.on_conflict_do_nothing())
    mine = select(ProgramLease).where(*own).order_by(ProgramLease.id).limit(wanted.count)
    waiting = _waiting(session, study.id, judge.id)
    return ItemsLeased(
        judge=judge.name,
        data=tuple(_shown(one) for one in show_all(session, session.scalars(mine).all())),
        waiting=waiting,
        seconds=int(LEASE.total_seconds()),
    )


def record(session: Session, wanted: AnswersRecord, *, person: str) -> AnswersRecorded:
    """Store answers to items that were leased for this person, and renew their worker's leases.

    One is late where its item was given to another program, or answered by it. Raises NotFound,
    Refused for a closed study or for another answer under a lease than was stored, and BadInput for
    what is no answer; nothing is stored then. Does not commit.
    """
    study = _open_study(session, wanted.study_id)
    tokens = [*(one.lease for one in wanted.answers), *wanted.returned]
    mine = (ProgramLease.study_id == study.id, ProgramLease.person == person)
    query = select(ProgramLease).where(*mine, ProgramLease.token.in_(tokens))
    held = {one.token: one for one in session.scalars(query)}
    workers = {(one.judge_id, one.worker) for one in held.values()}
    judges = {judge_id for judge_id, _ in workers}
    guideline_id = current_guideline(session, study.id).id
    counts, by_judge = Counter[str](), Counter[int]()
    for answer in wanted.answers:
        before = find_judgment(session, EVENT.format(token=answer.lease))
        if before is not None and before.study_id == study.id:
            _require_same(session, before, answer)
            judges.add(before.judge_id)
            counts["repeated"] += 1
            continue
        one = held.get(answer.lease)
        if one is None or current_judgment(session, one.judge_id, one.item_id) is not None:
            counts["late"] += 1
            continue
        item = session.get_one(Item, one.item_id)
        record_judgment(
            session,
            judge_id=one.judge_id,
            item_id=item.id,
            choice=question_of(session, item).chosen(one.order_shown, answer.choice),
            order_shown=one.order_shown,
            event_id=EVENT.format(token=answer.lease),
            study_id=study.id,
            guideline_id=guideline_id,
            shown_at=one.shown_at,
        )
        by_judge[one.judge_id] += 1
    session.execute(delete(ProgramLease).where(*mine, ProgramLease.token.in_(tokens)))
    until = utc_now() + LEASE
    for judge_id, worker in workers:
        of_worker = (ProgramLease.judge_id == judge_id, ProgramLease.worker == worker)
        session.execute(update(ProgramLease).where(*mine, *of_worker).values(lease_until=until))
    for judge_id, number in by_judge.items():
        of, about = ("study", study.id), {"judge": judge_id, "judgments": number}
        record_event(session, person, "judgment.stored", of, **about)
    waiting = sum(_waiting(session, study.id, judge_id) for judge_id in judges)
    return AnswersRecorded(
        stored=by_judge.total(), repeated=counts["repeated"], late=counts["late"], waiting=waiting
    )


def _open_study(session: Session, study_id: int) -> Study:
    study = lock_study(session, study_id)
    if study.status == "closed":
        raise closed(study_id)
    return study


def _judge(session: Session, wanted: ItemsLease) -> Judge:
    name = name_of(wanted.label, wanted.model)
    judge = get_or_create_judge(session, name, kind="model", provider=PROVIDER, model=wanted.model)
    if (judge.provider, judge.model) != (PROVIDER, wanted.model):
        raise Refused(
            f"the judge {name} is of another source",
            "give the function another label",
            code="judge_of_another_source",
        )
    return judge


def _free(session: Session, study_id: int, judge_id: int, count: int) -> Sequence[Item]:
    """The next items that the judge has not answered and no program of it holds."""
    if count < 1:
        return ()
    held = select(ProgramLease.id).where(
        ProgramLease.item_id == StudyItem.item_id,
        ProgramLease.judge_id == judge_id,
        ProgramLease.lease_until > utc_now(),
    )
    query = _unanswered(select(Item), study_id, judge_id).where(~held.exists())
    return session.scalars(query.order_by(StudyItem.position, Item.id).limit(count)).all()


def _waiting(session: Session, study_id: int, judge_id: int) -> int:
    """How many items the judge has to answer; what it answered elsewhere counts once none is."""
    query = _unanswered(select(func.count(Item.id)), study_id, judge_id)
    waiting = session.scalar(query) or 0
    if not waiting:
        count_known(session, study_id, judge_id)
    return waiting


def _unanswered(query: Select[Any], study_id: int, judge_id: int) -> Select[Any]:
    return query.join(StudyItem, StudyItem.item_id == Item.id).where(
        StudyItem.study_id == study_id,
        StudyItem.part == "main",
        ~has_judged(judge_id, StudyItem.item_id),
    )


def _require_same(session: Session, before: Judgment, answer: LeaseAnswer) -> None:
    item = session.get_one(Item, before.item_id)
    if before.choice != question_of(session, item).chosen(before.order_shown, answer.choice):
        raise Refused(
            "an item was answered otherwise under this lease",
            "lease the items anew",
            code="lease_answered",
        )


def _shown(one: ShownItem) -> LeasedItem:
    return LeasedItem(
        lease=one.token,
        instruction=one.instruction,
        query=one.query,
        candidates=one.candidates,
        question=AskedQuestion.model_validate(one.question.body()),
        about=one.about,
    )
