"""Groups of texts and claims: several texts a call, what varies, backups, texts dropped alone."""

import json
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Ran
from curation_runs import add_dataset, run_curation, slots_of, texts_of
from decided_runs import decide
from exporting import export, load_afresh, rows_of
from openai_server import Server
from records_world import list_groups
from sqlalchemy import func, select, text
from trainer_jobs import TINY, claim

from app.groups.workbench import group_as_json
from app.operations.judging.desk import GroupOnDesk
from curation.judging.sampling import Sampling, sample_study_items
from curation.recipe.answers import Unparsable, parse_several
from curation.recipe.prompt import messages
from curation.recipe.recipe import FOLDER, load_recipe, recipe_from_store
from curation.recipe.slots import drawn
from curation.recipe.structured import response_format
from curation.release.preview import preview_release
from curation.release.request import ReleasePlan
from curation.rules.filters import Drop
from curation.rules.verdict import settle
from curation.run.estimate import estimate_run
from curation.run.revalidation import check_edit, judge
from db.errors import BadInput, Refused
from db.question import Question
from db.review.reviews import approve_group, current_review, edit_group, undo_review
from db.run.group_detail import GroupShown, get_group
from db.run.group_queue import DoneItem
from db.run.revalidations import revalidation_of
from db.run.runs import funnel, shape_and_judging
from db.run.versions import use_version
from db.shape import SPARE, STANDS_IN, TAKEN_OUT, shape_from, shape_in
from db.store.store import Store
from db.tables import Call, Item
from trainer.data.release_files import read_release

PAIRS = 16
RECIPE = load_recipe("promptriever")
SHAPE = RECIPE.shape
ASKED: dict[str, Any] = {
    "dataset": "small",
    "provider": "openai",
    "recipe": "promptriever",
    "settings": ["model=small"],
}


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    with Server(schema="taken") as one:
        monkeypatch.setenv("OPENAI_BASE_URL", one.url)
        yield one


def groups_of(store: Store, run_id: int) -> list[GroupShown]:
    with store.read() as session:
        rows = list_groups(session, run_id, limit=1000).rows
        return [get_group(session, row.id) for row in rows]


# ---- recipes


def test_the_recipe_is_the_same_one_from_the_store() -> None:
    again = recipe_from_store(
        json.loads(json.dumps(RECIPE.body(), sort_keys=True)),
        {sha: text for sha, (_, text) in RECIPE.prompts().items()},
    )
    assert again == RECIPE and again.sha256 == RECIPE.sha256
    assert again.judged_calls == 1 + 1 + 3 + 3
    assert [[step.name for step in level] for level in SHAPE.levels] == [["instruct"], ["passages"]]


def test_claims_grade_the_passages_with_and_without_the_instruction() -> None:
    graded = {
        (claim.instruction and claim.instruction.sign, claim.passage.sign): claim.grade
        for claim in SHAPE.claims
    }
    assert graded == {("I", "P+"): 2, (None, "P+"): 2, ("I", "N"): 1, (None, "N"): 2}


def test_what_is_drawn_follows_from_seed_and_pair_by_its_weights() -> None:
    many = [drawn(RECIPE.vary, 0, f"q{number}") for number in range(2000)]
    assert many == [drawn(RECIPE.vary, 0, f"q{number}") for number in range(2000)]
    styles, lengths = (Counter(one[name] for one in many) for name in ("style", "length"))
    assert styles.keys() == RECIPE.vary["style"].keys()
    assert 0.36 < styles["feature"] / 2000 < 0.44 and 0.17 < styles["persona"] / 2000 < 0.23
    assert 0.16 < lengths["long"] / 2000 < 0.24
    assert many != [drawn(RECIPE.vary, 1, f"q{number}") for number in range(2000)]
    alone = {"length": RECIPE.vary["length"]}
    assert [drawn(alone, 0, f"q{number}")["length"] for number in range(99)] == [
        one["length"] for one in many[:99]
    ]


