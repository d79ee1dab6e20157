"""Questions: their answers, what is expected and right, and items of other kinds in a store."""

from collections.abc import Callable
from typing import Any

import pytest
from records_world import group_ids, make_run
from sqlalchemy import select, text, update
from sqlalchemy.orm import Session

from curation.judging.sampling import Sampling, sample_study_items
from curation.judging.text_baseline import text_baseline
from db.errors import BadInput
from db.outcome.position_bias import position_bias
from db.question import PICK, Question, is_right, question_from, score
from db.release.rows import group_judgments
from db.run.group_detail import get_group
from db.run.new_items import is_pick, store_questions
from db.run.revalidations import items_of_run, revalidation_of, waiting_items
from db.run.validations import run_answers
from db.shape import INF_IR
from db.store import schema
from db.store.store import Store
from db.study.judgments import record_judgment
from db.study.run_items import run_item_kinds, run_population, validator_choices
from db.study.sampled_groups import model_answers
from db.study.strictness import run_strictness
from db.study.studies import add_study, judged_groups
from db.tables import Item, Judge, Judgment
from db.values import AMBIGUOUS, NONE

FITS = Question("fits", "yes_no")
GRADE = Question("relevance", "grade", {"0": "does not answer", "1": "violates", "2": "satisfies"})
SCORE = Question("answers", "score")


@pytest.mark.parametrize(
    ("question", "answers", "others"),
    [
        (PICK, ["positive", NONE, AMBIGUOUS], ["yes", "1", "", "Positive"]),
        (FITS, ["yes", "no", AMBIGUOUS], ["Yes", "none", "positive", "1", ""]),
        (GRADE, ["0", "1", "2", AMBIGUOUS], ["3", "-1", "02", "1.0", "satisfies", "none"]),
        (SCORE, ["0", "1", "0.5", "0.1234", AMBIGUOUS], ["1.1", ".5", "0.50", "50", "nan", "none"]),
    ],
)
def test_an_answer_is_one_label_in_one_form(
    question: Question, answers: list[str], others: list[str]
) -> None:
    for answer in answers:
        question.check(answer, ["positive"])
    for answer in others:
        with pytest.raises(BadInput) as refused:
            question.check(answer, ["positive"], "item 3")
        assert refused.value.code in ("choice_not_candidate", "answer_invalid")


@pytest.mark.parametrize(
    ("answer", "expected", "right"),
    [
        ("positive", "positive", True),
        (NONE, "positive", False),
        (AMBIGUOUS, "positive", False),
        ("no", "yes", False),
        ("2", "2", True),
        ("2", ">= 1", True),
        ("0", ">= 1", False),
        (AMBIGUOUS, ">= 0", False),
        ("0.5", ">= 0.5", True),
        ("0.5", "> 0.5", False),
        ("0.4999", "< 0.5", True),
        ("1", "<= 1", True),
        ("yes", None, None),
    ],
)
def test_right_is_what_is_expected_or_within_its_bound(
    answer: str, expected: str | None, right: bool | None
) -> None:
    assert is_right(answer, expected) is right


@pytest.mark.parametrize(
    ("question", "expected", "valid"),
    [
        (FITS, "yes", True),
        (FITS, ">= 0.5", False),
        (FITS, AMBIGUOUS, False),
        (GRADE, "2", True),
        (GRADE, ">= 1", True),
        (GRADE, "> 2", False),
        (GRADE, ">= 0", False),
        (GRADE, "3", False),
        (SCORE, ">= 0.5", True),
        (SCORE, "0.5", False),
        (SCORE, "> 1", False),
        (SCORE, "< 1.5", False),
    ],
)
def test_what_no_answer_or_every_answer_would_meet_is_not_expected(
    question: Question, expected: str, valid: bool
) -> None:
    if valid:
        question.check_expected(expected, "here")
        return
    with pytest.raises(BadInput, match=r"^here: ") as refused:
        question.check_expected(expected, "here")
    assert refused.value.code == "question_expected_invalid"


