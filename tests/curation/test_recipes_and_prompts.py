"""Recipes and prompts: what is refused, what is hashed, and how answers are read."""

import json
from pathlib import Path
from typing import Any

import pytest
from reference_pages import recipe_settings_page

from curation.recipe.answers import Unparsable, parse
from curation.recipe.completion import read_completion
from curation.recipe.prompt import FOLDER, Prompt, messages, read_prompt
from curation.recipe.reasoning import REASONING_TOKENS, is_reasoning_model
from curation.recipe.recipe import TABLES, list_recipes, load_recipe, recipe_from_store
from curation.recipe.settings import FORMER_FILTERS, Filters
from curation.recipe.slots import TABLES as OF_SHAPE
from curation.recipe.tasks import tasks_of
from curation.rules.filters import check_instruction, check_passage, check_query
from db.corpus.datasets import text_sha256
from db.errors import BadInput
from db.shape import INF_IR

TASKS = tasks_of(INF_IR)


@pytest.mark.parametrize("name", list_recipes())
def test_every_built_in_recipe_loads_and_comes_back_from_the_store_as_it_was(name: str) -> None:
    recipe = load_recipe(name)
    own = set(TASKS) if recipe.shape == INF_IR else set(recipe.tasks) - {"validation"}
    assert set(recipe.stages) == own
    prompts = {sha256: text for sha256, (_, text) in recipe.prompts().items()}
    assert recipe_from_store(recipe.body(), prompts) == recipe


def test_settings_change_one_stage_or_all_and_the_identity() -> None:
    plain = load_recipe("msmarco")
    one = load_recipe("msmarco", ["validation.model=gpt-5-mini", "validation.distractors=5"])
    assert one.stages["validation"].model == "gpt-5-mini" and one.validation.distractors == 5
    assert one.stages["query_negative"].model == "gpt-4o-mini"
    everything = load_recipe("msmarco", ["model=local", "temperature=0.5"])
    assert {stage.model for stage in everything.stages.values()} == {"local"}
    assert everything.stages["validation"].parameters["temperature"] == 0.5
    assert len({plain.sha256, one.sha256, everything.sha256}) == 3


def with_former_names(text: str) -> str:
    for former, name in FORMER_FILTERS.items():
        text = text.replace(name, former)
    return text


@pytest.mark.parametrize("name", list_recipes())
def test_a_recipe_under_its_former_names_is_the_same_recipe(name: str, tmp_path: Path) -> None:
    """Its file is read, a store that holds it is read, and both have the hash stored then."""
    recipe = load_recipe(name)
    file = Path(FOLDER).parent / "recipes" / f"{name}.toml"
    (tmp_path / f"{name}.toml").write_text(with_former_names(file.read_text()))
    assert load_recipe(str(tmp_path / f"{name}.toml")) == recipe
    stored = json.loads(with_former_names(json.dumps(recipe.body())))
    assert "most_query_words" in stored["filters"]
    prompts = {sha256: text for sha256, (_, text) in recipe.prompts().items()}
    assert recipe_from_store(stored, prompts) == recipe
    assert recipe.sha256 == text_sha256(json.dumps(stored, sort_keys=True, ensure_ascii=False))


def test_a_setting_under_its_former_name_takes_precedence_over_the_file(tmp_path: Path) -> None:
    for place in ("filters.most_query_words", "filters.max_query_words"):
        assert load_recipe("msmarco", [f"{place}=7"]).filters.max_query_words == 7
    text = (Path(FOLDER).parent / "recipes" / "msmarco.toml").read_text()
    (tmp_path / "two.toml").write_text(f"{text}\nmost_query_words = 3\n")
    with pytest.raises(BadInput, match=r"two.toml.*'most_query_words' and 'max_query_words'"):
        load_recipe(str(tmp_path / "two.toml"))


