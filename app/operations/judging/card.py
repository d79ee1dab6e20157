"""The judging card: store the decisions that it sent, lease the next items, read what it shows.

A decision names its item by the assignment's token; storing it twice stores one judgment. The rows
are what a browser receives: texts, tokens, and no label or id of an item (tests/app/
test_adversarial_annotator.py).
"""

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Any, Literal

from pydantic import Field
from sqlalchemy.orm import Session

from app.access.identity import Actor, SessionUser, owner
from app.operations.acting import admitted, reading, writing
from app.operations.judging.outbox import store_outbox, studies_named
from app.operations.judging.qualification import ExampleFeedback, answer_examples, example_now
from curation.rules.language import lang_of
from db.answers.own_answers import OwnAnswer, own_answers
from db.assignment import guidelines
from db.assignment.leasing import hold_items
from db.assignment.members import gold_is_due, pause_on_failed_gold
from db.assignment.progress import own_progress
from db.assignment.qualification import QualificationState
from db.assignment.shown_items import ShownItem, show_all
from db.assignment.standing import standings
from db.assignment.threads import Message, threads_and_replies
from db.errors import InfError, Refused
from db.question import PICK, Shown
from db.rows import Row, SparseRow
from db.study.judgments import get_or_create_judge, own_judge_id
from db.tables import Assignment, Judge

RIGHT = "judge"
LEASED_AHEAD = 5
EARLIER_ANSWERS = 10  # sent at once to who goes back after a reload
UNREAD = Refused(
    "the guidelines have changed", "read the new version first", code="guidelines_changed"
)
FIRST = Refused("the guidelines come first", "read and confirm them", code="guidelines_first")


class CardMessage(Row):
    """A message of the thread about an item; `mine`: the judge's own."""

    mine: bool
    body: str


class CardQuestion(Row):
    """What an item asks; `labels`: of a grade, its numbers with their meanings."""

    name: str
    kind: str
    text: str
    labels: tuple[tuple[str, str], ...]


class CardItem(SparseRow):
    """An item: its texts in this judge's order, under a token.

    The texts of a card are sent once: an item with the texts of the one before it has `same` in
    their place. `langs`: the tags of instruction, query and candidates. `question` and `about` (as
    of `ShownItem`) are left out of InF-IR's pick, whose words are the card's own; `round`: of an
    example of the qualification.
    """

    token: str
    same: bool = True
    instruction: str = ""
    query: str = ""
    candidates: tuple[str, ...] = ()
    langs: tuple[str, ...] = ()
    thread: tuple[CardMessage, ...] = ()
    question: CardQuestion | None = None
    about: int | str | None = None
    round: int | None = None


class CardEntry(SparseRow):
    """An answer as its judge gave it: the place on the screen."""

    kind: Literal["pick"] = "pick"
    position: Shown
    note: str
    flagged: bool
    reason: str


class CardAnswer(Row):
    """An earlier answer with its item."""

    item: CardItem
    entry: CardEntry


class CardJudge(Row):
    """Whose card it is; none of it is sent."""

    id: int
    name: str
    created_at: datetime


class Card(SparseRow):
    """What a judge's card shows: items with threads, or an example of the qualification.

    `acknowledged` and `notices` by event: "" or why it was refused, and what the judge has to know.
    `message`: why there are no items. `guidelines`: the version that answers are given under;
    `unread`: a newer one has to be read first. `pace`: seconds per item.
    """

    judge: CardJudge = Field(exclude=True)
    study: int
    items: tuple[CardItem, ...]
    past: tuple[CardAnswer, ...]
    past_before: str | None
    qualification: QualificationState | None
    feedback: tuple[ExampleFeedback, ...]
    acknowledged: dict[str, str]
    notices: dict[str, str]
    message: str
    guidelines: int | None
    unread: bool
    finished: bool
    done: int
    left: int
    pace: float | None
    replies: int


def judge_of(session: Session, actor: Actor) -> Judge:
    """The actor's judge. Raises Refused if a model has the same name. Does not commit."""
    account_id = actor.account_id if isinstance(actor, SessionUser) else None
    return get_or_create_judge(session, actor.name, kind="person", account_id=account_id)


def judge_id_of(session: Session, actor: Actor) -> int | None:
    """The id of the actor's judge; None where they have judged nothing."""
    account_id = actor.account_id if isinstance(actor, SessionUser) else None
    return own_judge_id(session, actor.name, account_id)


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
            leased, qualification = [], None
            message = reword(FIRST if here.read_version is None else UNREAD)
    # what is only read waits for nobody, and nobody waits for it: the study's lock is free again
    with reading(user, RIGHT) as session:
        # as they were read: a session looks up what it holds before it asks the store
        judge, _study = session.merge(judge, load=False), session.merge(here.study, load=False)
        _member = here.member and session.merge(here.member, load=False)
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
    sent: tuple[CardItem, ...]
    if qualification is not None:
        example = card_item(qualification[1])
        sent = (example.model_copy(update={"round": qualification[0].round}),)
    else:
        sent = tuple(
            card_item(item, threads.get(item.item_id, ()), before=last)
            for last, item in zip((None, *items), items, strict=False)
        )
    return Card(
        judge=CardJudge.of(judge),
        study=study_id,
        items=sent,
        past=tuple(map(_as_given, past)),
        past_before=before,
        qualification=qualification and qualification[0],
        feedback=tuple(examples.feedback),
        acknowledged={**examples.answers, **stored},
        notices=notices,
        message=message,
        guidelines=here.read_version,
        unread=is_unread,
        finished=not sent,
        done=progress.done,
        left=progress.left if sent or message else 0,
        pace=progress.seconds_per_item,
        replies=replies,
    )


def acknowledge(actor: Actor, study_id: int, version: int) -> None:
    """Record that the actor has read this version of the study's guidelines."""
    with admitted(actor, RIGHT) as (session, user):
        guidelines.acknowledge(session, study_id, judge_of(session, user).id, version)


def _past(session: Session, study_id: int, judge_id: int, before: str) -> list[OwnAnswer]:
    """The judge's earlier answers that may be changed, the last one first."""
    found = own_answers(session, study_id, judge_id, before=before, count=EARLIER_ANSWERS)
    return [one for one in found if one.may_change]


def _as_given(answer: OwnAnswer) -> CardAnswer:
    given = {name: getattr(answer, name) for name in ("position", "note", "flagged", "reason")}
    entry = CardEntry(kind="pick", **given)
    return CardAnswer(item=card_item(answer.item, answer.thread), entry=entry)


def card_item(
    item: ShownItem, thread: Sequence[Message] = (), *, before: ShownItem | None = None
) -> CardItem:
    """The item as it is sent behind the one `before`."""
    card, of = (item.group_id, item.candidates), item.question
    found: dict[str, Any] = {"same": True}
    if before is None or card != (before.group_id, before.candidates):
        found = {name: getattr(item, name) for name in ("instruction", "query", "candidates")}
        found["langs"] = tuple(map(lang_of, (item.instruction, item.query, *item.candidates)))
    if of is not PICK:
        question = {name: getattr(of, name) for name in ("name", "kind", "text")}
        found["question"] = CardQuestion(**question, labels=tuple(of.labels.items()))
        found["about"] = item.about
    messages = tuple(CardMessage(mine=not one.written_by, body=one.body) for one in thread)
    return CardItem(token=item.token, thread=messages, **found)
