"""The training on the judging card: examples for it, and the feedback on those it sent back.

An answer that comes twice gets the same feedback; one of a round that is over is refused in words.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy.orm import Session

from app.kit.outbox import whole_number
from db.errors import InfError, Refused
from db.study.assignments import ShownItem, lock_study, membership
from db.study.qualification import (
    Feedback,
    TrainingState,
    answer_example,
    next_example,
    training_state,
)

EXAMPLE = "example"


@dataclass
class Answered:
    """What became of the examples in an outbox: answers by event, feedback for the card."""

    answers: dict[str, str] = field(default_factory=dict)
    feedback: list[dict[str, Any]] = field(default_factory=list)
    others: list[Any] = field(default_factory=list)


def answer_examples(session: Session, judge_id: int, events: Sequence[Any]) -> Answered:
    """Store the answers to examples among the events; the other events are left to the study's
    outbox. Does not commit."""
    found = Answered()
    for entry in events:
        is_example = isinstance(entry, dict) and entry.get("kind") == EXAMPLE
        if not is_example or not isinstance(entry.get("event"), str):
            found.others.append(entry)
            continue
        event = entry["event"]
        try:
            with session.begin_nested():
                study_id = whole_number(entry, "study")
                told = answer_example(
                    session,
                    study_id,
                    judge_id,
                    whole_number(entry, "item"),
                    None if entry.get("position") is None else whole_number(entry, "position"),
                    of_round=whole_number(entry, "round"),
                )
                then = _then(training_state(session, study_id, judge_id))
            found.answers[event] = ""
            found.feedback.append(_as_json(event, told, then))
        except InfError as error:
            found.answers[event] = str(error)
    return found


def example_now(
    session: Session, study_id: int, judge_id: int
) -> tuple[TrainingState, ShownItem | None]:
    """Where the judge stands in the training, and the example to answer. Does not commit.

    Raises Refused where the study is not open, or the judge is paused in it or not let in.
    """
    state = training_state(session, study_id, judge_id)
    if state.passed:
        return state, None
    study = lock_study(session, study_id, lock=False)
    if study.status != "open":
        raise Refused(f"the study {study.name!r} is {study.status}: nothing can be judged in it")
    member = membership(session, study_id, judge_id)
    if member.state == "paused":
        raise Refused(f"you are paused in this study: {member.reason}")
    return state, next_example(session, study_id, judge_id)


def _then(state: TrainingState) -> str:
    if state.passed:
        return "You passed the training: the study begins."
    if state.answered == 0:
        return "This round was below the pass mark."
    return ""


def _as_json(event: str, told: Feedback, then: str) -> dict[str, Any]:
    return {
        "event": event,
        "chosen": told.chosen,
        "right": told.right,
        "explanation": told.explanation,
        "then": then,
    }