def test_the_documented_settings_are_those_that_a_recipe_takes(tmp_path: Path) -> None:
    """What the page lists is what an unknown setting in each part of a file is answered with."""
    page = recipe_settings_page()
    listed = {line.split("`")[1] for line in page.splitlines() if line.startswith("| `")}
    text = (Path(FOLDER).parent / "recipes" / "msmarco.toml").read_text()
    known: set[str] = set()
    for head in ("name = ", "[stages.validation]\n", "[validation]\n", "[filters]\n"):
        wrong = f"{head}colour = 1\n" if head.endswith("\n") else f"colour = 1\n{head}"
        (tmp_path / "mine.toml").write_text(text.replace(head, wrong, 1))
        with pytest.raises(BadInput, match="unknown 'colour'") as refused:
            load_recipe(str(tmp_path / "mine.toml"))
        known |= set(refused.value.message.split("Known: ")[1].split(", "))
    assert listed == known - {*TABLES, *OF_SHAPE}
    assert "| `max_query_words` | `60` |" in page


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ("nonsense", "stage.key=value"),
        ("nowhere.model=x", "no stage 'nowhere'"),
        ("validation.distractors=-1", "whole number"),
        ("filters.colour=3", "unknown 'colour'"),
        ("validation.prompt=absent.md", "no prompt file 'absent.md'"),
    ],
)
def test_a_wrong_setting_is_refused_with_its_place(setting: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        load_recipe("msmarco", [setting])


def test_an_unknown_recipe_names_the_built_in_ones() -> None:
    with pytest.raises(
        BadInput, match="leetcode, metamath, msmarco, offline, promptriever, recorded, robust04"
    ):
        load_recipe("nothing")


def test_a_recipe_file_finds_prompts_beside_it(tmp_path: Path) -> None:
    text = (Path(FOLDER).parent / "recipes" / "msmarco.toml").read_text()
    (tmp_path / "mine.md").write_text("Say something about {document} and {query_positive}.")
    (tmp_path / "mine.toml").write_text(text.replace("instruction_positive.md", "mine.md", 1))
    recipe = load_recipe(str(tmp_path / "mine.toml"))
    assert recipe.stages["instruction_positive"].prompt.text.startswith("Say something")
    assert load_recipe(str(tmp_path)) == recipe, "the folder's only recipe"
    (tmp_path / "mine.md").write_text("Say something about {weather}.")
    with pytest.raises(BadInput, match=r"\{weather\}.*document, query_positive"):
        load_recipe(str(tmp_path / "mine.toml"))
    (tmp_path / "mine.toml").write_text("stages = 3")
    with pytest.raises(BadInput, match="not a table"):
        load_recipe(str(tmp_path / "mine.toml"))


def test_braces_in_a_passage_are_text() -> None:
    prompt = Prompt("x", "You are told {query}.\n---\nAsked: {document}")
    sent = messages(prompt, {"document": "f({query})", "query": "q {document}"})
    assert sent == [
        {"role": "system", "content": "You are told q {document}."},
        {"role": "user", "content": "Asked: f({query})"},
    ]


def test_the_prompts_ask_for_what_the_parser_reads() -> None:
    for task, words in TASKS.items():
        prompt = read_prompt(task, TASKS[task], f"{task}.md", FOLDER)
        assert f"{words.gives}: <" in prompt.text


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ("Instruction: Only old maps.", "Only old maps."),
        ("Instruction: Only old maps.\nBecause you asked.", "Only old maps."),
        ("Sure!\n\n**Instruction:** Only old maps.", "Only old maps."),
        ('instruction : "Only old maps."', "Only old maps."),
        ("Instruction:\nOnly old maps.\nMore.", "Only old maps."),
    ],
)
def test_an_instruction_is_cut_at_its_first_newline(answer: str, text: str) -> None:
    assert parse("instruction_positive", answer, gives="Instruction") == text


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("", "empty"), ("  \n", "empty"), ("Old maps.", "unparsable"), ("Instruction:", "empty")],
)
def test_an_answer_in_another_form_says_why(answer: str, reason: str) -> None:
    with pytest.raises(Unparsable) as caught:
        parse("instruction_positive", answer, gives="Instruction")
    assert caught.value.reason == reason


def test_a_passage_may_have_several_lines() -> None:
    assert (
        parse("passage_query_negative", "Passage: One.\n\nTwo.", gives="Passage") == "One.\n\nTwo."
    )


@pytest.mark.parametrize(
    ("answer", "choice"),
    [
        ("Choice: 2", "2"),
        ("I weighed 1 and 3.\n\nChoice: [3]", "3"),
        ("choice: none.", "none"),
        ("**Choice:** ambiguous", "ambiguous"),
        ("Choice: passage 02", "2"),
        ("Choice: 1\nNo, wait.\nChoice: 4", "4"),
    ],
)
def test_the_last_choice_counts(answer: str, choice: str) -> None:
    assert parse("validation", answer, candidates=6, gives="Choice") == choice


@pytest.mark.parametrize(
    ("answer", "reason"),
    [("Choice: 7", "unknown_candidate"), ("Choice: 0", "unknown_candidate"), ("two", "unparsable")],
)
def test_a_choice_that_is_no_candidate_says_why(answer: str, reason: str) -> None:
    with pytest.raises(Unparsable) as caught:
        parse("validation", answer, candidates=6, gives="Choice")
    assert caught.value.reason == reason


