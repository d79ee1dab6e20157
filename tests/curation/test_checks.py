"""Checks: yes/no, grades and scores that a recipe has a model asked about single texts."""

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from checked_recipe import CHECKS, write_recipe
from curation_runs import add_dataset, run_curation
from openai_server import Server
from records_world import list_groups
from sqlalchemy import func, select

from curation.recipe.answers import Unparsable, parse
from curation.recipe.recipe import load_recipe, recipe_from_store
from curation.recipe.structured import response_format
from curation.recipe.tasks import ANSWERED_WITH
from curation.run.estimate import estimate_run
from db.errors import BadInput
from db.question import Question
from db.run.group_detail import get_group
from db.run.runs import shape_and_judging
from db.store.store import Store
from db.tables import Call, GroupCall, Item, Judgment
from db.tables import Question as QuestionRow

PAIRS = 12
QUESTIONS = {
    "yes_no": Question("fits", "yes_no"),
    "grade": Question("relevance", "grade", {"0": "no answer", "1": "violates", "2": "satisfies"}),
    "score": Question("answers", "score"),
}
JUDGED = 2 + 3 * 3 + 2


# ---- answers


@pytest.mark.parametrize(
    ("kind", "answers"),
    [
        (
            "yes_no",
            {
                "yes": (
                    "Answer: yes",
                    "**Answer:** Yes.",
                    "YES",
                    '{"reasoning": "x", "answer": true}',
                    '```json\n{"answer": "Yes"}\n```',
                    "It does.\n\nAnswer: yes, because it names the topic",
                    "Answer: no\nOn reflection I was wrong.\nFinal answer: yes",
                    "<think>Answer: no</think>Answer: yes",
                    "Answer： yes\n\nLet me know if you need anything else!",
                    "The answer is yes.",
                ),
                "no": ("Answer: no (it is about bees)", '{"answer": false}', "no."),
                "ambiguous": ("Answer: ambiguous",),
            },
        ),
        (
            "grade",
            {
                "2": ("Grade: 2", "Grade: ２ (satisfies)", '{"grade": 2.0}', "**Grade: 2**", "2"),
                "0": ('{"grade": "0"}', "It gets a 1? No.\nGrade: 0."),
            },
        ),
        (
            "score",
            {
                "0.7": ("Score: 0.70", "Score: .7", '{"score": 0.7}', "0.7", "Score: 0.7 - good"),
                "1": ("Score: 1.0", '{"score": "1"}'),
                "0.001": ('{"score": 1e-3}',),
            },
        ),
    ],
)
def test_an_answer_is_read_in_any_form_that_leaves_no_doubt(
    kind: str, answers: dict[str, tuple[str, ...]]
) -> None:
    question = QUESTIONS[kind]
    gives = ANSWERED_WITH[question.kind]
    for wanted, texts in answers.items():
        for text in texts:
            assert parse("check_x", text, gives=gives, question=question) == wanted, text


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        *(
            ("yes_no", text)
            for text in (
                "Answer: yes and no",
                "Answer: yes/no",
                "Answer: <yes or no>",
                "Answer: yes. Wait, actually no.",
                "Answer: yes, but no",
                "Answer: yes (or no)",
                "Answer: not sure",
                "Answer: no idea",
                "Answer: yes?",
                "Answer: no-one",
                "Answer: 1",
                "Answer: yes yes yes",
                "Answer: yes\nAnswer: no\nboth are arguable",
                "Answer: yes\nAnswer:",
                "So it would be no, I guess",
                '{"answer": "yes", "answer": "no"}',
                '{"answer": "yes", "confidence": 0.9}',
                '{"answer": null}',
                '{"answer": ["yes"]}',
                '{"answer": "ye',
                "",
                "<think>Answer: yes",
                "I cannot help with that.",
            )
        ),
        *(
            ("grade", text)
            for text in (
                *("Grade: 3", "Grade: -1", "Grade: 1-2", "Grade: 1 or 2", "Grade: 2/2"),
                *("Grade: 10", "Grade: 1.5", "Grade: two", '{"grade": true}', '{"grade": 1.5}'),
            )
        ),
        *(
            ("score", text)
            for text in (
                *("Score: 75%", "Score: 0,75", "Score: 8/10", "Score: 1.2", "Score: -0.5"),
                *("Score: 0.7 - 0.8", "Score: 1e-1", '{"score": NaN}', '{"score": 1e400}'),
            )
        ),
    ],
)
def test_an_answer_that_leaves_a_doubt_is_not_guessed(kind: str, text: str) -> None:
    question = QUESTIONS[kind]
    with pytest.raises(Unparsable):
        parse("check_x", text, gives=ANSWERED_WITH[question.kind], question=question)


