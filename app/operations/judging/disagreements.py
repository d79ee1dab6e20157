"""Items by disagreement of people, per question and kind, with their comments.

Nobody learns here what the card of Adjudicate hides. A person's own cards are left out until the
study is closed; of an item that they have not been shown there, answers and comments are empty; of
one that they have, answers go by its place on their screen. Kinds, which tell the right passage,
and answers by label are for the store's owner, and in a closed study for who manages it.
"""

from collections import Counter, defaultdict
from functools import partial

from pydantic import computed_field
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.access.identity import Actor
from app.access.permissions import NEEDS
from app.operations.acting import reading
from curation.judging.agreement import reader_of
from curation.judging.request import DisagreementList
from db.errors import BadInput, Refused
from db.question import PICK, Shown, about_of
from db.rows import Listed, Row
from db.study import adjudication, blind_adjudication
from db.study.studies import get_study
from db.tables import Item, Judge, Judgment, Question, StudyItem

RIGHT = "adjudicate"


class CandidateText(Row):
    """A candidate of an item: what it was made to be, and its text."""

    label: str
    text: str


class AnswerRow(Row):
    """What one judge chose on an item, or that they skipped it."""

    judge: str
    choice: str
    note: str
    flagged: bool


class DisagreementRow(Row):
    """An item on which `judges` people differ: the share that did not give the most frequent
    answer, how many gave each, and what they wrote; `is_shown`: whether these are for the reader.

    `n_comments` counts the notes of answers and skips; `kind` is empty for who may not know it. For
    the store's owner also texts by role, every judge's answer by name, and the decision.
    """

    item_id: int
    question: str
    kind: str
    query: str
    judges: int
    disagreement: float
    answers: dict[str, int]
    n_comments: int
    comments: tuple[str, ...]
    is_decided: bool
    is_shown: bool
    instruction: str = ""
    candidates: tuple[CandidateText, ...] = ()
    judgments: tuple[AnswerRow, ...] = ()
    decision: str | None = None
    decided_by: str = ""

    @computed_field  # type: ignore[prop-decorator]
    @property
    def id(self) -> int:
        """The id of the item."""
        return self.item_id

    @computed_field  # type: ignore[prop-decorator]
    @property
    def name(self) -> str:
        """What lists call it."""
        return f"item {self.item_id}"


class Disagreements(Listed[DisagreementRow]):
    """Disputed items, with the questions and kinds of the study that they can be limited to."""

    questions: tuple[str, ...]
    kinds: tuple[str, ...]


class StudyDisagreements(Disagreements):
    """Disputed items of a study: as many as `disputed`, on all pages."""

    study_id: int
    disputed: int


