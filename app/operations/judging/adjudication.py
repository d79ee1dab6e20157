"""Adjudication on the judging card: store the decisions that it sent, give the next disputed items.

Blind as `db.study.blind_adjudication` is: an item comes under a token of the adjudicator's own,
people's answers as counts, without roles, names and models' answers before a reveal, which is
recorded. A decision is stored once, however often it arrives; nothing is leased, so of two
adjudicators the first to decide an item has decided it.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pydantic import Field
from sqlalchemy.orm import Session

from app.access.identity import Actor
from app.operations.acting import admitted, reading, writing
from app.operations.judging.card import CardEntry, CardJudge, CardQuestion
from app.operations.judging.outbox import (
    MAX_EVENT_CHARACTERS,
    MAX_EVENTS,
    answer_of,
    event_of,
    malformed,
    moment_of,
    note_of,
    token_of,
    whole_number,
)
from curation.rules.language import lang_of
from db.errors import InfError, NotFound
from db.question import PICK, Shown
from db.rows import Row, SparseRow
from db.study import adjudication, blind_adjudication
from db.study.blind_adjudication import BlindItem
from db.study.judgments import ADJUDICATOR, get_or_create_judge
from db.study.studies import get_study
from db.values import is_storable

RIGHT = "adjudicate"
SHOWN_AHEAD = 5
EARLIER_DECISIONS = 10  # sent at once to who goes back after a reload
MAX_TOKENS = 500


class Remark(Row):
    """A note, a flag or a skip of a person; `judge` after a reveal."""

    judge: str
    kind: str
    reason: str
    note: str


class Talk(Row):
    """A thread of a judge with the curators, of a closed study: (who, message), and where each
    passage of the judge's screen stands here."""

    messages: tuple[tuple[str, str], ...]
    places: tuple[int, ...]


class Reveal(Row):
    """What a reveal adds: roles by place, who chose which option, the decision that stands."""

    roles: tuple[str, ...]
    judges: tuple[tuple[str, ...], ...]
    decided_by: str
    decision: str


class DisputedItem(Row):
    """A disputed item as its card has it: `votes` of people go by `options`, and so do `judges`.

    `decided`: there is a decision, which another replaces; the adjudicator's own is in `entry`.
    """

    token: str
    instruction: str
    query: str
    candidates: tuple[str, ...]
    langs: tuple[str, ...]
    question: CardQuestion | None
    about: int | str | None
    options: tuple[Shown, ...]
    votes: tuple[int, ...]
    remarks: tuple[Remark, ...]
    threads: tuple[Talk, ...]
    decided: bool
    revealed: Reveal | None


class Decided(Row):
    """A decision of the adjudicator with its item."""

    item: DisputedItem
    entry: CardEntry


class AdjudicationCard(SparseRow):
    """What an adjudicator's card shows, as `app.operations.judging.card.Card` is for a judge.

    `revealed`: the items whose reveal was requested with this call. `done`: decided items of the
    study, `left`: those to decide.
    """

    judge: CardJudge = Field(exclude=True)
    study: int
    items: tuple[DisputedItem, ...]
    revealed: tuple[DisputedItem, ...]
    past: tuple[Decided, ...]
    past_before: str | None
    acknowledged: dict[str, str]
    message: str
    finished: bool
    done: int
    left: int


def study_to_show(actor: Actor, study_ids: Sequence[int]) -> int:
    """The newest study on which people disagree; else the newest that one judged, else the newest.

    study_ids: newest first, at least one.
    """
    with reading(actor, RIGHT) as session:
        for has in (adjudication.is_disputed, adjudication.is_judged):
            for study_id in study_ids:
                if has(session, study_id):
                    return study_id
    return study_ids[0]


def is_judged(actor: Actor, study_id: int) -> bool:
    """Whether a person has judged an item of the study, assigned or imported."""
    with reading(actor, RIGHT) as session:
        return adjudication.is_judged(session, study_id)