@pytest.mark.parametrize(
    "text", ["[" * 100_000, "Answer:" * 20_000, "wait " * 30_000, "-\n" * 90_000]
)
def test_no_answer_takes_long_to_read(text: str) -> None:
    started = time.process_time()
    for question in QUESTIONS.values():
        for answer in (text, f"Answer: yes {text}"):
            with pytest.raises(Unparsable):
                parse("x", answer, gives=ANSWERED_WITH[question.kind], question=question)
    assert time.process_time() - started < 5


def test_the_schema_lists_the_answers() -> None:
    for kind, answers in (("yes_no", ["yes", "no"]), ("grade", ["0", "1", "2"]), ("score", None)):
        question = QUESTIONS[kind]
        gives = ANSWERED_WITH[question.kind]
        schema = response_format("check_x", gives, question)["json_schema"]["schema"]
        assert schema["required"] == ["reasoning", gives.lower()]
        listed = schema["properties"][gives.lower()].get("enum")
        assert listed == (answers and [*answers, "ambiguous"])


# ---- recipes


def test_a_recipe_with_checks_is_the_same_one_from_the_store(tmp_path: Path) -> None:
    recipe = load_recipe(write_recipe(tmp_path), ["check_fits.temperature=0.5"])
    assert recipe.stages["check_fits"].parameters["temperature"] == 0.5
    assert [check.votes for check in recipe.checks] == [1, 3, 2]
    assert recipe.judged_calls == 3 + JUDGED
    again = recipe_from_store(
        json.loads(json.dumps(recipe.body(), sort_keys=True)),
        {sha: text for sha, (_, text) in recipe.prompts().items()},
    )
    assert again == recipe and again.sha256 == recipe.sha256
    other = load_recipe(write_recipe(tmp_path, CHECKS.replace(">= 0.5", ">= 0.6")))
    assert other.sha256 != recipe.sha256


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"yes_no"', '"yesno"', r"\[checks.fits\]: question = 'yesno' is none of pick, grade"),
        ('"yes_no"', '"pick"', r"\[checks.fits\]: question = 'pick' is that of \[validation\]"),
        ('over = ["P+"]', 'over = ["P3-"]', r"\[checks.answers\]: over names 'P3-'; the texts are"),
        ('over = ["P+"]', "over = []", r"\[checks.answers\]: over names the texts it is asked"),
        ('over = ["P+"]', 'over = ["P+", "P+"]', "over is a list of signs, each once"),
        ('over = ["P+"]', 'over = ["P+", "Q-"]', "one or more of one field"),
        (
            'with = ["I+", "Q+"]',
            'with = ["I+", "I-", "Q+"]',
            "several of instruction, of which",
        ),
        ('with = ["I+", "Q+"]', 'with = ["Q+"]', r"names \{instruction\}; check_fits is given"),
        ('"P1-" = "no"', '"P1-" = "maybe"', r"expected.'P1-': 'maybe' cannot be expected; yes, no"),
        ('"P1-" = "no"', '"P2-" = "no"', "expected names 'P2-', which over does not"),
        ('">= 0.5"', '">= 0"', "'>= 0' holds of every answer or of none"),
        ('">= 0.5"', '"0.5"', "'0.5' cannot be expected; a bound, such as '>= 0.5'"),
        ("votes = 3", "votes = 0", "votes = 0 is not a whole number from 1 up"),
        ("votes = 3", "vote = 3", "unknown 'vote'; did you mean 'votes'"),
        ('prompt = "fits.md"', 'prompt = "fit.md"', r"line \d+, \[checks.fits\]: no prompt"),
        ("[checks.fits]", "[checks.Fits]", "a check's name is of small letters and _"),
        ('model = "small"', "", r"\[checks.fits\] has no model"),
    ],
)
def test_a_wrong_check_is_refused_with_its_place(
    tmp_path: Path, old: str, new: str, message: str
) -> None:
    assert old in CHECKS
    with pytest.raises(BadInput, match=message) as refused:
        load_recipe(write_recipe(tmp_path, CHECKS.replace(old, new)))
    assert str(refused.value).startswith(("the recipe mine.toml", "no prompt", "the prompt"))