def disagreements(actor: Actor, wanted: DisagreementList) -> Disagreements:
    """The study's disputed items, the most disputed first.

    Raises NotFound for an unknown study, BadInput for a question or a kind that it lacks, Refused
    for a kind whose passages the reader may not know.
    """
    study_id = wanted.study_id
    with reading(actor, RIGHT) as session:
        knows_all = _knows_all(session, study_id, actor)
        if wanted.kind and not knows_all:
            raise Refused(
                f"the kind of an item of study {study_id} says which passage is right: you decide "
                "without it",
                "leave out the kind, or wait until the study is closed",
                code="kind_not_shown",
            )
        agreed = wanted.include_agreed
        ids = (
            adjudication.disputed_ids(session, study_id, include_agreed=agreed)
            if knows_all
            else blind_adjudication.ids_to_adjudicate(
                session, study_id, actor.name, include_agreed=agreed
            )
        )
        places = _places(session, study_id)
        questions, kinds = (sorted({*each} - {""}) for each in zip(*places.values(), strict=True))
        _require_known("question", wanted.question, questions)
        _require_known("kind", wanted.kind, kinds)
        votes = _votes(session, study_id)
        found = [
            item_id
            for item_id in ids
            if wanted.question in ("", places[item_id][0])
            and wanted.kind in ("", places[item_id][1])
            and votes[item_id].total() >= wanted.judges
        ]
        decided = adjudication.decided_ids(session, study_id)
        orders = blind_adjudication.orders_shown(session, study_id, actor.name)
        shown = found[wanted.offset :][: wanted.limit]
        rows = []
        for item in adjudication.disputed_items(session, study_id, shown):
            item_id = item.item_id
            people = [one for one in item.answers if one.kind == "person"]
            comments = tuple(one.note for one in (*people, *item.skips) if one.note)
            of, is_shown = votes[item_id], knows_all or item_id in orders
            answers = dict(of.most_common()) if is_shown else {}
            if is_shown and not knows_all:
                on_screen = partial(item.question.shown, orders[item_id])
                answers = {_on_screen(on_screen(answer)): n for answer, n in answers.items()}
            row = DisagreementRow(
                item_id=item_id,
                question=places[item_id][0],
                kind=places[item_id][1] if knows_all else "",
                query=item.query,
                judges=of.total(),
                disagreement=round(1 - max(of.values()) / of.total(), 3) if of else 0.0,
                answers=answers,
                n_comments=len(comments),
                comments=comments if is_shown else (),
                is_decided=item_id in decided,
                is_shown=is_shown,
            )
            rows.append(row.model_copy(update=_with_names(item)) if actor.owns_store else row)
    return Disagreements.page(
        rows,
        offset=wanted.offset,
        total=len(found),
        questions=tuple(questions),
        kinds=tuple(kinds) if knows_all else (),
    )


def _with_names(item: adjudication.Disputed) -> dict[str, object]:
    return {
        "instruction": item.instruction,
        "candidates": tuple(CandidateText(label=each, text=of) for each, of in item.candidates),
        "judgments": tuple(map(AnswerRow.of, (*item.answers, *item.skips))),
        "decision": item.decision,
        "decided_by": item.decided_by,
    }


def _knows_all(session: Session, study_id: int, actor: Actor) -> bool:
    """Whether roles and all answers are for the actor, as in the study's report."""
    if actor.owns_store:
        get_study(session, study_id)
        return True
    study, scope = get_study(session, study_id), NEEDS["studies"].scope(actor)
    manages = scope is None or study.dataset_id in scope.datasets or study_id in scope.studies
    return (
        study.status == "closed"
        and manages
        and not reader_of(session, study_id, actor.name).is_blind
    )


def _places(session: Session, study_id: int) -> dict[int, tuple[str, str]]:
    """The question of each item and its kind: the scenario, or the passage that is asked about."""
    rows = session.execute(
        select(Item.id, func.coalesce(Question.name, PICK.name), Item.scenario)
        .join(StudyItem, StudyItem.item_id == Item.id)
        .outerjoin(Question, Question.id == Item.question_id)
        .where(StudyItem.study_id == study_id)
    )
    return {
        item_id: (name, scenario if name == PICK.name else about_of(scenario))
        for item_id, name, scenario in rows
    }


def _votes(session: Session, study_id: int) -> dict[int, Counter[str]]:
    """How many people gave each answer on each item."""
    found: dict[int, Counter[str]] = defaultdict(Counter)
    rows = session.execute(
        select(Judgment.item_id, Judgment.choice, func.count())
        .join(Judge, Judge.id == Judgment.judge_id)
        .where(Judgment.study_id == study_id, Judgment.is_current, Judge.kind == "person")
        .group_by(Judgment.item_id, Judgment.choice)
    )
    for item_id, choice, count in rows:
        found[item_id][choice] = count
    return found


def _on_screen(option: Shown) -> str:
    """An answer as it stands on the adjudicator's screen."""
    if option is None:
        return "none"
    return f"passage {option + 1}" if isinstance(option, int) else option


def _require_known(field: str, value: str, known: list[str]) -> None:
    if value and value not in known:
        raise BadInput(
            f"the study has no {field} {value!r}",
            f"it has {', '.join(known) or 'none'}",
            code=f"{field}_unknown",
        )
