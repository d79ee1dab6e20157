"""The judging card: store the decisions that it sent, lease the next items, read what it shows.

A decision names its item by the assignment's token; storing it twice stores one judgment. What a
browser receives of this is made by its door (`app.judge.actions`).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from app.access.identity import Actor, SessionUser, owner
from app.operations.acting import admitted, reading, writing
from app.operations.judging.outbox import store_outbox, studies_named
from app.operations.judging.qualification import answer_examples, example_now
from db.answers.own_answers import OwnAnswer, own_answers
from db.assignment import guidelines
from db.assignment.leasing import hold_items
from db.assignment.members import gold_is_due, pause_on_failed_gold
from db.assignment.progress import OwnProgress, own_progress
from db.assignment.qualification import QualificationState
from db.assignment.shown_items import ShownItem, show_all
from db.assignment.standing import standings
from db.assignment.threads import Message, threads_and_replies
from db.errors import InfError, Refused
from db.study.judgments import get_or_create_judge
from db.tables import Assignment, Judge

RIGHT = "judge"
LEASED_AHEAD = 5
EARLIER_ANSWERS = 10  # sent at once to who goes back after a reload
UNREAD = Refused(
    "the guidelines have changed", "read the new version first", code="guidelines_changed"
)


@dataclass(frozen=True)
class Card:
    """What a judge's card shows: items with threads, or an example of the qualification.

    `acknowledged` and `notices` by event: "" or why it was refused, and what the judge has to know.
    `message`: why there are no items. `read_version`: the guidelines that answers are given under.
    """

    judge: Judge
    items: list[ShownItem]
    threads: Mapping[int, Sequence[Message]]
    replies: int
    qualification: tuple[QualificationState, ShownItem] | None
    past: list[OwnAnswer]
    acknowledged: dict[str, str]
    feedback: list[dict[str, Any]]
    notices: dict[str, str]
    message: str
    read_version: int | None
    is_unread: bool
    progress: OwnProgress


def judge_of(session: Session, actor: Actor) -> Judge:
    """The actor's judge. Raises Refused if a model has the same name. Does not commit."""
    account_id = actor.account_id if isinstance(actor, SessionUser) else None
    return get_or_create_judge(session, actor.name, kind="person", account_id=account_id)


def answer_and_lease(
    actor: Actor,
    study_id: int,
    events: Sequence[Any],
    *,
    before: str | None = None,
    shown: int | None = None,
    reword: Callable[[InfError], str] = str,
) -> Card:
    """Store what a card sent and lease its next items: all in one transaction.

    Answers to hidden gold are scored later, several together, in a transaction of their own.

    `before` requests the judge's answers older than that of this token ("": the last ones).
    `shown`: the version of the guidelines that the door shows, by default the newest. While a newer
    one is unread, the judge's leases are held, and no item is given. `reword` gives an error in the
    judge's language. Raises Refused without the right.
    """
    leased: list[Assignment] = []
    qualification: tuple[QualificationState, ShownItem] | None = None
    notices: dict[str, str] = {}
    message = ""
    with admitted(actor, RIGHT) as (session, user):
        judge = judge_of(session, user)
        there = standings(session, judge, study_id, studies_named(events))
        here = there[study_id]
        examples = answer_examples(session, there, judge.id, events, reword=reword)
        stored = store_outbox(session, there, examples.others, reword=reword, notices=notices)
        try:
            if here.is_qualified:
                leased = hold_items(session, here, LEASED_AHEAD, shown=shown)
            else:
                qualification = example_now(session, here, shown)
        except Refused as refused:
            message = reword(refused)
        if is_unread := not message and guidelines.has_new_guidelines(here):
            leased, qualification, message = [], None, reword(UNREAD)
    # what is only read waits for nobody, and nobody waits for it: the study's lock is free again
    with reading(user, RIGHT) as session:
        # as they were read: a session looks up what it holds before it asks the store
        judge, _study = session.merge(judge, load=False), session.merge(here.study, load=False)
        items = show_all(session, leased)
        item_ids = [one.item_id for one in items]
        threads, replies = threads_and_replies(session, study_id, judge.id, item_ids)
        past = [] if before is None else _past(session, study_id, judge.id, before)
        progress = own_progress(session, study_id, judge.id)
    counts = {"answered": progress.done, "left": progress.left}
    if gold_is_due(here.study, here.member, **counts):
        # the study's own rule, not the judge's act: their rights are not read once more
        with writing(owner(user.name), RIGHT) as session:
            pause_on_failed_gold(session, study_id, judge.id, **counts)
    return Card(
        judge=judge,
        items=items,
        threads=threads,
        replies=replies,
        qualification=qualification,
        past=past,
        acknowledged={**examples.answers, **stored},
        feedback=examples.feedback,
        notices=notices,
        message=message,
        read_version=here.read_version,
        is_unread=is_unread,
        progress=progress,
    )


def acknowledge(actor: Actor, study_id: int, version: int) -> None:
    """Record that the actor has read this version of the study's guidelines."""
    with admitted(actor, RIGHT) as (session, user):
        guidelines.acknowledge(session, study_id, judge_of(session, user).id, version)


def _past(session: Session, study_id: int, judge_id: int, before: str) -> list[OwnAnswer]:
    """The judge's earlier answers that may be changed, the last one first."""
    found = own_answers(session, study_id, judge_id, before=before, count=EARLIER_ANSWERS)
    return [one for one in found if one.may_change]