# ---- runs


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Server]]:
    running: list[Server] = []

    def start(**wanted: Any) -> Server:
        one = Server(**wanted).__enter__()
        running.append(one)
        monkeypatch.setenv("OPENAI_BASE_URL", one.url)
        return one

    yield start
    for one in running:
        one.__exit__()


def answers_of(store: Store, run_id: int) -> list[tuple[Any, ...]]:
    """Every answer of the run's judges to a question that is no pick, in the order of items."""
    query = (
        select(Item.group_id, Item.scenario, Judgment.choice, Item.expected, Judgment.detail)
        .join(Judgment, Judgment.item_id == Item.id)
        .where(Judgment.run_id == run_id, Item.question_id.is_not(None))
        .order_by(Item.group_id, Item.scenario)
    )
    with store.read() as session:
        return [tuple(row) for row in session.execute(query)]


@pytest.mark.long
def test_a_run_asks_every_kind_of_question_and_keeps_what_is_as_expected(
    store: Store, tmp_path: Path, server: Callable[..., Server]
) -> None:
    server(schema="taken")
    dataset_id = add_dataset(store, pairs=PAIRS)
    asked = {"dataset": "small", "provider": "openai", "recipe": write_recipe(tmp_path)}
    recipe = load_recipe(asked["recipe"], ["model=small"])
    with store.read() as session:
        found = estimate_run(session, dataset_id, recipe, {}, limit=None, concurrency=2)
    calls = {stage.task: stage.calls for stage in found.stages}
    assert [calls[f"check_{name}"] for name in ("fits", "relevance", "answers")] == [24, 108, 24]
    result = run_curation(store, **asked, settings=["model=small"])
    assert (result["status"], result["kept"]) == ("done", PAIRS), result["dropped"]
    assert result["calls"]["made"] == PAIRS * (5 + 3 + JUDGED)
    run_id = result["run_id"]
    answers = answers_of(store, run_id)
    assert len(answers) == PAIRS * (2 + 3 + 1)
    of_first = {place: (choice, expected) for _, place, choice, expected, _ in answers[:6]}
    assert of_first["fits:P+"] == ("yes", "yes") and of_first["fits:P1-"] == ("no", "no")
    assert of_first["relevance:P1-"] == ("0", "< 2") and of_first["relevance:P2-"][1] is None
    assert of_first["answers:P+"] == ("0.9", ">= 0.5")
    with store.read() as session:
        assert shape_and_judging(session, run_id)[1] == 3 + JUDGED
        assert session.scalar(select(func.count()).select_from(QuestionRow)) == 3
        group = get_group(session, list_groups(session, run_id).rows[0].id)
        shown = {each.scenario: each for each in group.judgments}
        assert shown["fits:P1-"].agrees and shown["fits:P1-"].question == "yes_no"
        assert list(shown["fits:P1-"].candidates.values()) == [
            group.triplets["instruction_negative"].passage
        ]
        samples = select(GroupCall.sample).where(
            GroupCall.group_id == group.id, GroupCall.task == "check_relevance"
        )
        assert len(set(session.scalars(samples))) == 9
    again = run_curation(store, **asked, settings=["model=small"])
    assert again["calls"]["made"] == 0 and again["kept"] == PAIRS
    assert [row[1:] for row in answers_of(store, again["run_id"])] == [row[1:] for row in answers]
    plain = run_curation(store, dataset="small", provider="openai", settings=["model=small"])
    assert plain["calls"]["made"] == 0, "what a recipe without the checks asks is stored"


def test_another_threshold_decides_stored_answers_without_asking(
    store: Store, tmp_path: Path, server: Callable[..., Server]
) -> None:
    one = server(schema="taken")
    add_dataset(store, pairs=PAIRS)
    asked = {"dataset": "small", "provider": "openai", "settings": ["model=small"]}
    first = run_curation(store, recipe=write_recipe(tmp_path), **asked)
    assert first["kept"] == PAIRS
    before = one.answered.total()
    stricter = run_curation(
        store, recipe=write_recipe(tmp_path, CHECKS.replace(">= 0.5", "> 0.95")), **asked
    )
    assert one.answered.total() == before and stricter["calls"]["made"] == 0
    assert stricter["dropped"] == {"check_answers": PAIRS}
    with store.read() as session:
        row = list_groups(session, stricter["run_id"], verdict="dropped").rows[0]
        detail = get_group(session, row.id).drop_detail
    assert detail == "answers:P+: the judge answered 0.9, not > 0.95"