def test_a_score_has_one_form() -> None:
    found = {given: score(given) for given in ("0.70", "1.0", ".25", "0.12344", "1", "0", "00.5")}
    assert found == {
        "0.70": "0.7",
        "1.0": "1",
        ".25": "0.25",
        "0.12344": "0.1234",
        "1": "1",
        "0": "0",
        "00.5": "0.5",
    }
    assert [score(bad) for bad in ("1.01", "-0.5", "1e-1", "7", "½", "")] == [None] * 6


def test_a_question_is_the_same_one_whatever_the_order_of_its_labels() -> None:
    turned = question_from(GRADE.body() | {"labels": dict(reversed(GRADE.labels.items()))})
    assert turned == GRADE and turned.key == GRADE.key and turned.answers == ("0", "1", "2")
    assert question_from(GRADE.body() | {"labels": {"0": "no", "1": "yes"}}).key != GRADE.key


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"kind": "rank"}, "question_kind"),
        ({"kind": "yes_no", "labels": {"0": "no"}}, "question_labels"),
        ({"kind": "grade"}, "question_labels"),
        ({"kind": "grade", "labels": {"0": "no"}}, "question_labels"),
        ({"kind": "grade", "labels": {"0": "no", "good": "yes"}}, "question_labels"),
        ({"kind": "grade", "labels": {"0": "no", "01": "yes"}}, "question_labels"),
        ({"kind": "grade", "labels": ["no", "yes"]}, "question_labels"),
    ],
)
def test_a_wrong_question_is_refused_at_its_place(body: dict[str, Any], code: str) -> None:
    with pytest.raises(BadInput, match=r"^mine\.toml: ") as refused:
        question_from({"name": "q", **body}, "mine.toml")
    assert refused.value.code == code


# ---- in a store


def add_checks(session: Session, run_id: int, groups: list[int]) -> list[int]:
    """Items of every other kind with answers of the run's judge, beside those of the groups."""
    ids = store_questions(session, [FITS, GRADE, SCORE])
    assert ids == store_questions(session, [SCORE, GRADE, FITS])
    judge_id = session.scalars(select(Judgment.judge_id).where(Judgment.run_id == run_id)).first()
    added = []
    for group_id in groups:
        one = session.scalars(select(Item).where(Item.group_id == group_id, is_pick())).first()
        assert one is not None and judge_id is not None
        for question, answer, expected in (
            (FITS, "yes", "yes"),
            (GRADE, "1", ">= 2"),
            (SCORE, "0.25", None),
        ):
            item = Item(
                group_id=group_id,
                scenario=f"{question.name}:P1-",
                instruction=one.instruction,
                query=one.query,
                candidates=[one.candidates[1]],
                expected=expected,
                question_id=ids[question.key],
            )
            session.add(item)
            session.flush()
            record_judgment(
                session,
                judge_id=judge_id,
                item_id=item.id,
                run_id=run_id,
                choice=answer,
                order_shown=[one.candidates[1]["label"]],
                event_id=f"check {item.id}",
                detail={"votes": [{"choice": answer, "order_shown": ["instruction_negative"]}]},
            )
            added.append(item.id)
    session.commit()
    return added


def patterns(session: Session, run_id: int) -> Any:
    return run_answers(session, run_id).patterns


READERS: dict[str, Callable[[Session, int], Any]] = {
    "position_bias": position_bias,
    "run_answers": patterns,
    "strictness": run_strictness,
    "kinds": run_item_kinds,
    "population": run_population,
    "validator_choices": validator_choices,
    "judged_groups": judged_groups,
    "model_answers": model_answers,
    "text_baseline": text_baseline,
    "waiting": waiting_items,
    "second_judge": lambda session, run_id: items_of_run(session, run_id, 99),
    "sampled": lambda session, run_id: sample_study_items(session, run_id, Sampling(), 4, 7),
    "release": lambda session, run_id: group_judgments(
        session, sorted(judged_groups(session, run_id)), INF_IR
    ),
    "revalidation": lambda session, run_id: [
        revalidation_of(session, each) for each in judged_groups(session, run_id)
    ],
}