TEXT = (FOLDER / "promptriever.toml").read_text()
TWO_STEPS = TEXT[TEXT.index("[steps.instruct]") : TEXT.index("[checks.fits]")]
WRONG = [
    # (what is replaced, by what, the line's beginning, the sentence, the remedy)
    (
        'inputs = ["Q", "P+", "style", "length"]',
        'inputs = ["Q", "N", "style", "length"]',
        "[steps.instruct]",
        "instruct and passages are a cycle: each waits for a text of another",
        "take one of these texts out of inputs",
    ),
    (
        'inputs = ["Q", "P+", "I"]',
        'inputs = ["Q", "P+", "J"]',
        "inputs",
        "inputs names 'J'; there are Q, P+, I, B, N, style, length",
        "name some of these",
    ),
    (
        'gives = ["B", "N"]',
        'gives = ["B", "M"]',
        "gives",
        "gives names 'M'; there are Q, P+, I, B, N",
        "name some of these",
    ),
    (
        'gives = ["B", "N"]',
        'gives = ["B"]',
        '"N" =',
        "no step gives it, nor does it come with the pair",
        "add it to a step's gives",
    ),
    (
        'gives = ["I"]',
        'gives = ["I", "Q"]',
        "gives",
        "gives names 'Q'; the texts to write are I, B, N",
        "name some of these",
    ),
    (
        'gives = ["I"]',
        'gives = ["I", "N"]',
        "gives",
        "gives names 'N', which another step gives, too",
        "leave it to one of them",
    ),
    (
        '{ 2 = "P+", 1 = "N" }',
        '{ 1 = "N" }',
        '"(I, Q)"',
        "it claims of no passage that it satisfies them",
        "name one passage under 2",
    ),
    (
        '{ 2 = "P+", 1 = "N" }',
        '{ 2 = "P+", 1 = "I" }',
        '"(I, Q)"',
        "'I' is no passage of [texts]; there are P+, B, N",
        "name one of these",
    ),
    (
        '"(I, Q)" =',
        '"(J, Q)" =',
        '"(J, Q)"',
        "'J' is no instruction of [texts]; there are I",
        "name one of these",
    ),
    (
        '"(I, Q)" =',
        '"(, Q)" =',
        '"(, Q)"',
        "what holds without an instruction follows from the claims with one",
        "leave it out",
    ),
    (
        'over = ["P+", "B", "N"]',
        "over = []",
        "over",
        "over names the texts it is asked about, one or more of one field",
        'write over = ["P+"]',
    ),
    (
        'with = ["Q"]',
        'with = ["Q", "B"]',
        "with",
        "with names 'B', of which a group may have none or several",
        "take it into over",
    ),
    (
        "medium = 2",
        "medium = 0",
        "length",
        "medium = 0 is no weight, which is a number above 0",
        "raise it, or leave medium out",
    ),
    (
        "length = { short = 2, medium = 2, long = 1 }",
        "length = {}",
        "length",
        "there is nothing to draw",
        "write names and weights",
    ),
    (
        '"style", "length"]',
        '"style"]',
        "length",
        "it is drawn, and no step has it among its inputs",
        'add it to a step, as in inputs = ["Q", "length"]',
    ),
    (
        '"N" = "drop text"',
        '"N" = "drop it"',
        '"N" = "drop it"',
        "'drop it' is no rule",
        "write “drop text”, “drop group”, or “else” and a text",
    ),
    (
        '"P+" = "else B"',
        '"P+" = "else X"',
        '"P+" = "else X"',
        "'X' is no passage of [texts]; there are P+, B, N",
        "name one of these",
    ),
    (
        '"N" = "drop text"',
        '"I" = "drop text"',
        '"I" = "drop text"',
        "a group needs its 'I', of which there is one",
        "write “drop group”",
    ),
    (
        "count = 3",
        "count = 0",
        '"N" =',
        "count = 0 is not a whole number from 1 to 32",
        "write such a number",
    ),
    (
        "count = 3",
        "count = 3, at_least = 4",
        '"N" =',
        "at_least = 4 of count = 3",
        "lower at_least",
    ),
    (
        'model = "o3-mini"\noutput = "json"\nmax_output_tokens = 4000\nover = ["N"]',
        'output = "json"\nover = ["N"]',
        "[checks.answers]",
        "no model",
        "see a built-in one",
    ),
    ("[rules]", "[rulez]", "[rulez]", "unknown 'rulez'; did you mean 'rules'", "correct its"),
    ("[vary]", "[varry]", "[varry]", "unknown 'varry'; did you mean 'vary'", "correct its"),
    (
        "[checks.answers]",
        "[chekcs.answers]",
        "[chekcs.answers]",
        "unknown 'chekcs'; did you mean 'checks'",
        "correct its",
    ),
    (
        '[claims]\n"(I, Q)" = { 2 = "P+", 1 = "N" }\n',
        "",
        "[texts]",
        "there is no [scenarios] or [claims]",
        "a shape has [texts], and either",
    ),
    (
        '"(I, Q)" = { 2 = "P+", 1 = "N" }\n',
        "",
        "[claims]",
        "there is no claim",
        'write one, as in "(I, Q)" = { 2 = "P+" }',
    ),
    (
        '[rules]\n"P+" = "else B"\n',
        "[rules]\n",
        '"B" =',
        "no claim names it, and no rule has it take a text's place",
        "name 'B' in one",
    ),
    (TEXT, "", "", "has neither [stages] nor [texts]", "begin with a built-in one"),
    ('column = "b', 'colum = "b', '"B" =', "unknown 'colum'; did you mean 'column'", "correct its"),
    ("gives = [", "give = [", "give =", "unknown 'give'; did you mean 'gives'", "correct its"),
    ('with = ["I', 'wiht = ["I', "wiht", "unknown 'wiht'; did you mean 'with'", "correct its"),
    ("distractors = 0", "distractor = 0", "distractor =", "did you mean 'distractors'", "correct"),
    ("quoted_words = 8", "quoted_word = 8", "quoted_word =", "did you mean 'quoted_words'", "corr"),
    (
        'name = "pro',
        'nam = "pro',
        "nam =",
        "unknown 'nam'; did you mean 'name'",
        "correct its",
    ),
    ('name = "promptriever"', "name = 3", "name =", "name = 3 is not a text", "write it in quotes"),
    (
        'field = "passage", column = "b',
        'field = 3, column = "b',
        '"B" =',
        "field = 3 is",
        "take one",
    ),
    ('gives = ["I"]', "gives = 3", "gives =", "gives = 3 is not a list of texts", "write gives ="),
    ("style = {", "style = 3 # {", "style =", "is not a table", "write it as one"),
    ("medium = 2", "medium = inf", "length =", "medium = inf is no weight", "raise it"),
    (
        "temperature = 1.0",
        'temperature = "hot"',
        "temp",
        "'hot' is not a number from 0 up",
        "write",
    ),
    ("_tokens = 300", "_tokens = 0", "max", "0 is not a whole number above 0", "write one"),
    ("[checks.answers]", "[[checks.answers]]", "[[che", "[checks.answers] is not a table", "wri"),
    (
        'over = ["N"]',
        'over = [["N"]]',
        "over =",
        "over names \"['N']\"; the texts are",
        "take some",
    ),
    ('question = "yes_no"', "question = 3", "question =", "question = 3 is none of", "question ="),
    ('"N" = "no" }', '"N" = "perhaps" }', "expected", "'perhaps' cannot be expected", "expect an"),
    ('"(I, Q)" = {', '"(I, Q)" = 3 # {', '"(I, Q)"', "is not a table", "write it as one"),
    ("distractors = 0", "votes = 0", "votes", "votes = 0: at least 1 is needed", "write 1"),
    ("[texts]", "stages = 3\n[texts]", "stages = 3", "[stages] is not a table", "write it as one"),
    (
        "[texts]",
        'endpoints = "x"\n[texts]',
        "endpoints",
        "is not a list of addresses",
        "write endp",
    ),
    # what loaded, and made something else of the groups than was meant
    (
        '"P+" = "else B"',
        '"P+" = "else N"',
        '"P+" = "else N"',
        "'N' cannot take its place, as a claim says something else of it",
        "name another text",
    ),
    (
        '"N" = "drop text"',
        '"B" = "else N"',
        '"B" = "else N"',
        "'B' is the right passage of no claim",
        "write “drop text” or “drop group”",
    ),
    (
        '"P+" = "else B"\n"N" = "drop text"',
        '"N" = "else B"',
        '"N" = "else B"',
        "'N' is the right passage of no claim",
        "write “drop text” or “drop group”",
    ),
    (
        '"N" = "drop text"',
        '"B" = "drop group"',
        '"P+" = "else B"',
        "'B' has a rule, too, and is looked at only to take the place of 'P+'",
        "leave out the rule of 'B'",
    ),
    (
        'column = "backup"',
        'column = "backup", count = 2',
        '"P+" = "else B"',
        "'B' has a count, and one text takes a place",
        "take out the count of 'B'",
    ),
    (
        'over = ["P+", "B", "N"]\nwith = ["I", "Q"]\nexpected = { "P+" = "yes", ',
        'over = ["B", "N"]\nwith = ["I", "Q"]\nexpected = { ',
        '"P+" = "else B"',
        "no check is over 'P+', so nothing takes its place",
        "add 'P+' to the over and expected of a check",
    ),
    (
        'column = "instruction",',
        'column = "instruction", count = 2,',
        '"I" =',
        "it is the instruction of a claim, of which a group has one",
        "take out count and at_least",
    ),
    (
        "[vary]",
        '"N[1]" = { field = "passage" }\n[vary]',
        '"N[1]"',
        "a sign is of letters",
        "rename",
    ),
    ("[vary]", '"a:b" = { field = "passage" }\n[vary]', '"a:b"', "a sign is of letters", "rename"),
    ("[vary]", '"a\\n" = { field = "passage" }\n[vary]', '"a', "a sign is of letters", "rename it"),
    (
        "[validation]",
        '"(I,Q)" = { 2 = "B" }\n[validation]',
        '"(I, Q)"',
        "there are two claims of I and Q",
        "write both as one",
    ),
    *(
        (
            "[validation]",
            f'[stages.{task}]\nmodel = "x"\n[validation]',
            f"[stages.{task}]",
            f"[{own}] sets it",
            "leave it out",
        )
        for task, own in (("instruct", "steps.instruct"), ("check_fits", "checks.fits"))
    ),
    *(
        (
            "length = { short",
            f"{name} = {{ short",
            name,
            "and not that of a text or of our own",
            "rename it",
        )
        for name in ("text_language", "language", "document")
    ),
    (
        "short = 2, medium = 2",
        "short = 1e308, medium = 1e308",
        "length",
        "its weights are too large to add up",
        "write 1, 2, 3",
    ),
    (
        'gives = ["B", "N"]',
        'gives = ["B", "N", "N"]',
        "gives",
        "gives names 'N' twice",
        "name it once",
    ),
    (
        'inputs = ["Q", "P+", "style", "length"]',
        'inputs = ["I", "style", "length"]',
        "[steps.instruct]",
        "line 19, steps.'instruct': instruct waits for a text of its own",
        "take one of these texts out of inputs",
    ),
    (
        TWO_STEPS,
        TWO_STEPS.replace('"P+", "style"', '"B", "style"').replace('"I"]\nmodel', '"N"]\nmodel'),
        "[steps.passages]",
        "line 28, steps.'passages': passages waits for a text of its own",
        "take one of these texts out of inputs",
    ),
]


