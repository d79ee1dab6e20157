"""Adjudication without roles and names: an item as an adjudicator sees it first.

The candidates come in a random order of the adjudicator's own and without their roles, people's
choices without names, and no model's choice. Roles, names and models' choices are revealed on
request; the view records when, and a decision whether it was made after that.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from db.assignment.answering import times_within
from db.assignment.hidden import open_groups, record_opened
from db.assignment.places import find_assignment, return_item
from db.assignment.shown_items import place_in_card, random_order
from db.assignment.threads import items_with_threads, threads_of_item
from db.errors import Refused
from db.events import record_event
from db.question import Question, Shown, about_shown
from db.run.new_items import question_of
from db.store.bulk import insert_of
from db.study.adjudication import Disputed, adjudicate, disputed_ids, get_disputed
from db.study.judgments import ADJUDICATOR, of_person
from db.study.studies import get_study
from db.tables import (
    AdjudicationView,
    Assignment,
    Group,
    Item,
    Judge,
    Judgment,
    StudyItem,
    utc_now,
)
from db.tables.judging import new_token

MINUTES_OF_ANOTHER = 10  # for which an item that another adjudicator was shown comes last


@dataclass(frozen=True)
class ItemThread:
    """A thread about the item: (who, message), by "judge" and "curator" before a reveal.

    `places`: where each passage of the judge's screen stands here, as the messages name theirs.
    """

    messages: tuple[tuple[str, str], ...]
    places: tuple[int, ...]


@dataclass(frozen=True)
class BlindItem:
    """An item before it is revealed; `options` are the answers that may be decided for, as they are
    shown (`db.question.Shown`), and `votes` and `decided` go by them.

    `remarks` are people's notes, flags and reasons; `threads` are empty before the study is closed.
    `decided` is the adjudicator's own decision;
    `decided_by_another`: there is one of another adjudicator, not shown. `revealed` has everything,
    after the adjudicator asked for it.
    """

    token: str
    instruction: str
    query: str
    candidates: tuple[str, ...]
    question: Question
    about: int | str | None
    options: tuple[Shown, ...]
    votes: tuple[int, ...]
    remarks: tuple[tuple[str, bool, str], ...]
    decided: int | None
    decided_by_another: bool
    note: str
    revealed: Disputed | None
    labels: tuple[str, ...] = ()
    threads: tuple[ItemThread, ...] = ()


def ids_to_adjudicate(
    session: Session,
    study_id: int,
    person: str,
    *,
    open_only: bool = False,
    include_agreed: bool = False,
    named: int | None = None,
) -> list[int]:
    """The disputed items of a study; until it is closed without cards that the person was given.

    Gold is never disputed: a list that grew with the person's own flags and answers would name it.
    In a closed study also those with a thread; `named`: also this one, if people judged it. Raises
    NotFound.
    """
    talked_about = items_with_threads(session, study_id)
    found = disputed_ids(
        session,
        study_id,
        open_only=open_only,
        include_agreed=include_agreed,
        also=talked_about,
        named=named,
    )
    if get_study(session, study_id).status == "closed":
        return found
    card = aliased(Item)  # the items of a group are one card
    given = (
        select(card.id)
        .join(Item, Item.group_id == card.group_id)
        .join(Assignment, Assignment.item_id == Item.id)
        .join(Judge, Judge.id == Assignment.judge_id)
        .where(Assignment.study_id == study_id, of_person(person))
    )
    own = set(session.scalars(given))
    return [item_id for item_id in found if item_id not in own]


def cards_to_adjudicate(
    session: Session, study_id: int, ids: Sequence[int], person: str
) -> list[list[int]]:
    """The items as cards, in the order in which the person decides them.

    The questions about the same texts are one card, at the place of the most disputed of them; any
    other item is a card of its own. What they were shown comes first, what another adjudicator was
    shown a moment ago last.
    """
    viewed = select(AdjudicationView.item_id).where(AdjudicationView.study_id == study_id)
    since = utc_now() - timedelta(minutes=MINUTES_OF_ANOTHER)
    own = set(session.scalars(viewed.where(AdjudicationView.seen_by == person)))
    is_others = (AdjudicationView.seen_by != person, AdjudicationView.created_at > since)
    others = set(session.scalars(viewed.where(*is_others)))
    with_question = select(Item.id, Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
    has_question = (StudyItem.study_id == study_id, Item.question_id.is_not(None))
    groups = dict(session.execute(with_question.where(*has_question)).all())
    cards: dict[tuple[str, int], list[int]] = {}
    for item_id in ids:
        key = ("group", groups[item_id]) if item_id in groups else ("item", item_id)
        cards.setdefault(key, []).append(item_id)
    return sorted(
        cards.values(), key=lambda card: (own.isdisjoint(card), not others.isdisjoint(card))
    )


def view_card(
    session: Session, study_id: int, items: Sequence[int], person: str
) -> list[BlindItem]:
    """The items of a card as `view_item` has them, in the order of the judges' cards."""
    shown = [view_item(session, study_id, item_id, person) for item_id in items]
    names = get_study(session, study_id).settings.get("questions") or []
    return sorted(shown, key=lambda one: place_in_card(names, one.question, one.about))


