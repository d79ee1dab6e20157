"""Answers in the shape real servers give: the right text or a counted reason, nothing else."""

import contextlib
import json
import time
from pathlib import Path

import pytest
from answer_corpus import GIVEN, Case, P, Q, X, cases, openai
from debris import CLEAN, Debris, all_debris

from curation.recipe.answers import Unparsable, parse
from curation.recipe.characters import cleaned
from curation.recipe.completion import how_it_ended, read_completion
from curation.recipe.drop_reasons import DROP_REASONS
from curation.recipe.leftovers import find_leftover
from curation.recipe.prompt import FOLDER, read_prompt
from curation.recipe.tasks import Gives, tasks_of
from curation.recorded.recording import SHIPPED
from db.shape import INF_IR

TASKS = tasks_of(INF_IR)

CASES = list(cases())
CANDIDATES = 6


TASK_OF = {
    "Instruction": ("instruction_negative", X),
    "Query": ("query_negative", Q),
    "Passage": ("passage_instruction_negative", P),
}
DEBRIS: dict[str, list[Debris]] = {}
for each in all_debris():
    DEBRIS.setdefault(each.kind, []).append(each)


def outcome(case: Case) -> tuple[str | None, str | None]:
    """The text and the drop reason of a body, as a group's work reads it."""
    found = read_completion(case.body)
    ending = how_it_ended(found.finish_reason)
    if ending == "refused" or (ending == "cut_off" and case.task != "validation"):
        return None, ending
    task = next(task for task in TASKS if task == case.task)
    prompt = read_prompt(task, TASKS[task], f"{task}.md", FOLDER)
    given = None if task == "validation" else case.given
    try:
        return parse(
            task,
            found.text,
            gives=TASKS[task].gives,
            candidates=CANDIDATES,
            prompt=prompt,
            given=given,
        ), None
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
            parse(task, answer, gives=TASKS[task].gives, candidates=CANDIDATES, given={})
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


@pytest.mark.parametrize("kind", DEBRIS)
def test_debris_is_cleaned_away_or_drops_the_text(kind: str) -> None:
    reasons = {"cut off": {"cut_off"}, "filtered": {"refused"}}
    for debris in DEBRIS[kind]:
        for label in debris.only:
            task, text = TASK_OF[label]
            body = openai(debris.answer(label, text), debris.finish)
            found, reason = outcome(Case(debris.name, task, body))
            assert found == (text if debris.cleaned else None), (debris.name, label)
            allowed = reasons.get(kind, {"leftover", "refused", "unparsable"})
            assert debris.cleaned or reason in allowed, (debris.name, label, reason)


@pytest.mark.parametrize("gives", CLEAN)
def test_texts_that_only_look_like_debris_are_kept_to_the_character(gives: Gives) -> None:
    task, _ = TASK_OF[gives]
    for text in CLEAN[gives]:
        body = openai(f"{gives}: {text}")
        assert outcome(Case(text, task, body)) == (text, None), text


def test_an_unseen_character_that_the_pair_has_itself_is_kept() -> None:
    text = "Masons\u200b cut \u202dthe stones\u202c by hand."
    given = GIVEN | {"document": "A \u200bzero width\u202c space \u202din the document."}
    case = Case("held", "passage_instruction_negative", openai(f"Passage: {text}"), given=given)
    assert outcome(case) == (text, None)
    assert outcome(Case("not held", case.task, case.body)) == (text.translate(UNSEEN), None)


@pytest.mark.parametrize(
    ("gives", "text", "given"),
    [
        ("Query", "403 forbidden nginx/1.24", {"document": "A", "query_positive": "404 not found"}),
        ("Query", "502 bad gateway", {"query_positive": "nginx gateway error 502"}),
        (
            "Passage",
            "504 Gateway Timeout is a status.",
            {"document": "502 Bad Gateway is a status."},
        ),
        ("Passage", "Error!", {"language": "", "document": "A tower.", "query_positive": "error"}),
        ("Passage", "Sorry!", {"document": "A tower.", "query_positive": "sorry"}),
    ],
)
def test_what_any_given_text_shows_at_its_own_head_or_end_is_no_leftover(
    gives: Gives, text: str, given: dict[str, str]
) -> None:
    """The joined inputs have one head and one end: those of the document and the last."""
    assert find_leftover(gives, text, given=given) is None
    assert find_leftover(gives, text, given={"document": "A tower."}) is not None


def test_a_query_that_shares_a_word_with_no_query_given_is_still_a_servers_message() -> None:
    given = {"document": "The bad gateway of tower 502.", "query_positive": "how old is the tower"}
    assert find_leftover("Query", "502 Bad Gateway", given=given) is not None


UNSEEN = dict.fromkeys(map(ord, "\u200b\u202c\u202d"))


CLEAN_SETS = {
    "google_queries/passages.jsonl": ("text", "Passage"),
    "google_queries/pairs.jsonl": ("query", "Query"),
    "code_math/gsm8k_pairs.jsonl": ("passage", "Passage"),
    "trec_topics/core18.jsonl": ("narrative", "Instruction"),
    "trec_topics/covid.jsonl": ("narrative", "Instruction"),
}


@pytest.mark.long
def test_no_real_text_is_taken_for_debris(real_data: Path) -> None:
    prompt = read_prompt("query_negative", TASKS["query_negative"], "query_negative.md", FOLDER)
    for name, (key, gives) in CLEAN_SETS.items():
        for row in (real_data / name).read_text("utf-8").splitlines():
            text = " ".join(json.loads(row)[key].split())
            found = find_leftover(gives, text, prompt=prompt, given={})  # type: ignore[arg-type]
            assert found is None, text


def test_no_text_of_the_demo_or_its_recorded_run_is_taken_for_debris_or_changed() -> None:
    rows = [json.loads(row) for row in (SHIPPED / "groups.jsonl").read_text().splitlines()]
    for row in rows:
        for task, spec in TASKS.items():
            text = row.get(task, "")
            assert find_leftover(spec.gives, text) is None or not text, text
            assert cleaned(text, "") == text
    for line in (SHIPPED.parent / "passages.jsonl").read_text().splitlines():
        assert find_leftover("Passage", json.loads(line)["text"]) is None, line