@pytest.mark.parametrize(("old", "new", "begins", "sentence", "remedy"), WRONG)
def test_a_wrong_recipe_gets_one_sentence_with_file_line_and_remedy(
    tmp_path: Path,
    inf: Callable[..., Ran],
    old: str,
    new: str,
    begins: str,
    sentence: str,
    remedy: str,
) -> None:
    assert old in TEXT
    file = tmp_path / "mine.toml"
    file.write_text(TEXT.replace(old, new, 1))
    with pytest.raises(BadInput) as refused:
        load_recipe(str(file))
    message = refused.value.message
    shown = inf("recipes", "check", file)
    wanted = f"Error: {message}: {refused.value.remedy}\n".replace("`recipes", "`inf recipes")
    assert (shown.code, shown.err) == (1, wanted)
    assert message.startswith("the recipe mine.toml, line ") and sentence in message, message
    assert "\n" not in message and refused.value.remedy.startswith(remedy), refused.value.remedy
    number = refused.value.values["line"]
    line = file.read_text().split("\n")[number - 1]
    assert line.startswith(begins), (message, line)


@pytest.mark.parametrize(
    "place",
    ["{reason}", "{I}", "{P+}", "{N[1]}", "{Query}", "{ passage }", "{backup2}", "{fenced_x}"],
)
def test_a_prompt_that_names_what_it_is_not_given_is_refused_with_its_line(
    tmp_path: Path, place: str
) -> None:
    prompt = f'You judge.\n---\nQuery: {{query}}\n\n{{passage}} {place}\n{{"backup": ["x"]}}\n'
    (tmp_path / "own.md").write_text(prompt)
    file = tmp_path / "mine.toml"
    for stage, where in (("passages", "the step's inputs"), ("fits", "the check's with")):
        file.write_text(TEXT.replace(f"promptriever_{stage}.md", "own.md"))
        with pytest.raises(BadInput) as refused:
            load_recipe(str(file))
        assert f"the prompt 'own.md', line 5, names {place}; " in refused.value.message
        assert refused.value.remedy == f"use one of these, or add its text to {where}"


def test_a_column_with_a_digit_is_a_place_in_prompts(tmp_path: Path) -> None:
    (tmp_path / "own.md").write_text('{passage2} {"passage": ["x"], "n": {}}')
    text = TEXT.replace('column = "passage"', 'column = "passage2"')
    text = text.replace("promptriever_instruct.md", "own.md")
    (tmp_path / "mine.toml").write_text(text.replace("promptriever_passages.md", "own.md"))
    prompt = load_recipe(str(tmp_path / "mine.toml")).stages["instruct"].prompt
    assert messages(prompt, {"passage2": "honey"})[0]["content"].startswith('honey {"passage"')
    assert messages(prompt, {})[0]["content"].startswith("{passage2} {"), "as it was once sent"


# ---- answers


def test_the_texts_of_an_answer_are_read_each_by_itself() -> None:
    texts = tuple(SHAPE.slots[sign] for sign in ("B", "N"))
    good = {"backup": "One text here.", "instruction_negatives": ["Two here.", "Three here."]}
    for answer in (
        json.dumps(good),
        f"```json\n{json.dumps(good)}\n```",
        f"<think>{{}}</think>Here you are: {json.dumps(good | {'reasoning': 'x'})}",
        json.dumps(
            good | {"instruction_negatives": ["Two here.", "", "Three here.", "Four.", "5"]}
        ),
    ):
        found = parse_several("passages", answer, texts)
        assert found["B"] == "One text here." and found["N"] == "Two here."
        assert found["N[1]"] == "Three here."
    assert "N[3]" not in found
    found = parse_several("passages", json.dumps(good | {"backup": 7}), texts)
    assert isinstance(found["B"], Unparsable) and found["N"] == "Two here."
    refused = parse_several("p", json.dumps({"instruction_negatives": ["I cannot help."]}), texts)
    assert "B" not in refused
    for answer in ("", "no object", "{}", '{"backup": "x", "other": 1}', '{"backup": "x"', "[1]"):
        with pytest.raises(Unparsable):
            parse_several("passages", answer, texts)


