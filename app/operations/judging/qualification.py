"""Qualification on the judging card: the examples it shows and the feedback on its answers.

An answer sent twice gets the same feedback; an answer to a finished round is refused with a reason.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from app.operations.judging.outbox import (
    answer_of,
    event_of,
    token_of,
    version_of,
    whole_number,
)
from db.assignment.guidelines import record_shown, version_shown
from db.assignment.members import membership, not_open, require_active
from db.assignment.places import not_given
from db.assignment.qualification import (
    QualificationState,
    answer_example,
    next_example,
    qualification_state,
)
from db.assignment.shown_items import ShownItem
from db.assignment.standing import Standing
from db.errors import InfError
from db.question import Shown
from db.rows import Row

EXAMPLE = "example"


class ExampleFeedback(Row):
    """The feedback on the answer to an example, by the event that sent it.

    Places are those on the judge's screen; `then`: the key of the text on what comes next, ""
    within a round.
    """

    event: str
    chosen: Shown
    right: Shown
    is_right: bool
    explanation: str
    then: str


@dataclass
class Answered:
    """The outcome of the examples in an outbox: replies by event, feedback for the card."""

    answers: dict[str, str] = field(default_factory=dict)
    feedback: list[ExampleFeedback] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)


def answer_examples(
    session: Session,
    standings: Mapping[int, Standing],
    judge_id: int,
    events: Sequence[Any],
    *,
    reword: Callable[[InfError], str] = str,
) -> Answered:
    """Store the answers to examples; other events are returned for the study's outbox.

    `reword` gives an error in the judge's language. Does not commit.
    """
    found = Answered()
    for entry in events:
        is_example = isinstance(entry, dict) and entry.get("kind") == EXAMPLE
        event = event_of(entry)
        if not is_example or event is None:
            found.others.append(entry)
            continue
        try:
            with session.begin_nested():
                study_id = whole_number(entry, "study")
                here = standings.get(study_id)
                if here is None:
                    raise not_given()
                feedback = answer_example(
                    session,
                    study_id,
                    judge_id,
                    token_of(entry),
                    answer_of(entry),
                    guideline_id=version_shown(session, here, version_of(entry)),
                )
                then = _then(qualification_state(session, study_id, judge_id))
            found.answers[event] = ""
            found.feedback.append(ExampleFeedback.of(feedback, event=event, then=then))
        except InfError as error:
            found.answers[event] = reword(error)
    return found


def example_now(
    session: Session, here: Standing, shown: int | None = None
) -> tuple[QualificationState, ShownItem] | None:
    """The judge's state in the qualification, and the example to answer; None without one.

    `shown`: the version of the guidelines that stands beside it, by default the newest.
    Raises Refused if the study is not open, or the judge is paused or not a member. Does not
    commit.
    """
    study_id, judge_id = here.study.id, here.judge.id
    if here.study.status != "open":
        raise not_open(here.study)
    require_active(membership(session, study_id, judge_id))
    record_shown(session, here, shown)
    state = qualification_state(session, study_id, judge_id)
    example = next_example(session, study_id, judge_id)
    return None if example is None else (state, example)


def _then(state: QualificationState) -> str:
    """The key of the text on what comes next; "" within a round."""
    if state.passed:
        return "card.passed"
    if state.answered == 0:
        return "card.below"
    return ""
