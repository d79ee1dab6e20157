"""Answers in the shape real servers give: the right text or a counted reason, nothing else."""

import contextlib
import json
import time
from pathlib import Path

import pytest
from answer_corpus import Case, cases

from curation.recipe.answers import Unparsable, parse
from curation.recipe.completion import read_completion
from curation.recipe.drop_reasons import DROP_REASONS
from curation.recipe.leftovers import find_leftover
from curation.recipe.prompt import FOLDER, read_prompt
from curation.recipe.tasks import TASKS, Gives
from curation.run.group_work import CUT_OFF, REFUSED

CASES = list(cases())
CANDIDATES = 6


def outcome(case: Case) -> tuple[str | None, str | None]:
    """The text and the drop reason of a body, as a group's work reads it."""
    found = read_completion(case.body)
    if found.finish_reason in REFUSED:
        return None, "refused"
    if found.finish_reason in CUT_OFF and case.task != "validation":
        return None, "cut_off"
    task = next(task for task in TASKS if task == case.task)
    prompt = read_prompt(task, f"{task}.md", FOLDER)
    given = None if task == "validation" else case.given
    try:
        return parse(task, found.text, candidates=CANDIDATES, prompt=prompt, given=given), None
    except Unparsable as error:
        assert str(error), "a drop says why"
        return None, error.reason


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_an_answer_gives_its_text_or_a_reason(case: Case) -> None:
    assert outcome(case) == (case.want, case.drop)


def test_the_corpus_is_large_and_each_case_expects_one_thing() -> None:
    assert len(CASES) >= 150 and len({case.name for case in CASES}) == len(CASES)
    assert all((case.want is None) != (case.drop is None) for case in CASES)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_every_body_gives_something_that_can_be_stored(case: Case) -> None:
    found = read_completion(case.body)
    assert "\x00" not in found.text
    for tokens in (found.input_tokens, found.output_tokens):
        assert tokens is None or 0 <= tokens < 2**31


def test_every_reason_of_the_corpus_is_in_the_list_of_reasons() -> None:
    assert {case.drop for case in CASES if case.drop} <= set(DROP_REASONS)


@pytest.mark.parametrize(
    "answer",
    [
        "<think>" * 5000,
        "[" * 40000,
        "Passage: " + "\n" * 40000,
        "_" * 40000,
        '"}' * 20000,
        "{" * 5000,
        "Choice: " * 5000,
        "analysis" * 5000,
        "Passage: " + "- " * 20000,
    ],
    ids=lambda answer: answer[:12],
)
def test_an_answer_made_to_keep_the_parser_busy_is_read_within_a_second(answer: str) -> None:
    began = time.process_time()
    for task in TASKS:
        with contextlib.suppress(Unparsable):
            parse(task, answer, candidates=CANDIDATES, given={})
    assert time.process_time() - began < 6.0, "a second for each of six tasks"


CHECKS_BACK = (
    *("Does it help?", "A text. Does this work for you?", "A text.\n\nWould this suit your needs?"),
    *("A text. So, does that work for what you had in mind?", "A text: will this do?"),
    *("A text. Does this help with your request?", "A text! Does this help clarify?"),
    *(
        "A text. Will it do the trick for you?",
        "**Does this work?**",
        "A text. (Does this suit you?)",
    ),
    *("A text — does this work?", "A text. Would that work better for your readers?"),
    *("A text. Does that do?", "A text. Does this work as an instruction?"),
)
ASKS_A_QUESTION = (
    *("What does it do and what are the alternatives?", "How does it work from day to day?"),
    *("how well does it work?", "I took magnesium for a week. How much does it help?"),
    *("Show me the side effects: which organs does it do harm to?", "why does that work?"),
    *(
        "Garlic is said to keep aphids away. Does it work on roses as well?",
        "For whom does it work?",
    ),
    *("does it help to drink milk after chili?", "will it work with windows 11?"),
    *("would it suit a north-facing room?", "Where will this do most good?"),
    *('"What does it do?" she asked. "How does it help?"', "How does this work for tenants?"),
    "Aspirin is old; what else does it help against?",
)


@pytest.mark.parametrize("gives", ["Passage", "Instruction", "Query"])
def test_a_chat_that_checks_back_is_debris_and_a_question_about_the_subject_is_not(
    gives: Gives,
) -> None:
    assert [text for text in CHECKS_BACK if not find_leftover(gives, text)] == []
    assert [text for text in ASKS_A_QUESTION if find_leftover(gives, text)] == []


def test_no_real_passage_or_query_is_taken_for_debris(real_data: Path) -> None:
    prompt = read_prompt("query_negative", "query_negative.md", FOLDER)
    for name, gives in (("passages", "Passage"), ("pairs", "Query")):
        rows = (real_data / "google_queries" / f"{name}.jsonl").read_text("utf-8").splitlines()
        for row in rows[:1500]:
            text = json.loads(row)["text" if gives == "Passage" else "query"]
            assert find_leftover(gives, text, prompt=prompt, given={}) is None  # type: ignore[arg-type]