def test_the_schema_names_every_text() -> None:
    texts = tuple(SHAPE.slots[sign] for sign in ("B", "N"))
    schema = response_format("passages", "Texts", texts=texts)["json_schema"]["schema"]
    assert schema["required"] == ["backup", "instruction_negatives"]
    assert schema["properties"]["instruction_negatives"]["type"] == "array"


# ---- rules


FITS = Question("fits", "yes_no")


def answered(**given: str) -> list[DoneItem]:
    """Items of the check `fits`, with an answer for each text; P+ and B should fit."""
    names = {"P": "P+", "B": "B", "N0": "N", "N1": "N[1]", "N2": "N[2]"}
    return [
        DoneItem(
            scenario=f"fits:{names[name]}",
            instruction="i",
            query="q",
            candidates=(),
            choice=choice,
            order_shown=(),
            judge_id=1,
            expected="yes" if name in "PB" else "no",
            question=FITS,
        )
        for name, choice in given.items()
    ]


@pytest.mark.parametrize(
    ("answers", "reason", "dropped", "stand_ins"),
    [
        ({"P": "yes", "B": "yes", "N0": "no"}, None, set(), {}),
        ({"P": "yes", "B": "no", "N0": "yes"}, None, {"B", "N"}, {}),
        ({"P": "no", "B": "yes", "N0": "no"}, None, set(), {"P+": "B"}),
        ({"P": "no", "B": "no", "N0": "no"}, "check_fits", {"B"}, {}),
        ({"P": "no", "N0": "no"}, "check_fits", set(), {}),
        ({"P": "ambiguous", "B": "yes"}, None, set(), {"P+": "B"}),
        (
            {"P": "yes", "B": "yes", "N0": "yes", "N1": "no", "N2": "ambiguous"},
            None,
            {"N", "N[2]"},
            {},
        ),
    ],
)
def test_rules_drop_texts_and_let_a_backup_take_a_place(
    answers: dict[str, str], reason: str | None, dropped: set[str], stand_ins: dict[str, str]
) -> None:
    items = answered(**answers)
    written = {item.scenario.partition(":")[2] for item in items} - {"P+"}
    settled = settle(SHAPE, written, {}, items)
    assert (settled.drop and settled.drop.reason) == reason
    assert set(settled.dropped) == dropped and settled.stand_ins == stand_ins


def test_a_group_stands_while_its_shape_has_what_it_needs() -> None:
    body = SHAPE.body()
    of_list = {**body["lists"][1], "at_least": 2}
    needs_two = shape_from(body | {"lists": [body["lists"][0], of_list]})
    items = answered(P="yes", N0="yes", N1="no", N2="no")
    written = {"N", "N[1]", "N[2]"}
    assert settle(needs_two, written, {}, items).drop is None
    lost = {"N[2]": Drop("too_long", "N[2] has 900 words")}
    drop = settle(needs_two, written, lost, items).drop
    assert drop is not None and drop.reason == "too_few_texts"
    assert drop.detail.startswith("N: 1 passed, 2 are needed; fits:N: the judge answered yes")
    all_or_none = shape_from(body | {"lists": [body["lists"][0], of_list | {"drops_group": True}]})
    drop = settle(all_or_none, written, {}, items).drop
    assert drop is not None and drop.reason == "check_fits"


# ---- runs


@pytest.mark.long
def test_a_run_keeps_groups_with_differing_numbers_of_negatives(
    store: Store, server: Server
) -> None:
    dataset_id = add_dataset(store, pairs=PAIRS)
    with store.read() as session:
        recipe = load_recipe("promptriever", ["model=small"])
        expected = estimate_run(session, dataset_id, recipe, {}, limit=None, concurrency=4)
    result = run_curation(store, **ASKED)
    assert result["status"] == "done" and result["kept"] > PAIRS / 2, result["dropped"]
    run_id = result["run_id"]
    assert server.tasks["texts"] == PAIRS, "one call writes four passages"
    assert sum(stage.calls for stage in expected.stages) == PAIRS * (2 + 5 + 3)
    assert result["calls"]["made"] == PAIRS * (2 + 5 + 3)
    groups, slots = groups_of(store, run_id), slots_of(store, run_id)
    kept = [group for group in groups if group.verdict == "kept"]
    numbers = Counter(sum(name.startswith("N") for name in group.texts) for group in kept)
    assert len(numbers) >= 3, numbers
    places: Counter[str] = Counter()
    for group in kept:
        found = slots[group.id]
        backup, reason = found["B"]
        places[str(reason)] += 1
        assert ("B" in group.texts) is False
        if reason == STANDS_IN:
            assert group.texts["P+"] == backup != group.passage
        else:
            assert reason in (SPARE, "check_fits")
            assert group.texts["P+"] == group.passage
        answers = {one.scenario: one for one in group.judgments}
        for number in range(3):
            name = f"N[{number}]" if number else "N"
            text, why = found[name]
            assert (why is None) == (answers[f"fits:{name}"].choice == "no")
            assert (name in group.texts) == (why is None)
            assert answers[f"fits:{name}"].candidates[name] == text
        own = answers["fits:P+"]
        assert own.candidates["positive"] == group.passage
        assert own.agrees is (reason != STANDS_IN)
    assert places[SPARE] and places[STANDS_IN], places
    shown = [one.request["inputs"] for of in groups for one in of.calls if one.task == "check_fits"]
    assert {tuple(sorted(each)) for each in shown} == {("instruction", "passage", "query")}, (
        "a judge is not told which slot a passage is of"
    )
    dropped = [group for group in groups if group.verdict == "dropped"]
    assert {group.drop_reason for group in dropped} <= {"check_fits"}
    with store.read() as session:
        assert not result["picks"]
        with pytest.raises(Refused, match="given its texts one by one"):
            sample_study_items(session, run_id, Sampling(), 4, 0)
        assert shape_and_judging(session, run_id)[1] == 8
        assert funnel(session, run_id).reached["passages"] == PAIRS


def test_what_is_drawn_is_asked_for_and_recorded(store: Store, server: Server) -> None:
    add_dataset(store, pairs=PAIRS)
    run_id = run_curation(store, **ASKED, seed=3)["run_id"]
    styles = set()
    for group in groups_of(store, run_id):
        (call,) = (call for call in group.calls if call.task == "instruct")
        wanted = drawn(RECIPE.vary, 3, group.name)
        assert {name: call.request["inputs"][name] for name in wanted} == wanted
        styles.add(wanted["style"])
    assert len(styles) == 4