def test_checks_can_judge_alone(
    store: Store, tmp_path: Path, server: Callable[..., Server]
) -> None:
    server()
    add_dataset(store, pairs=PAIRS)
    recipe = write_recipe(tmp_path, picks=False)
    assert "validation" not in load_recipe(recipe).stages
    result = run_curation(
        store, dataset="small", provider="openai", recipe=recipe, settings=["model=small"]
    )
    assert (result["status"], result["kept"]) == ("done", PAIRS), result["dropped"]
    assert result["calls"]["made"] == PAIRS * (5 + JUDGED)
    with store.read() as session:
        assert shape_and_judging(session, result["run_id"])[1] == JUDGED
        assert not session.scalars(select(Item.id).where(Item.question_id.is_(None))).all()


@pytest.mark.long
def test_a_server_with_faults_gives_the_answers_of_one_without(
    store: Store, tmp_path: Path, server: Callable[..., Server]
) -> None:
    add_dataset(store, pairs=PAIRS)
    asked = {"dataset": "small", "provider": "openai", "recipe": write_recipe(tmp_path)}
    server(schema="taken")
    calm = run_curation(store, **asked, settings=["model=small"])
    passing = dict.fromkeys(("429", "500", "cut_before", "cut_after", "truncated"), 0.12)
    server(faults=passing, schema="taken", seed=3)
    rough = run_curation(store, **asked, settings=["model=small"], fresh=True)
    assert rough["calls"]["made"] == calm["calls"]["made"]
    found = [[row[1:] for row in answers_of(store, each["run_id"])] for each in (calm, rough)]
    assert found[0] == found[1] and rough["kept"] == calm["kept"]


def test_an_unusable_answer_drops_its_group_with_the_reason_and_is_stored_as_none(
    store: Store, tmp_path: Path, server: Callable[..., Server]
) -> None:
    add_dataset(store, pairs=24)
    checks = CHECKS.partition("[checks.relevance]")[0]
    recipe = write_recipe(tmp_path, checks)
    server(faults={"wrong_form": 0.15, "refusal": 0.1}, seed=5)
    result = run_curation(
        store, dataset="small", provider="openai", recipe=recipe, settings=["model=small"]
    )
    assert result["status"] == "done" and {"unparsable", "refused"} <= result["dropped"].keys()
    answers = answers_of(store, result["run_id"])
    unusable = [row for row in answers if "unusable" in row[4]]
    assert unusable and {row[2] for row in unusable} == {"ambiguous"}
    with store.read() as session:
        for group_id, *_ in unusable:
            assert get_group(session, group_id).verdict == "dropped"
        outcomes = select(GroupCall.outcome).where(GroupCall.task == "check_fits")
        assert set(session.scalars(outcomes)) >= {"ok", "unparsable"}


@pytest.mark.long
def test_the_offline_provider_answers_by_the_cosine_and_says_so(
    sqlite_store: Store, tmp_path: Path
) -> None:
    add_dataset(sqlite_store, pairs=PAIRS)
    undecided = CHECKS.replace("\nexpected", "\n# expected")
    recipe = write_recipe(tmp_path, undecided, of="offline")
    result = run_curation(sqlite_store, dataset="small", provider="offline", recipe=recipe)
    assert result["status"] == "done" and result["kept"]
    answers = answers_of(sqlite_store, result["run_id"])
    assert {row[2] for row in answers if row[1].startswith("fits")} <= {"yes", "no"}
    assert {row[2] for row in answers if row[1].startswith("relevance")} <= {"0", "1", "2"}
    scores = [float(row[2]) for row in answers if row[1] == "answers:P+"]
    assert len(set(scores)) > 1 and all(0 <= one <= 1 for one in scores)
    with sqlite_store.read() as session:
        group = get_group(session, list_groups(session, result["run_id"]).rows[0].id)
        assert group.offline and all(each.offline for each in group.judgments)
        assert set(session.scalars(select(Call.provider))) == {"offline"}