def own_decisions(
    session: Session, study_id: int, person: str, *, before: str = "", count: int = 10
) -> list[tuple[int, Shown, str]]:
    """The person's decisions that stand, as (item, what was chosen on the screen, note), the last
    one first.

    `before`: those older than that on the item of this token.
    """
    query = (
        select(Judgment)
        .join(Judge, Judge.id == Judgment.judge_id)
        .join(AdjudicationView, AdjudicationView.item_id == Judgment.item_id)
        .where(
            Judge.name == ADJUDICATOR + person,
            Judge.kind == "adjudicator",
            Judgment.study_id == study_id,
            Judgment.is_current,
            AdjudicationView.study_id == study_id,
            AdjudicationView.seen_by == person,
        )
    )
    last = session.scalar(query.where(AdjudicationView.token == before)) if before else None
    if last is not None:
        query = query.where(Judgment.id < last.id)
    found = []
    for made in session.scalars(query.order_by(Judgment.id.desc()).limit(count)):
        question = question_of(session, session.get_one(Item, made.item_id))
        chosen = question.shown([str(label) for label in made.order_shown], made.choice)
        found.append((made.item_id, chosen, made.note))
    return found


def items_shown(
    session: Session, study_id: int, tokens: Sequence[str], person: str
) -> dict[str, int]:
    """The items that the person was shown under these tokens; without unknown ones."""
    query = select(AdjudicationView.token, AdjudicationView.item_id).where(
        AdjudicationView.study_id == study_id,
        AdjudicationView.seen_by == person,
        AdjudicationView.token.in_(tokens),
    )
    return dict(session.execute(query).all())


def orders_shown(session: Session, study_id: int, person: str) -> dict[int, list[str]]:
    """The order of the candidates of each item that the person was shown."""
    rows = session.execute(
        select(AdjudicationView.item_id, AdjudicationView.order_shown).where(
            AdjudicationView.study_id == study_id, AdjudicationView.seen_by == person
        )
    )
    return {item_id: [str(label) for label in order] for item_id, order in rows}


def view_item(session: Session, study_id: int, item_id: int, person: str) -> BlindItem:
    """The item as the adjudicator sees it; the first view is recorded. Does not commit.

    Who has seen others' choices is not given the item any more, and what they hold of it, leased
    between the list and this view, goes back to the queue. Raises NotFound.
    """
    disputed = get_disputed(session, study_id, item_id)
    view = _view(session, study_id, item_id, person)
    labels = tuple(str(label) for label in view.order_shown)
    texts = dict(disputed.candidates)
    people = [one for one in disputed.answers if one.kind == "person"]
    votes = Counter(one.choice for one in people)
    mine = disputed.decision is not None and disputed.decided_by == person
    question = disputed.question
    places = question.options(labels, [one.choice for one in disputed.answers])
    return BlindItem(
        token=view.token,
        instruction=disputed.instruction,
        query=disputed.query,
        candidates=tuple(texts[label] for label in labels),
        question=question,
        about=about_shown(disputed.scenario, labels),
        options=tuple(question.shown(labels, place) for place in places),
        votes=tuple(votes[label] for label in places),
        remarks=tuple(
            (one.note, one.flagged, one.reason)
            for one in (*people, *disputed.skips)
            if one.note or one.flagged or one.reason
        ),
        decided=places.index(disputed.decision) if mine and disputed.decision in places else None,
        decided_by_another=disputed.decision is not None and not mine,
        note=disputed.decision_note if mine else "",
        revealed=None if view.revealed_at is None else disputed,
        labels=() if view.revealed_at is None else labels,
        threads=_threads(session, view, labels),
    )


def record_view(session: Session, study_id: int, item_id: int, person: str) -> None:
    """Record that a person saw a judge's view of the item: it is not given to them any more.

    What they hold of it goes back to the queue. Raises NotFound. Does not commit.
    """
    _view(session, study_id, item_id, person)