def test_a_second_run_asks_nothing_and_gives_the_same(store: Store, server: Server) -> None:
    add_dataset(store, pairs=PAIRS)
    first = run_curation(store, **ASKED)
    again = run_curation(store, **ASKED)
    assert again["calls"] == {"made": 0, "reused": first["calls"]["made"]}
    assert texts_of(store, again["run_id"]) == texts_of(store, first["run_id"])
    one, other = (list(slots_of(store, each["run_id"]).values()) for each in (first, again))
    assert one == other


@pytest.mark.long
def test_another_rule_decides_stored_answers_without_asking(
    store: Store, server: Server, tmp_path: Path
) -> None:
    add_dataset(store, pairs=PAIRS)
    first = run_curation(store, **ASKED)
    text = (
        (FOLDER / "promptriever.toml").read_text().replace("count = 3", "count = 3, at_least = 2")
    )
    (tmp_path / "strict.toml").write_text(text)
    asked = ASKED | {"recipe": str(tmp_path / "strict.toml")}
    stricter = run_curation(store, **asked)
    assert stricter["calls"]["made"] == 0 and stricter["kept"] < first["kept"]
    assert stricter["dropped"]["too_few_texts"] == first["kept"] - stricter["kept"]
    for group in groups_of(store, stricter["run_id"]):
        if group.verdict == "kept":
            assert sum(name.startswith("N") for name in group.texts) >= 2