def test_the_rule_filter_names_its_reason() -> None:
    rules = Filters(max_instruction_words=5, max_passage_words=8, quoted_words=3)
    assert check_instruction("Only old maps.", rules) is None
    reasons = [
        check_instruction("one two three four five six", rules),
        check_instruction("ONLY old  maps", rules, positive="Only old maps."),
        check_query("…", rules, positive="x"),
        check_passage(
            "P1-", "It has only old maps.", rules, positive="", instruction="only old maps"
        ),
        check_passage("P2-", "a b c d e f g h i", rules, positive="", instruction="x"),
    ]
    assert [drop and drop.reason for drop in reasons] == [
        "too_long",
        "unchanged",
        "empty",
        "quotes_instruction",
        "too_long",
    ]


def test_the_programming_language_is_named_in_both_instructions_or_the_group_is_dropped() -> None:
    rules = load_recipe("leetcode").filters
    assert check_instruction("Solve it in C++ by recursion.", rules, language="C++") is None
    for text, language, reason in (
        ("Solve it in C by recursion.", "C++", "language_not_named"),
        ("Solve it in C++ by recursion.", "C", "language_not_named"),
        ("Solve it by recursion.", "", "no_language"),
    ):
        drop = check_instruction(text, rules, positive="x", language=language)
        assert drop is not None and drop.reason == reason


def test_code_prompts_are_told_the_language_and_web_prompts_are_not() -> None:
    code, web = load_recipe("leetcode"), load_recipe("msmarco")
    assert "language" in code.stages["instruction_negative"].prompt.places
    assert "language" not in web.stages["instruction_negative"].prompt.places


@pytest.mark.parametrize(
    "name",
    [
        *(
            "gpt-5-mini",
            "o3-mini",
            "o1",
            "openai/o4-mini",
            "gpt-oss-20b",
            "Qwen/Qwen3-8B",
            "qwen3:8b",
        ),
        *(
            "deepseek-ai/DeepSeek-R1-Distill-Qwen-7B",
            "deepseek-r1:7b",
            "deepseek-reasoner",
            "QwQ-32B",
        ),
        *("mistralai/Magistral-Small-2506", "gemini-2.5-flash", "grok-4", "zai-org/GLM-4.6"),
        "kimi-k2-thinking",
    ],
)
def test_a_model_that_reasons_is_known_by_its_name(name: str) -> None:
    assert is_reasoning_model(name)


@pytest.mark.parametrize(
    "name",
    [
        *("gpt-4o-mini", "gpt-4.1", "gpt-5-chat-latest", "local", "small", "llama-3.1-8b-instruct"),
        *("Qwen/Qwen2.5-7B-Instruct", "Qwen3-30B-A3B-Instruct-2507", "mistral-small", "phi-4"),
        *("smollm2", "gemma-3-27b-it", "photo1", "deepseek-chat"),
    ],
)
def test_a_model_that_does_not_reason_is_not_taken_for_one(name: str) -> None:
    assert not is_reasoning_model(name)


def test_a_reasoning_model_in_a_setting_gets_room_to_reason_unless_its_limit_is_set() -> None:
    limits = {
        settings: {
            task: stage.parameters["max_output_tokens"]
            for task, stage in load_recipe("msmarco", settings).stages.items()
        }
        for settings in (
            (),
            ("model=gpt-5-mini",),
            ("query_negative.model=gpt-5-mini",),
            ("model=gpt-5-mini", "query_negative.max_output_tokens=300"),
            ("model=gpt-5-mini", "max_output_tokens=400"),
            ("model=small",),
        )
    }
    usual = limits[()]
    assert usual["query_negative"] == 100 and limits["model=small",] == usual
    assert set(limits["model=gpt-5-mini",].values()) == {REASONING_TOKENS}
    one = limits["query_negative.model=gpt-5-mini",]
    assert one == usual | {"query_negative": REASONING_TOKENS}
    mixed = limits["model=gpt-5-mini", "query_negative.max_output_tokens=300"]
    assert mixed == dict.fromkeys(usual, REASONING_TOKENS) | {"query_negative": 300}
    assert set(limits["model=gpt-5-mini", "max_output_tokens=400"].values()) == {400}


def test_the_models_of_a_built_in_recipe_keep_their_limits() -> None:
    """Its validator reasons, too: a raised limit would be another key, and its answers lost."""
    assert load_recipe("msmarco").stages["validation"].parameters["max_output_tokens"] == 4000


@pytest.mark.parametrize(
    "message",
    [
        {"content": "Choice: 2", "reasoning_content": "The second names it."},
        {"content": "Choice: 2", "reasoning": "The second names it."},
        {"content": "Choice: 2", "thinking": "The second names it."},
        {
            "content": [
                {
                    "type": "thinking",
                    "thinking": [{"type": "text", "text": "The second names it."}],
                },
                {"type": "text", "text": "Choice: 2"},
            ]
        },
        {"content": [{"type": "thinking", "thinking": "The second names it."}, "Choice: 2"]},
    ],
)
def test_the_reasoning_of_a_judge_is_kept_with_its_answer_and_does_not_choose(
    message: dict[str, Any],
) -> None:
    found = read_completion({"choices": [{"message": message, "finish_reason": "stop"}]})
    assert "The second names it." in found.text
    assert parse("validation", found.text, candidates=6, gives="Choice") == "2"