def reveal(session: Session, study_id: int, token: str, person: str) -> None:
    """Reveal roles, names and models' choices to the adjudicator, and record it. Does not commit.

    The group counts as opened by them. Raises Refused without such a view.
    """
    view = _view_of_token(session, study_id, token, person)
    if view.revealed_at is not None:
        return
    view.revealed_at = utc_now()
    record_event(session, person, "study.reveal", study_id, item=view.item_id)
    group_id = session.get_one(Item, view.item_id).group_id
    open_groups(session, [group_id], person=person, where="adjudicate")
    record_opened(session, Group.id == group_id, person, "adjudicate")  # also in a closed study


def decide(
    session: Session,
    study_id: int,
    token: str,
    position: Shown,
    *,
    by: str,
    note: str = "",
    event: str = "",
    change: bool = True,
    shown_at: datetime | None = None,
    decided_at: datetime | None = None,
) -> Judgment:
    """Store the decision for what was chosen on the screen. Does not commit.

    `detail["revealed"]` of the judgment says whether it was made after a reveal. `event`: the
    card's; `change` as of `adjudicate`. Raises Refused without such a view, BadInput for what is no
    answer.
    """
    view = _view_of_token(session, study_id, token, by)
    if event:
        shown_at, decided_at = times_within(
            shown_at, decided_at, leased_at=view.created_at, now=utc_now()
        )
    question = question_of(session, session.get_one(Item, view.item_id))
    return adjudicate(
        session,
        study_id,
        view.item_id,
        question.chosen(view.order_shown, position),
        by=by,
        note=note,
        order_shown=[str(label) for label in view.order_shown],
        revealed=view.revealed_at is not None,
        event_id=event and f"adjudication:{token}/{event}",
        change=change,
        shown_at=shown_at,
        decided_at=decided_at,
    )


def _threads(
    session: Session, view: AdjudicationView, labels: Sequence[str]
) -> tuple[ItemThread, ...]:
    by_judge = threads_of_item(session, view.study_id, view.item_id)
    found = []
    for judge_id, messages in by_judge.items():
        order = find_assignment(session, view.study_id, judge_id, view.item_id).order_shown
        name = "judge" if view.revealed_at is None else session.get_one(Judge, judge_id).name
        found.append(
            ItemThread(
                messages=tuple(
                    (_writer(one.written_by, name, view.revealed_at is not None), one.body)
                    for one in messages
                ),
                places=tuple(labels.index(str(label)) for label in order),
            )
        )
    # in the order of their texts: that of judges' ids would tell them apart from item to item
    return tuple(sorted(found, key=lambda one: one.messages))


def _writer(written_by: str, judge: str, is_revealed: bool) -> str:
    if not written_by:
        return judge
    return written_by if is_revealed else "curator"


def _view(session: Session, study_id: int, item_id: int, person: str) -> AdjudicationView:
    get_study(session, study_id)
    query = select(AdjudicationView).where(
        AdjudicationView.study_id == study_id,
        AdjudicationView.item_id == item_id,
        AdjudicationView.seen_by == person,
    )
    view = session.scalar(query)
    if view is not None:
        return view
    row = {
        "study_id": study_id,
        "item_id": item_id,
        "seen_by": person,
        "token": new_token(),
        "order_shown": _order(session, study_id, session.get_one(Item, item_id), person),
        "created_at": utc_now(),
    }
    # another tab may insert it at the same moment: its order counts
    session.execute(insert_of(session)(AdjudicationView).values(row).on_conflict_do_nothing())
    return_item(session, item_id, person)
    return session.scalars(query).one()


def _order(session: Session, study_id: int, item: Item, person: str) -> list[str]:
    """A random order of the item's candidates: one for all questions about the same texts.

    InF-IR's items of a group keep orders of their own: one would tell the role of the next.
    """
    found = random_order(item)
    if item.question_id is None:
        return found
    card = session.scalars(
        select(AdjudicationView.order_shown)
        .join(Item, Item.id == AdjudicationView.item_id)
        .where(
            AdjudicationView.study_id == study_id,
            AdjudicationView.seen_by == person,
            Item.group_id == item.group_id,
        )
        .order_by(AdjudicationView.id)
    )
    same = (order for order in card if sorted(order) == sorted(found))
    return [str(label) for label in next(same, found)]


def _view_of_token(session: Session, study_id: int, token: str, person: str) -> AdjudicationView:
    get_study(session, study_id)
    view = session.scalar(
        select(AdjudicationView).where(
            AdjudicationView.study_id == study_id,
            AdjudicationView.token == token,
            AdjudicationView.seen_by == person,
        )
    )
    if view is None:
        raise Refused(
            "this item was never shown to you for adjudication",
            "reload the page",
            code="adjudication_item_not_shown",
        )
    return view