@pytest.mark.long
def test_a_server_with_faults_gives_the_groups_of_one_without(
    store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(store, pairs=PAIRS)
    calm = run_curation(store, **ASKED)
    passing = dict.fromkeys(("429", "500", "cut_before", "cut_after", "truncated"), 0.12)
    with Server(faults=passing, schema="taken", seed=3) as other:
        monkeypatch.setenv("OPENAI_BASE_URL", other.url)
        rough = run_curation(store, **ASKED, fresh=True)
    assert rough["calls"]["made"] == calm["calls"]["made"]
    one, other_ = (list(slots_of(store, each["run_id"]).values()) for each in (calm, rough))
    assert one == other_ and texts_of(store, calm["run_id"]) == texts_of(store, rough["run_id"])


@pytest.mark.long
def test_a_refused_answer_drops_its_group_with_the_reason(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(store, pairs=PAIRS)
    with Server(faults={"wrong_form": 0.1, "refusal": 0.1}, seed=5) as one:
        monkeypatch.setenv("OPENAI_BASE_URL", one.url)
        result = run_curation(store, **ASKED)
    assert result["status"] == "done" and {"unparsable", "refused"} <= result["dropped"].keys()
    assert result["kept"] + sum(result["dropped"].values()) == PAIRS


@pytest.mark.long
def test_the_offline_provider_makes_ragged_groups_and_says_so(sqlite_store: Store) -> None:
    from curation.importing.importing import import_dataset
    from curation.recorded.recording import SHIPPED

    demo = SHIPPED.parent
    import_dataset(
        sqlite_store, name="demo", pairs=demo / "pairs.jsonl", passages=demo / "passages.jsonl"
    )
    result = run_curation(
        sqlite_store, dataset="demo", provider="offline", recipe="promptriever", limit=60
    )
    assert result["status"] == "done" and result["kept"] >= 10, result["dropped"]
    kept = [one for one in groups_of(sqlite_store, result["run_id"]) if one.verdict == "kept"]
    numbers = Counter(sum(name.startswith("N") for name in group.texts) for group in kept)
    assert len(numbers) >= 3 and numbers[0] * 2 < len(kept), numbers
    group = next(one for one in kept if "N" in one.texts)
    with sqlite_store.write() as session:
        edit_group(session, group.id, {"instruction_negatives": NEW}, reviewed_by="ada")
        session.commit()
    judged = judge_edits(result["run_id"], sqlite_store)
    assert (judged["items"], judged["offline"]) == (2, True)
    with sqlite_store.read() as session:
        models = set(session.scalars(select(Call.model)))
    assert models == {"rules", "sentence-transformers/all-MiniLM-L6-v2"}


# ---- edits


def revisions(store: Store, group_id: int) -> dict[str, int]:
    """The newest revision of each item of a group."""
    with store.read() as session:
        query = select(Item.scenario, func.max(Item.revision)).group_by(Item.scenario)
        return dict(session.execute(query.where(Item.group_id == group_id)).all())


def judge_edits(run_id: int, store: Store) -> dict[str, Any]:
    return judge(claim(store, {"run_id": run_id}, kind="judge")).as_json()


def on_page(group: GroupShown, revalidation: dict[str, str]) -> dict[str, Any]:
    return group_as_json(GroupOnDesk(group, revalidation, None, False, ""))


NEW = "Nobody has ever built one of these by hand; they were all cast."


@pytest.mark.long
def test_one_text_of_a_list_is_edited_judged_again_and_restored(
    store: Store, server: Server, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    add_dataset(store, pairs=PAIRS)
    run_id = run_curation(store, **ASKED)["run_id"]
    kept = [one for one in groups_of(store, run_id) if one.verdict == "kept"]
    group = next(one for one in kept if "N[1]" in one.texts)
    field = "instruction_negatives[1]"
    with store.write() as session:
        for wrong, code in (
            ({"backup": NEW}, "field_unknown"),
            ({"instruction_negatives[3]": NEW}, "field_unknown"),
            ({field: " "}, "field_empty"),
            ({field: group.texts["N[1]"]}, "edit_without_change"),
        ):
            with pytest.raises(BadInput) as refused:
                edit_group(session, group.id, wrong, reviewed_by="ada")
            assert refused.value.code == code
        lost = next(one for one in kept if "N" not in one.texts)
        with pytest.raises(BadInput) as refused:
            edit_group(session, lost.id, {"instruction_negatives": ""}, reviewed_by="ada")
        assert refused.value.code == "field_not_in_group"
        with pytest.raises(BadInput, match="the run's rules refuse the edit: N has 700 words"):
            check_edit(session, group.id, {"instruction_negatives": "word " * 700})
    asked = server.answered.total()
    done = inf("reviews", "set", group.id, "--edit", f"{field}={NEW}")
    assert done.code == 0, done.err
    with store.read() as session:
        now = get_group(session, group.id)
        assert now.texts == group.texts | {"N[1]": NEW}
        assert now.review is not None and now.review.before == {field: group.texts["N[1]"]}
        found = revalidation_of(session, group.id)
    assert found == {"fits:N[1]": "waiting", "answers:N[1]": "waiting"}
    parts = {part["label"]: part for part in on_page(now, found)["columns"][0]["parts"]}
    assert parts["Passage N[1]"]["field"] == field and parts["Passage N[1]"]["text"] == NEW
    assert "fits: not asked again since the edit" in parts["Passage N[1]"]["note"]
    assert not [one for label, one in parts.items() if " · " in label and one["field"]]
    renewed = {place for place, number in revisions(store, group.id).items() if number == 2}
    assert renewed == found.keys()
    first = judge_edits(run_id, store)
    assert (first["items"], first["holds"] + first["fails"]) == (2, 2), first
    assert server.answered.total() == asked + 2
    assert judge_edits(run_id, store)["items"] == 0
    with store.read() as session:
        assert set(revalidation_of(session, group.id).values()) <= {"holds", "fails"}
        texts = select(Call.request).order_by(Call.id.desc()).limit(2)
        assert {one["inputs"]["passage"] for one in session.scalars(texts)} == {NEW}
    # a threshold by which the run's own text would leave does not take a person's
    decide(run_id, "checks.fits.expected.N=yes")
    with store.read() as session:
        assert get_group(session, group.id).texts["N[1]"] == NEW
    with store.write() as session:
        use_version(session, run_id, 1)
        session.commit()
    out = tmp_path / "out"
    export(store, out, dataset="small", runs=[run_id], format="jsonl")
    released = [one["text"] for row in rows_of(out)["small"] for one in row["negative_passages"]]
    assert NEW in released and group.texts["N[1]"] not in released
    with store.write() as session:
        undo_review(session, group.id, reviewed_by=now.review.reviewed_by)
        session.commit()
        assert get_group(session, group.id).texts == group.texts
        edit_group(session, group.id, {"instruction": "Only what Ann wrote."}, reviewed_by="ada")
        session.commit()
        found = revalidation_of(session, group.id)
    # the instruction is shown with every text that is asked whether it fits; N[1] was restored
    of_instruction = {one.scenario for one in group.judgments if one.scenario.startswith("fits:")}
    assert found.keys() == of_instruction | {"answers:N[1]"}


def texts_now(store: Store, group_id: int) -> dict[str, str]:
    with store.read() as session:
        return get_group(session, group_id).texts


def reasons_now(store: Store, group_id: int) -> dict[str, str | None]:
    with store.read() as session:
        return {each.name: each.dropped_reason for each in get_group(session, group_id).lists}


@pytest.mark.long
def test_one_text_of_a_list_is_taken_out_added_and_put_back(
    store: Store, server: Server, tmp_path: Path, inf: Callable[..., Ran]
) -> None:
    add_dataset(store, pairs=PAIRS)
    text = (FOLDER / "promptriever.toml").read_text().replace("count = 3", "count = 4")
    (tmp_path / "wider.toml").write_text(text)
    run_id = run_curation(store, **ASKED | {"recipe": str(tmp_path / "wider.toml")})["run_id"]
    kept = [one for one in groups_of(store, run_id) if one.verdict == "kept"]
    group = next(one for one in kept if {"N", "N[1]"} <= one.texts.keys())
    before, free = reasons_now(store, group.id), "instruction_negatives[3]"
    assert "N[3]" not in before, "the server writes three: the fourth place was never used"
    asked = server.answered.total()

    def change(of: int, field: str, text: str) -> None:
        done = inf("reviews", "set", of, "--edit", f"{field}={text}")
        assert done.code == 0, done.err

    def undo(of: int) -> None:
        with store.write() as session:
            review = current_review(session, of)
            assert review is not None
            undo_review(session, of, reviewed_by=review.reviewed_by)
            session.commit()

    # taken out: it is none of the group's texts, and nothing is asked about it
    change(group.id, "instruction_negatives[1]", "")
    without = {name: text for name, text in group.texts.items() if name != "N[1]"}
    assert texts_now(store, group.id) == without
    assert reasons_now(store, group.id) == before | {"N[1]": TAKEN_OUT}
    with store.read() as session:
        assert revalidation_of(session, group.id) == {}
    decide(run_id, "checks.fits.expected.N=any")
    assert texts_now(store, group.id) == without, "a version brings back no text that a person took"
    out = tmp_path / "out"
    export(store, out, dataset="small", runs=[run_id], format="jsonl")
    released = [one["text"] for row in rows_of(out)["small"] for one in row["negative_passages"]]
    assert group.texts["N[1]"] not in released and without["N"] in released
    with store.write() as session:
        use_version(session, run_id, 1)
        session.commit()
    undo(group.id)
    assert texts_now(store, group.id) == group.texts and reasons_now(store, group.id) == before
    # added where the run wrote none: asked about as the others of its list
    change(group.id, free, NEW)
    assert texts_now(store, group.id) == group.texts | {"N[3]": NEW}
    with store.read() as session:
        found = revalidation_of(session, group.id)
    assert found == {"fits:N[3]": "waiting", "answers:N[3]": "waiting"}
    judged = judge_edits(run_id, store)
    assert judged["items"] == judged["holds"] + judged["fails"] == 2
    assert server.answered.total() == asked + 2
    export(store, tmp_path / "more", dataset="small", runs=[run_id], format="jsonl")
    assert NEW in str(rows_of(tmp_path / "more"))
    undo(group.id)
    assert texts_now(store, group.id) == group.texts and reasons_now(store, group.id) == before
    with store.read() as session:
        assert revalidation_of(session, group.id) == {}
    assert judge_edits(run_id, store)["items"] == 0
    # added where one was dropped: that one comes back, dropped, when it is undone
    lost = next(one for one in kept if before_of(one).get("N") not in (None, ""))
    was = reasons_now(store, lost.id)
    change(lost.id, "instruction_negatives", NEW)
    change(lost.id, "instruction_negatives", f"{NEW} Twice.")
    assert texts_now(store, lost.id) == lost.texts | {"N": f"{NEW} Twice."}
    undo(lost.id)
    undo(lost.id)
    assert texts_now(store, lost.id) == lost.texts and reasons_now(store, lost.id) == was
    with store.read() as session:
        assert get_group(session, lost.id).lists == lost.lists


@pytest.mark.long
def test_a_version_recorded_over_an_added_text_holds_what_the_run_decided(
    store: Store, server: Server, inf: Callable[..., Ran]
) -> None:
    add_dataset(store, pairs=PAIRS)
    run_id = run_curation(store, **ASKED)["run_id"]
    kept = [one for one in groups_of(store, run_id) if one.verdict == "kept"]
    lost = next(one for one in kept if before_of(one).get("N") == "check_fits")
    whole = next(one for one in kept if "N[1]" in one.texts and one.id != lost.id)

    def change(of: int, field: str, text: str) -> None:
        done = inf("reviews", "set", of, "--edit", f"instruction_negatives{field}={text}")
        assert done.code == 0, done.err

    def undo(of: int) -> None:
        with store.write() as session:
            undo_review(session, of, reviewed_by=current_review(session, of).reviewed_by)
            session.commit()

    def use(number: int) -> None:
        with store.write() as session:
            use_version(session, run_id, number)
            session.commit()

    change(lost.id, "", NEW)
    change(whole.id, "[1]", "")
    decide(run_id, "checks.answers.expected.N=any")  # version 1 is recorded now
    assert texts_now(store, lost.id)["N"] == NEW and "N[1]" not in texts_now(store, whole.id)
    use(1)
    for group in (lost, whole):
        undo(group.id)
        assert reasons_now(store, group.id) == before_of(group)
    for number in (2, 1):
        use(number)
        assert reasons_now(store, lost.id)["N"] == "check_fits"
        assert texts_now(store, whole.id) == whole.texts
    # what a person took out stays out when what they wrote in its place is taken out, too
    for written in ("", NEW, ""):
        change(whole.id, "[1]", written)
    assert "N[1]" not in texts_now(store, whole.id)
    for _ in range(3):
        undo(whole.id)
    assert texts_now(store, whole.id) == whole.texts
    # what comes back does so as the version in use has it
    change(lost.id, "", NEW)
    decide(run_id, "checks.fits.expected.N=any")
    undo(lost.id)
    assert reasons_now(store, lost.id)["N"] is None
    use(1)
    assert texts_now(store, lost.id) == lost.texts


def before_of(group: GroupShown) -> dict[str, str | None]:
    return {each.name: each.dropped_reason for each in group.lists}


def test_the_card_takes_texts_of_a_list_out_and_adds_one(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=PAIRS)
    run_id = run_curation(sqlite_store, **ASKED)["run_id"]
    group = next(
        one
        for one in groups_of(sqlite_store, run_id)
        if one.verdict == "kept" and "N" in one.texts and len(one.texts) < 3 + 3
    )
    (column,) = on_page(group, {})["columns"]
    fields = {part["field"]: part for part in column["parts"] if part["field"]}
    assert fields["instruction_negatives"]["leaves"] and not fields["instruction"].get("leaves")
    (added,) = (part for part in fields.values() if part.get("is_new"))
    assert (added["text"], added["label"]) == ("", "Add a passage N")
    assert added["field"] not in before_of(group)
    assert not any(field.startswith("backup") for field in fields)


@pytest.mark.long
def test_a_blind_reviewer_is_not_shown_which_texts_a_judge_dropped(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=PAIRS)
    run_id = run_curation(sqlite_store, **ASKED)["run_id"]
    groups = [one for one in groups_of(sqlite_store, run_id) if one.verdict == "kept"]
    assert any(reason for one in groups for reason in before_of(one).values())
    for group in groups:
        sent = json.dumps(on_page(group.without_verdict(), {}))
        assert not [reason for reason in before_of(group).values() if reason and reason in sent]
        for each in group.lists:
            is_sent = json.dumps(each.text) in sent
            is_own = each.dropped_reason in (None, STANDS_IN)  # the group's P+ is what stands in
            assert is_sent == is_own, "what was dropped is not the group's"
        parts = on_page(group.without_verdict(), {})["columns"][0]["parts"]
        assert not [
            part for part in parts if part["label"].startswith("Passage N") and not part["field"]
        ]


@pytest.mark.long
def test_answers_about_an_edit_that_the_journal_has_need_no_server(
    sqlite_store: Store, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_dataset(sqlite_store, pairs=PAIRS)
    run_id = run_curation(sqlite_store, **ASKED)["run_id"]
    group = next(one for one in groups_of(sqlite_store, run_id) if one.verdict == "kept")
    edited = {"instruction": "Only what Ann wrote."}

    def edit() -> dict[str, Any]:
        with sqlite_store.write() as session:
            edit_group(session, group.id, edited, reviewed_by="ada")
            session.commit()
        return judge_edits(run_id, sqlite_store)

    first = edit()
    with sqlite_store.write() as session:
        undo_review(session, group.id, reviewed_by="ada")
        session.commit()
    judge_edits(run_id, sqlite_store)
    monkeypatch.setenv("INF_MAX_RETRY_AFTER_SECONDS", "no number")  # no provider can be made
    assert edit() == first


@pytest.mark.long
def test_a_text_that_a_person_edited_is_not_written_when_another_version_is_used(
    sqlite_store: Store, server: Server
) -> None:
    add_dataset(sqlite_store, pairs=PAIRS)
    run_id = run_curation(sqlite_store, **ASKED)["run_id"]
    groups = [one for one in groups_of(sqlite_store, run_id) if "N" in one.texts]
    group, other = groups[:2]
    with sqlite_store.write() as session:
        edit_group(session, group.id, {"instruction_negatives": NEW}, reviewed_by="ada")
        session.execute(
            text(
                "CREATE TRIGGER edited BEFORE UPDATE ON group_text "
                f"WHEN OLD.group_id = {group.id} AND OLD.slot = 'N' AND OLD.ordinal = 0 "
                "BEGIN SELECT RAISE(ABORT, 'the text of a person was written'); END"
            )
        )
        session.commit()
    decide(run_id, "checks.fits.expected.N=yes")
    with sqlite_store.read() as session:
        assert get_group(session, group.id).texts["N"] == NEW
        assert "N[1]" not in get_group(session, group.id).texts  # its other negatives leave
        assert "N" not in get_group(session, other.id).texts


@pytest.mark.long
def test_a_review_is_of_groups_with_the_same_negatives_alone(store: Store, server: Server) -> None:
    add_dataset(store, pairs=PAIRS)
    one, other, same = (run_curation(store, **ASKED)["run_id"] for _ in range(3))
    decide(other, "checks.fits.expected.N=any", "checks.answers.expected.N=any")
    groups = {
        run: {group.name: group for group in groups_of(store, run)} for run in (one, other, same)
    }
    name = next(
        name
        for name, group in groups[one].items()
        if group.verdict == "kept" and group.texts != groups[other][name].texts
    )
    with store.write() as session:
        approve_group(session, groups[one][name].id, reviewed_by="ada")
        session.commit()
        reviewed = {
            run: current_review(session, of[name].id) is not None for run, of in groups.items()
        }
    assert reviewed == {one: True, other: False, same: True}


# ---- releases


@pytest.mark.long
def test_a_release_has_promptrievers_columns_and_is_trained_from(
    store: Store, server: Server, tmp_path: Path
) -> None:
    add_dataset(store, pairs=PAIRS)
    result = run_curation(store, **ASKED)
    kept = {one.id: one for one in groups_of(store, result["run_id"]) if one.verdict == "kept"}
    out = tmp_path / "out"
    config: dict[str, Any] = {"dataset": "small", "runs": [result["run_id"]], "format": "jsonl"}
    made = export(store, out, **config, views=["promptriever", "tevatron"])
    assert made["groups"] == made["kept"] == len(kept) == sum(made["splits"].values())
    rows = rows_of(out)["small"]
    columns = ["query_id", "only_query", "only_instruction", "has_instruction"]
    assert {*columns, "positive_passages", "negative_passages"} <= rows[0].keys()
    assert len(rows) == 2 * len(kept)
    for row in rows:
        texts = kept[row["group_id"]].texts
        negatives = [text for name, text in texts.items() if name.startswith("N")]
        positives = [each["text"] for each in row["positive_passages"]]
        others = [(each["text"], each["explanation"]) for each in row["negative_passages"]]
        assert row["only_query"] == texts["Q"]
        if row["has_instruction"]:
            assert row["only_instruction"] == texts["I"] and positives == [texts["P+"]]
            assert others == [(text, "instruction_negative") for text in negatives]
        else:
            assert row["only_instruction"] == "" and not others
            assert positives == [texts["P+"], *negatives]
    assert len({len(row["negative_passages"]) for row in rows}) >= 3
    view = rows_of(out, "promptriever")["small"]
    assert [each["query_id"] for each in view] == [row["query_id"] for row in rows]
    assert any(len(each["negative_passages"]) > 1 for each in rows_of(out, "tevatron")["small"])
    labels = Counter(each["label"] for each in rows_of(out, "triplets")["small"])
    assert labels[1] == len(kept) and labels[0] > 0
    manifest = json.loads((out / "release.json").read_text())
    assert shape_in(manifest) == SHAPE and manifest["counts"]["groups"] == len(kept)
    assert manifest["counts"]["texts"]["P"]["number"] == len(kept) + labels[0]
    described = json.loads((out / "croissant.json").read_text())
    default = next(each for each in described["recordSet"] if each["@id"].startswith("data/"))
    assert [each["name"] for each in default["field"]] == list(rows[0])
    card = (out / "README.md").read_text()
    assert "`only_instruction`" in card and "differing numbers of passages" in card
    read = read_release(out)
    assert {group.group_id for group in read.groups} >= {
        row["query_id"] for row in rows if row["positive_passages"]
    }
    graded = [group for group in read.groups if group.negatives]
    assert graded and {each.grade for group in graded for each in group.negatives} == {1}
    again = export(store, tmp_path / "again", **config, views=["promptriever", "tevatron"])
    assert again["content_sha256"] == made["content_sha256"]
    with store.read() as session:
        shown = preview_release(session, ReleasePlan.read(config | {"out": str(tmp_path / "x")}))
    assert shown.groups == len(kept) and set(shown.rows[0]) == set(rows[0])
    for more, code in (
        ({"format": "csv"}, "view_excludes_csv"),
        ({"views": ["sentence-transformers"]}, "view_excludes_lists"),
    ):
        with pytest.raises(BadInput) as refused:
            export(store, tmp_path / "no", **(config | more))
        assert refused.value.code == code


@pytest.mark.long
def test_parquet_reads_back_and_held_out_groups_share_no_passage(
    store: Store, server: Server, tmp_path: Path
) -> None:
    add_dataset(store, pairs=PAIRS)
    run_id = run_curation(store, **ASKED)["run_id"]
    out = tmp_path / "out"
    made = export(store, out, dataset="small", runs=[run_id], format="parquet", held_out=0.3)
    assert set(made["splits"]) == {"small", "small_held_out"}
    read = load_afresh(out, tmp_path)
    assert sum(len(split["rows"]) for split in read.values()) == 2 * made["groups"]
    found = [
        {each["text"] for row in read[name]["rows"] for each in row["positive_passages"]}
        for name in ("small", "small_held_out")
    ]
    assert found[0] and found[1] and not found[0] & found[1]
    sides = {group.set_aside for group in read_release(out).groups}
    assert sides == {False, True}


@pytest.mark.long
def test_both_shapes_of_a_store_are_released_trained_and_evaluated(
    sqlite_store: Store, server: Server, tmp_path: Path
) -> None:
    from trainer.evaluate.job import evaluate
    from trainer.launch.here import train

    store = sqlite_store
    add_dataset(store, pairs=PAIRS)
    own = run_curation(store, **ASKED)["run_id"]
    inf_ir = run_curation(store, **(ASKED | {"recipe": "msmarco"}))
    assert inf_ir["calls"]["reused"] == 0
    columns = {own: "only_query", inf_ir["run_id"]: "query_negative"}
    releases = {run_id: tmp_path / f"out-{run_id}" for run_id in columns}
    for run_id, out in releases.items():
        export(store, out, dataset="small", runs=[run_id], format="jsonl")
        assert columns[run_id] in rows_of(out)["small"][0]
    with pytest.raises(Refused) as refused:
        export(store, tmp_path / "both", dataset="small", runs=list(columns), format="jsonl")
    assert refused.value.code == "release_of_two_shapes"
    models = {}
    for (run_id, out), objective in zip(
        releases.items(), ("promptriever", "P,I:multi"), strict=True
    ):
        settings = TINY | {"objective": objective, "max_steps": "2", "held_out": "0.3"}
        config = {"release": str(out), "out": str(tmp_path / f"model-{run_id}")}
        trained = train(claim(store, config | {"settings": settings}))
        assert trained["steps"] == 2 and trained["loss_last"] > 0
        models[run_id] = config["out"]
    scored = {}
    for run_id, model in models.items():
        asked = {"models": [model, "bm25"], "release": str(releases[run_id])}
        found = evaluate(claim(store, asked, kind="evaluate"))
        of_model, of_bm25 = (each["metrics"] for each in found["models"])
        assert 0 < of_model["ndcg@10"] <= 1 and 0 <= of_bm25["right-first"] <= 1
        assert of_model.keys() == of_bm25.keys()
        scored[run_id] = of_model.keys()
    assert "instruction-flip" in scored[inf_ir["run_id"]] and "instruction-flip" not in scored[own]
