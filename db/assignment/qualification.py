"""Qualification before a study: examples with feedback, a pass mark, a number of rounds.

A study with examples (part `training`) leases no other items to a judge until they passed. A round
is one answer to each of `training_items` examples about pairs of which the judge has seen none, in
a random order: a qualification cannot be passed from memory. Nor from reading: examples of pairs of
which the judge reviewed or opened a group are left out. A round below the pass mark starts the
next. After every `training_rounds` of them, and where no unseen examples are left for a round, the
judge is paused: a curator adds examples and resumes them. Without new ones, those seen longest ago
come again. Answers are judgments on the examples: stored, never counted.
"""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy import Select, func, or_, select
from sqlalchemy.orm import Session

from db.assignment.eligibility import unknown_pair
from db.assignment.members import membership, not_open, require_active
from db.assignment.places import lock_study
from db.assignment.shown_items import ShownItem, random_order, show
from db.errors import Refused
from db.events import record_event
from db.question import Shown, is_right
from db.run.new_items import question_of
from db.study.judgments import find_judgment, record_judgment
from db.study.rules import rules_of
from db.study.studies import current_guideline, get_study
from db.tables import Example, Group, Item, Judge, Judgment, StudyItem, StudyJudge, utc_now


@dataclass(frozen=True)
class QualificationState:
    """A judge's state: `total` examples, and those answered and right in this round."""

    total: int
    answered: int
    right: int
    round: int
    max_rounds: int
    pass_mark: float
    passed: bool


@dataclass(frozen=True)
class Feedback:
    """Feedback on an answer to an example; positions are those on the judge's screen."""

    item: ShownItem
    chosen: Shown
    right: Shown
    is_right: bool
    explanation: str


def qualification_state(session: Session, study_id: int, judge_id: int) -> QualificationState:
    """The judge's state in the study's qualification; passed if there is none."""
    rules = rules_of(get_study(session, study_id))
    member = session.get(StudyJudge, (study_id, judge_id))
    this_round = member.training_rounds if member else 0
    examples = _examples(session, study_id)
    if not examples:
        return QualificationState(
            0, 0, 0, this_round, rules.training_rounds, rules.pass_mark, passed=True
        )
    answers = _answers(session, study_id, judge_id, this_round)
    there = session.scalar(
        select(func.count())
        .select_from(Example)
        .where(
            Example.study_id == study_id, Example.judge_id == judge_id, Example.round == this_round
        )
    )
    return QualificationState(
        total=there or min(rules.training_items, len(_pool(session, study_id, judge_id))),
        answered=len(answers),
        right=sum(
            is_right(answers[row.item_id], row.gold_choice) is True
            for row in examples
            if row.item_id in answers
        ),
        round=this_round,
        max_rounds=rules.training_rounds,
        pass_mark=rules.pass_mark,
        passed=member is not None and member.passed_at is not None,
    )


def next_example(session: Session, study_id: int, judge_id: int) -> ShownItem | None:
    """The example to answer now; None if the round is complete or the qualification passed.

    Raises Refused for who knows the answers of all examples.
    """
    state = qualification_state(session, study_id, judge_id)
    if state.passed:
        return None
    if not state.total:
        raise Refused(
            "you have reviewed or opened the groups of all examples of the qualification",
            "ask the curator to add others",
            code="examples_known",
        )
    answered = _answers(session, study_id, judge_id, state.round)
    for example in _round(session, study_id, judge_id, state.round):
        if example.item_id not in answered:
            return show(session, example)
    return None


def answer_example(
    session: Session,
    study_id: int,
    judge_id: int,
    token: str,
    position: Shown,
    *,
    guideline_id: int | None = None,
) -> Feedback:
    """Store an answer and return whether it is right; the last example ends the round.

    The first answer in a round counts; a second one changes nothing. The token names the example
    and its round, as the answer may arrive late or twice. `guideline_id`: the guidelines shown with
    it, by default the newest. Raises Refused if the judge was given no
    such example or its round is over, BadInput for a position that does not exist. Does not commit.
    """
    study = lock_study(session, study_id)
    member = membership(session, study_id, judge_id)
    example = session.scalar(
        select(Example).where(
            Example.study_id == study_id, Example.judge_id == judge_id, Example.token == token
        )
    )
    if example is None:
        raise Refused(
            "this example was never given to you in this study", "reload the page", code="not_given"
        )
    item_id, order = example.item_id, [str(label) for label in example.order_shown]
    row = session.get(StudyItem, (study_id, item_id))
    if row is None or row.part != "training" or row.gold_choice is None:
        raise Refused(
            "this is no longer an example of the study", "reload the page", code="example_removed"
        )
    question = question_of(session, session.get_one(Item, item_id))
    choice = question.chosen(order, position)
    this_round = example.round
    known = find_judgment(session, f"training:{judge_id}/{study_id}/{item_id}/{this_round}")
    if known is None:
        require_active(member)
        if study.status != "open":
            raise not_open(study)
        if this_round != member.training_rounds or member.passed_at is not None:
            raise Refused(
                f"round {this_round + 1} of the qualification is over",
                "answer this one",
                code="round_over",
                round=this_round + 1,
            )
        known = record_judgment(
            session,
            judge_id=judge_id,
            item_id=item_id,
            choice=choice,
            order_shown=order,
            event_id=f"training:{judge_id}/{study_id}/{item_id}/{this_round}",
            study_id=study_id,
            guideline_id=guideline_id or current_guideline(session, study_id).id,
            detail={"training_round": this_round},
        )
        person = session.get_one(Judge, judge_id).person
        record_event(session, person, "judgment.stored", known.id, study=study_id)
        _end_round(session, study_id, judge_id, member)
    return Feedback(
        item=show(session, example),
        chosen=question.shown(order, known.choice),
        right=question.shown(order, row.gold_choice),
        is_right=is_right(known.choice, row.gold_choice) is True,
        explanation=row.explanation,
    )


