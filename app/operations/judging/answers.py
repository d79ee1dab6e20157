"""A judge's own answers in studies that are not closed: look at, change, write about them.

Only what the judge saw and did: texts in the order shown, under the assignment's token.
"""

from datetime import date

from app.access.identity import Actor, SessionUser
from app.operations.acting import admitted, reading
from app.operations.judging.card import RIGHT, judge_id_of, judge_of
from curation.judging.request import AnswerChange, JudgeMessage
from db.answers import announcements
from db.answers.announcements import ReceivedRow
from db.answers.own_answers import OwnAnswer, count_answers, own_answers
from db.assignment import guidelines, threads
from db.assignment.answering import Decision, submit_decision
from db.assignment.places import assignment_of_token
from db.people import recruiting
from db.rows import Row
from db.run.new_items import question_of
from db.study.judgments import current_judgment
from db.tables import Guideline, Item, StudyJudge, utc_now


class OwnDesk(Row):
    """How many items a judge is given and until when, where there is a limit; messages to them."""

    quota: int | None = None
    due_on: date | None = None
    messages: tuple[ReceivedRow, ...] = ()

    @property
    def unread(self) -> tuple[ReceivedRow, ...]:
        """The messages that they have not read, oldest first."""
        return tuple(one for one in reversed(self.messages) if one.read_at is None)


def list_some(
    actor: Actor, study_id: int, only: str = "all", *, start: int = 0, count: int = 10
) -> tuple[list[OwnAnswer], int]:
    """A page of the actor's answers in a study, and how many there are; threads become read."""
    with admitted(actor, RIGHT) as (session, user):
        judge_id = judge_of(session, user).id
        found = own_answers(session, study_id, judge_id, only=only, start=start, count=count)
        total = count_answers(session, study_id, judge_id, only=only)
        items = [one.item.item_id for one in found if one.thread]
        threads.mark_read(session, study_id, judge_id, items, by_judge=True)
    return found, total


def count_replies(actor: Actor, study_id: int) -> int:
    """In how many threads a curator's message waits for the actor."""
    with admitted(actor, RIGHT) as (session, user):
        return len(threads.unread_replies(session, study_id, judge_of(session, user).id))


def change(actor: Actor, wanted: AnswerChange) -> bool:
    """Store what was chosen on the screen as the new answer, keeping note and flag.

    Whether it was another one: the same changes nothing. Raises as
    `db.assignment.answering.submit_decision`.
    """
    study_id, position = wanted.study_id, wanted.position
    with admitted(actor, RIGHT) as (session, user):
        judge_id = judge_of(session, user).id
        assignment = assignment_of_token(session, study_id, judge_id, wanted.token)
        item_id, order = assignment.item_id, assignment.order_shown
        before = current_judgment(session, judge_id, item_id)
        question = question_of(session, session.get_one(Item, item_id))
        if before and before.choice == question.chosen(order, position):
            return False
        decision = Decision(
            # of the answer that it replaces: a click that arrives twice changes once
            event_id=f"answers:{judge_id}/{before.id if before else 0}"
            f"/{-1 if position is None else position}",
            item_id=item_id,
            position=position,
            decided_at=utc_now(),
            note=before.note if before else "",
            flagged=bool(before and before.flagged),
            reason=before.reason if before else "",
            change=True,
        )
        submit_decision(session, study_id, judge_id, decision)
        return True


def desk(actor: Actor, study_id: int) -> OwnDesk:
    """What a study's curators set and wrote for the actor as its judge."""
    with reading(actor, RIGHT) as session:
        judge_id = judge_id_of(session, actor)
        member = judge_id and session.get(StudyJudge, (study_id, judge_id))
        if not judge_id or not member:
            return OwnDesk()
        found = announcements.received(session, study_id, judge_id)
        return OwnDesk(quota=member.quota, due_on=member.due_on, messages=tuple(found))


def recruited_into(actor: Actor) -> int | None:
    """The study that a platform sent the actor to, if one did."""
    with reading(actor, RIGHT) as session:
        if not isinstance(actor, SessionUser) or actor.account_id is None:
            return None
        return recruiting.recruited_into(session, actor.account_id)


def guidelines_read(actor: Actor, study_id: int) -> Guideline | None:
    """The newest version of a study's guidelines that the actor has read as its judge, if any."""
    with reading(actor, RIGHT) as session:
        judge_id = judge_id_of(session, actor)
        return None if judge_id is None else guidelines.last_read(session, study_id, judge_id)


def read_messages(actor: Actor, study_id: int, up_to: int) -> None:
    """Record that the actor has read the messages to people of a study, up to this one."""
    with admitted(actor, RIGHT) as (session, user):
        announcements.mark_read(session, study_id, judge_of(session, user).id, up_to)


def write(actor: Actor, wanted: JudgeMessage) -> None:
    """Send the actor's message."""
    study_id, token = wanted.study_id, wanted.token
    with admitted(actor, RIGHT) as (session, user):
        judge_id = judge_of(session, user).id
        item_id = assignment_of_token(session, study_id, judge_id, token).item_id
        event_id = f"answers:{judge_id}/{token}/{wanted.written}"
        threads.write_as_judge(session, study_id, judge_id, item_id, wanted.body, event_id=event_id)