def decide_and_show(
    actor: Actor,
    study_id: int,
    events: Sequence[Any],
    *,
    before: str | None = None,
    aside: Sequence[Any] = (),
    first: int | None = None,
    include_agreed: bool = False,
    reword: Callable[[InfError], str] = str,
) -> AdjudicationCard:
    """Store what an adjudicator's card sent and show the next items, whose view is recorded.

    `before` as of `answer_and_lease`; `aside`: tokens of items to decide later; `first`: an item to
    begin with, decided or not. Raises Refused without the right, NotFound for an unknown study.
    """
    acknowledged: dict[str, str] = {}
    to_reveal: list[str] = []
    with admitted(actor, RIGHT) as (session, user):
        get_study(session, study_id)
        judge = get_or_create_judge(session, ADJUDICATOR + user.name, kind="adjudicator")
        for entry in list(events)[:MAX_EVENTS]:
            event = event_of(entry)
            if event is None:
                continue
            try:
                with session.begin_nested():
                    token = _store(session, entry, event, user.name)
                    if token is not None and entry.get("study") == study_id:
                        to_reveal.append(token)
                acknowledged[event] = ""
            except InfError as error:
                acknowledged[event] = reword(error)
        shown_judge = CardJudge.of(judge)
    # it counts all judgments of the study: nobody waits for it
    with reading(user, RIGHT) as session:
        every = blind_adjudication.ids_to_adjudicate(
            session, study_id, user.name, include_agreed=include_agreed, named=first
        )
        decided = adjudication.decided_ids(session, study_id)
        to_decide = {item_id for item_id in every if item_id not in decided}
        later = set(_items_shown(session, study_id, aside, user.name))
        cards = blind_adjudication.cards_to_adjudicate(session, study_id, every, user.name)
        waiting = [[one for one in card if one in to_decide and one not in later] for card in cards]
        message = ""
        if first in every:
            waiting = [[first], *([one for one in card if one != first] for card in waiting)]
        elif first is not None:
            message = reword(
                NotFound(
                    f"item {first} of study {study_id} is not yours to decide",
                    "nobody has answered it, or it was given to you to judge",
                    code="item_not_to_decide",
                )
            )
        past = (
            blind_adjudication.own_decisions(
                session, study_id, user.name, before=before, count=EARLIER_DECISIONS
            )
            if before is not None
            else []
        )
    with writing(user, RIGHT) as session:

        def shown(item_ids: Sequence[int]) -> list[DisputedItem]:
            found = blind_adjudication.view_card(session, study_id, item_ids, user.name)
            return list(map(disputed_item, found))

        items: list[DisputedItem] = []
        for each in waiting:
            if len(items) < SHOWN_AHEAD:
                items += shown(each)
        revealed = shown(_items_shown(session, study_id, to_reveal, user.name))
        earlier = tuple(
            Decided(
                item=shown([item_id])[0],
                entry=CardEntry(position=position, note=note, flagged=False, reason=""),
            )
            for item_id, position, note in past
        )
    return AdjudicationCard(
        judge=shown_judge,
        study=study_id,
        items=tuple(items),
        revealed=tuple(revealed),
        past=earlier,
        past_before=before,
        acknowledged=acknowledged,
        message=message if not items else "",
        finished=not items,
        done=len(every) - len(to_decide),
        left=len(to_decide),
    )


def disputed_item(item: BlindItem) -> DisputedItem:
    """The item as it is sent: nothing of it names a role or a person before a reveal."""
    of, everything = item.question, item.revealed
    question = None
    if of is not PICK:
        fields = {name: getattr(of, name) for name in ("name", "kind", "text")}
        question = CardQuestion(**fields, labels=tuple(of.labels.items()))
    if everything is None:
        remarks = tuple(
            Remark(judge="", kind="flag" if flagged else "note", reason=reason, note=note)
            for note, flagged, reason in item.remarks
        )
    else:
        remarks = tuple(
            Remark(
                judge=one.judge,
                kind="skip" if one.choice == "skipped" else "flag" if one.flagged else "note",
                reason=one.reason,
                note=one.note,
            )
            for one in (*everything.answers, *everything.skips)
            if one.note or one.flagged or one.reason
        )
    return DisputedItem(
        token=item.token,
        instruction=item.instruction,
        query=item.query,
        candidates=item.candidates,
        langs=tuple(map(lang_of, (item.instruction, item.query, *item.candidates))),
        question=question,
        about=item.about,
        options=item.options,
        votes=item.votes,
        remarks=remarks,
        threads=tuple(map(Talk.of, item.threads)),
        decided=item.decided is not None or item.decided_by_another,
        revealed=None if everything is None else _revealed(item),
    )


def _revealed(item: BlindItem) -> Reveal:
    found = item.revealed
    assert found is not None
    names: list[tuple[str, ...]] = []
    for option in item.options:
        label = item.question.chosen(item.labels, option)
        names.append(
            tuple(
                one.judge
                + (" (simulated)" if one.simulated else "")
                + (" (faster than the minimum time)" if one.too_fast else "")
                for one in found.answers
                if one.choice == label
            )
        )
    return Reveal(
        roles=tuple(label.replace("_", " ") for label in item.labels),
        judges=tuple(names),
        decided_by=found.decided_by,
        decision=(found.decision or "").replace("_", " "),
    )


def _store(session: Session, entry: Mapping[str, Any], event: str, person: str) -> str | None:
    """Store an entry; the token of the item that it reveals, None of a decision."""
    study_id, token = whole_number(entry, "study"), token_of(entry)
    if len(event) > MAX_EVENT_CHARACTERS:
        raise malformed("the event's id is too long")
    if entry.get("kind") == "reveal":
        blind_adjudication.reveal(session, study_id, token, person)
        return token
    if entry.get("kind") != "pick":
        raise malformed(f"unknown kind of decision: {entry.get('kind')!r:.40}")
    blind_adjudication.decide(
        session,
        study_id,
        token,
        answer_of(entry),
        by=person,
        note=note_of(entry),
        event=event,
        change=entry.get("change") is True,
        shown_at=moment_of(entry, "shown"),
        decided_at=moment_of(entry, "decided"),
    )
    return None


def _items_shown(session: Session, study_id: int, tokens: Sequence[Any], person: str) -> list[int]:
    """The items of a browser's tokens, whatever else it sent in their place."""
    given = [one for one in list(tokens)[:MAX_TOKENS] if isinstance(one, str) and is_storable(one)]
    return list(blind_adjudication.items_shown(session, study_id, given, person).values())