def test_the_tasks_and_what_their_prompts_need_follow_from_the_scenarios() -> None:
    assert list(TASKS) == [
        "instruction_positive",
        "instruction_negative",
        "query_negative",
        "passage_instruction_negative",
        "passage_query_negative",
        "validation",
    ]
    assert TASKS["passage_instruction_negative"].needed == (
        "query_positive",
        "instruction_negative",
    )
    assert TASKS["passage_query_negative"].needed == ("query_negative", "instruction_positive")


def test_a_recipe_without_a_later_passage_stage_takes_that_of_the_earlier_one(
    tmp_path: Path,
) -> None:
    text = (FOLDER.parent / "recipes" / "offline.toml").read_text()
    before, after = text.split("[stages.passage_query_negative]")
    path = tmp_path / "older.toml"
    path.write_text(before + after[after.index("[stages.validation]") :])
    stages = load_recipe(str(path)).stages
    assert stages["passage_query_negative"].prompt.name == "passage_query_negative.md"
    assert stages["passage_query_negative"].model == stages["passage_instruction_negative"].model


def test_a_recipe_without_its_first_passage_stage_is_refused(tmp_path: Path) -> None:
    text = (FOLDER.parent / "recipes" / "offline.toml").read_text()
    start = text.index("[stages.passage_instruction_negative]")
    path = tmp_path / "broken.toml"
    path.write_text(text[:start] + text[text.index("[stages.validation]") :])
    with pytest.raises(BadInput, match=r"no \[stages.passage_instruction_negative\]"):
        load_recipe(str(path))


IN_TWO = """
[texts."Q+"]
field = "query"
column = "query_positive"
from_source = true
[texts."I+"]
field = "instruction"
column = "instruction_positive"
[texts."P+"]
field = "passage"
column = "document_positive"
from_source = true
[texts."I-"]
field = "instruction"
column = "instruction_negative"
[texts."P1-"]
field = "passage"
column = "hard_negative_document_1"
[scenarios.positive]
instruction = "I+"
query = "Q+"
passage = "P+"
[scenarios.instruction_negative]
instruction = "I-"
query = "Q+"
passage = "P1-"
"""


def in_two(tmp_path: Path, **changed: str) -> Path:
    """msmarco's recipe for groups of two scenarios, some of its lines changed."""
    text = (FOLDER.parent / "recipes" / "msmarco.toml").read_text()
    for task in ("query_negative", "passage_query_negative"):
        before, _, after = text.partition(f"[stages.{task}]")
        text = before + "[stages." + after.partition("[stages.")[2]
    text += IN_TWO
    for line, to in changed.items():
        assert line in text
        text = text.replace(line, to)
    (tmp_path / "two.toml").write_text(text)
    return tmp_path / "two.toml"


def test_a_recipe_declares_the_texts_and_scenarios_of_its_groups(tmp_path: Path) -> None:
    recipe = load_recipe(str(in_two(tmp_path)), ["validation.votes=2"])
    assert recipe.shape.roles == ("positive", "instruction_negative")
    assert list(recipe.stages) == [
        "instruction_positive",
        "instruction_negative",
        "passage_instruction_negative",
        "validation",
    ]
    prompts = {sha256: text for sha256, (_, text) in recipe.prompts().items()}
    again = recipe_from_store(json.loads(json.dumps(recipe.body())), prompts)
    assert again == recipe and again.shape == recipe.shape
    other = load_recipe(str(in_two(tmp_path, **{'"P1-"': '"P9-"'})), ["validation.votes=2"])
    assert other.sha256 != recipe.sha256, "the shape is part of what a recipe is"
    assert "shape" not in load_recipe("msmarco").body()


def test_a_wrong_shape_in_a_recipe_is_refused_with_its_place(tmp_path: Path) -> None:
    for line, to, message in (
        (
            'query = "Q+"',
            'query = "Q"',
            r"two.toml, line 62, scenarios.'positive': query = 'Q'; .*: Q\+",
        ),
        ('column = "document_positive"', "colour = 1", r"texts.'P\+'.*unknown 'colour'"),
        ("[stages.passage_instruction_negative]", "[stages.q]", "unknown 'q'"),
    ):
        with pytest.raises(BadInput, match=message):
            load_recipe(str(in_two(tmp_path, **{line: to})))
    path = in_two(tmp_path)
    path.write_text(path.read_text().partition("[scenarios.")[0])
    with pytest.raises(BadInput, match=r"two.toml, line 43, \[texts\]: there is no \[scenarios\]"):
        load_recipe(str(path))