def _end_round(session: Session, study_id: int, judge_id: int, member: StudyJudge) -> None:
    state = qualification_state(session, study_id, judge_id)
    if state.answered < state.total:
        return
    if state.right >= state.pass_mark * state.total:
        member.passed_at = utc_now()
    else:
        member.training_rounds += 1
        pool = _pool(session, study_id, judge_id)
        unseen = len(_unseen(session, study_id, judge_id, pool))
        is_last = member.training_rounds % state.max_rounds == 0
        if is_last or unseen < state.total:
            member.state = "paused"
            rounds = member.training_rounds
            member.reason = (
                f"qualification not passed in {rounds} round{'s' * (rounds != 1)} "
                f"({state.right} of {state.total} right in the last)"
            )
            if not is_last:
                member.reason += ", and there are no new examples for another: ask the curator"
    member.changed_at = utc_now()
    session.flush()
    if member.state == "paused":
        ended = {"judge": judge_id, "rule": "qualification", "reason": member.reason}
        by = get_study(session, study_id).created_by
        record_event(session, by, "study.pause_judge", study_id, **ended)
    elif member.passed_at is not None:
        person = session.get_one(Judge, judge_id).person
        record_event(session, person, "study.qualified", study_id, judge=judge_id)


def _unseen(session: Session, study_id: int, judge_id: int, pool: Sequence[int]) -> list[int]:
    """Those of the pool about whose pair the judge has been shown no item: the explanation of one
    tells of the others."""
    shown = select(Example.item_id).where(
        Example.study_id == study_id, Example.judge_id == judge_id
    )
    judged = select(Judgment.item_id).where(
        Judgment.study_id == study_id, Judgment.judge_id == judge_id
    )
    of_item = select(Group.pair_id).join(Item, Item.group_id == Group.id)
    shown_pairs = of_item.where(or_(Item.id.in_(shown), Item.id.in_(judged)))
    seen = set(session.scalars(_examples_of(study_id).where(Group.pair_id.in_(shown_pairs))))
    return [each for each in pool if each not in seen]


def _examples_of(study_id: int) -> Select[int]:
    """The items of the study's examples."""
    return (
        select(StudyItem.item_id)
        .join(Item, Item.id == StudyItem.item_id)
        .join(Group, Group.id == Item.group_id)
        .where(StudyItem.study_id == study_id, StudyItem.part == "training")
    )


def _pool(session: Session, study_id: int, judge_id: int) -> list[int]:
    """The examples of the study whose right answer the judge has not read elsewhere."""
    name = session.get_one(Judge, judge_id).name
    query = _examples_of(study_id).where(*unknown_pair(name))
    return list(session.scalars(query.order_by(StudyItem.position)))


def _examples(session: Session, study_id: int) -> list[StudyItem]:
    return list(
        session.scalars(
            select(StudyItem)
            .where(StudyItem.study_id == study_id, StudyItem.part == "training")
            .order_by(StudyItem.position)
        )
    )


def _round(session: Session, study_id: int, judge_id: int, this_round: int) -> list[Example]:
    """The examples of a judge's round, in its order; sampled and ordered when first requested."""
    mine = select(Example).where(Example.study_id == study_id, Example.judge_id == judge_id)
    of_round = mine.where(Example.round == this_round).order_by(Example.id)
    there = list(session.scalars(of_round))
    if there:
        return there
    lock_study(session, study_id)
    there = list(session.scalars(of_round))  # another tab may have sampled them meanwhile
    if there:
        return there
    chance = secrets.SystemRandom()
    pool = _pool(session, study_id, judge_id)
    unseen = _unseen(session, study_id, judge_id, pool)
    chance.shuffle(unseen)
    seen = dict.fromkeys(set(pool) - set(unseen), -1)
    seen.update({old.item_id: old.round for old in session.scalars(mine) if old.item_id in pool})
    longest_ago = sorted(seen, key=lambda item_id: (seen[item_id], chance.random()))
    # a round that an earlier version began: its answers count, so their examples belong to it
    begun = list(_answers(session, study_id, judge_id, this_round))
    wanted = list(dict.fromkeys([*begun, *unseen, *longest_ago]))
    count = rules_of(get_study(session, study_id)).training_items
    for item_id in wanted[: max(count, len(begun))]:
        example = Example(
            study_id=study_id,
            item_id=item_id,
            judge_id=judge_id,
            round=this_round,
            order_shown=random_order(session.get_one(Item, item_id)),
        )
        session.add(example)
        session.flush()  # one by one: the ids keep the order
        there.append(example)
    return there


def _answers(session: Session, study_id: int, judge_id: int, this_round: int) -> dict[int, str]:
    """The judge's answers to examples in a round, by item."""
    prefix = f"training:{judge_id}/{study_id}/"
    rows = session.scalars(
        select(Judgment)
        .join(StudyItem, StudyItem.item_id == Judgment.item_id)
        .where(
            StudyItem.study_id == study_id,
            StudyItem.part == "training",
            Judgment.judge_id == judge_id,
            Judgment.is_current,
        )
    )
    return {
        row.item_id: row.choice
        for row in rows
        if row.event_id.startswith(prefix) and row.detail.get("training_round") == this_round
    }