@pytest.mark.parametrize("name", READERS)
def test_what_is_reported_of_picks_ignores_other_questions(store: Store, name: str) -> None:
    run_id = make_run(store, kept=4, dropped=2)
    groups = group_ids(store, run_id) + group_ids(store, run_id, "dropped")[:2]
    with store.read() as session:
        before = READERS[name](session, run_id)
    with store.write() as session:
        assert len(add_checks(session, run_id, groups)) == 18
    with store.read() as session:
        assert READERS[name](session, run_id) == before


def test_a_group_shows_the_answers_to_all_its_questions(store: Store) -> None:
    run_id = make_run(store, kept=1, dropped=0, unwritten=0)
    (group_id,) = group_ids(store, run_id)
    with store.write() as session:
        add_checks(session, run_id, [group_id])
        found = get_group(session, group_id).judgments
    asked = {each.scenario: (each.question, each.choice, each.agrees) for each in found}
    assert asked["positive"] == ("pick", "positive", True)
    assert asked["fits:P1-"] == ("yes_no", "yes", True)
    assert asked["relevance:P1-"] == ("grade", "1", False)
    assert asked["answers:P1-"] == ("score", "0.25", None)


@pytest.mark.parametrize("answer", ["maybe", "positive", NONE, "1"])
def test_an_answer_to_another_kind_of_question_is_not_stored(store: Store, answer: str) -> None:
    run_id = make_run(store, kept=1, dropped=0, unwritten=0)
    with store.write() as session:
        item_id = add_checks(session, run_id, group_ids(store, run_id))[0]
        judge = Judge(name="ada", kind="person")
        session.add(judge)
        session.flush()
        with pytest.raises(BadInput, match="is no answer to the question 'fits'"):
            record_judgment(
                session,
                judge_id=judge.id,
                item_id=item_id,
                choice=answer,
                order_shown=["instruction_negative"],
                event_id="ada 1",
            )


def test_a_study_of_picks_takes_no_other_question(store: Store) -> None:
    run_id = make_run(store, kept=1, dropped=0, unwritten=0)
    with store.write() as session:
        item_id = add_checks(session, run_id, group_ids(store, run_id))[0]
        with pytest.raises(BadInput) as refused:
            add_study(session, run_id=run_id, item_ids=[item_id], overlap=1)
    assert refused.value.code == "item_not_a_pick"


def test_an_older_store_expects_the_scenarios_label_and_keeps_its_judgments(store: Store) -> None:
    run_id = make_run(store, kept=2, dropped=1)
    query = text("SELECT * FROM judgment ORDER BY id")
    with store.engine.connect() as connection:
        before = connection.execute(query).all()
    schema.downgrade(store, "0024")
    with store.engine.connect() as connection:
        assert connection.execute(query).all() == before
    schema.upgrade(store)
    schema.require_current(store)
    with store.read() as session:
        items = session.execute(select(Item.scenario, Item.expected, Item.question_id)).all()
        assert len(items) == 9
        assert all(expected == scenario for scenario, expected, _ in items)
        assert {asked for *_, asked in items} == {None}
        assert session.execute(query).all() == before
    with store.write() as session:
        added = add_checks(session, run_id, group_ids(store, run_id)[:1])
    with pytest.raises(ValueError, match=r"asks '(fits|relevance|answers):P1-', which the version"):
        schema.downgrade(store, "0024")
    with store.engine.begin() as connection:
        connection.execute(
            update(Item).where(Item.id.in_(added)).values(question_id=None, expected=None)
        )
    schema.downgrade(store, "0024")
