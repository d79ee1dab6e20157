"""A shape with lists of negatives and two instructions: its claims, from recipe to evaluation.

Groups by hand first: `two` with two lists, one that violates the first instruction and one that
does not answer under the second. Then a recipe of that shape, run offline, released, trained from
and evaluated.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from curation_runs import run_curation
from exporting import export
from listed_release import COUNTS, SHAPE, released
from sentence_transformers import SentenceTransformer
from trainer_jobs import TINY, claim

from curation.recipe.recipe import FOLDER, load_recipe
from db.errors import BadInput
from db.store.store import Store
from trainer.data import release_files
from trainer.data.batches import build_batch
from trainer.data.claims import given_negatives
from trainer.data.groups import Group, Negative, group_key
from trainer.data.release_files import read_release
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.evaluate.following import (
    INSTRUCTION_FLIP,
    STRICT,
    bm25_following,
    comply_by_group,
    follow_by_group,
    following_of,
)
from trainer.launch.plan import groups_of
from trainer.loop.embedding_loss import scores_of_terms
from trainer.loop.packing_check import make_collator
from trainer.model.backbone import load_backbone
from trainer.objectives.names import OBJECTIVES
from trainer.settings.settings import parse_settings
from trainer.settings.template import Template


@pytest.fixture(scope="module")
def model() -> SentenceTransformer:
    return load_backbone(parse_settings({}))


def test_a_release_of_two_instructions_and_lists_is_read_as_groups_of_its_shape(
    tmp_path: Path,
) -> None:
    found = read_release(released(tmp_path / "x", held_out=True))
    assert found.shape == SHAPE and found.shape.other_instruction == 1
    assert [group.group_id for group in found.groups] == [str(number) for number in range(6)]
    first = found.groups[0]
    assert first.triplets() == (
        ("I of 0", "Q of 0", "P of 0"),
        ("D of 0", "Q of 0", "N1 of 0"),
    )
    assert [(one.grade, one.scenario) for one in first.negatives] == [(1, 0)] * 3 + [(0, 1)] * 2
    assert [len(group.negatives) for group in found.groups] == [sum(of) for of in COUNTS]
    assert [group.set_aside for group in found.groups] == [False] * 4 + [True] * 2
    assert found.licences == ["cc0-1.0"]


def test_a_release_without_a_manifest_is_another_where_a_negative_is_of_another_scenario() -> None:
    def hash_of(**changed: int) -> str:
        texts = tuple(f"{sign} of 0" for sign in SHAPE.columns)
        negatives = Negative(0, "N of 0", **changed), Negative(1, "M of 0")
        return release_files._sha256([Group("0", texts, negatives=negatives, shape=SHAPE)])

    assert hash_of() == hash_of(scenario=0) != hash_of(scenario=1)


@pytest.mark.parametrize("broken", ["query_id", "docid", "group_id"])
def test_a_row_that_is_of_no_group_is_refused_with_its_place(tmp_path: Path, broken: str) -> None:
    folder = released(tmp_path / "x")
    file = next((folder / "data").iterdir())
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    changed = rows[1]["positive_passages"][0] if broken == "docid" else rows[1]
    changed[broken] = "unknown"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    with pytest.raises(BadInput, match=r"row [12]") as refused:
        read_release(folder)
    assert refused.value.code == "row_invalid"


def expected_negatives(group: Group, place: int) -> set[str]:
    """Of a group alone by its shape's claims: what has another grade than 2 in this scenario; of a
    passage without a claim there, what does not answer the query alone."""
    scenario = group.shape.all_scenarios[place]
    texts = {one.column: one.sign for one in group.shape.all_texts}
    named = {text: texts[column] for column, text in group.row().items()}
    named |= {one.text: one.text.split("[")[0].split(" ")[0] for one in group.negatives}
    graded = {
        (claim.instruction.sign if claim.instruction else "", claim.passage.sign): claim.grade
        for claim in group.shape.claims
        if claim.query == scenario.query
    }
    found = set()
    for text, sign in named.items():
        if ("", sign) not in graded:
            continue  # an instruction or a query
        grade = graded.get((scenario.instruction.sign, sign))
        if grade in (0, 1) or (grade is None and graded["", sign] == 0):
            found.add(text)
    return found


@pytest.mark.parametrize("number", range(len(COUNTS)))
def test_p_contrasts_what_the_claims_grade_lower_and_nothing_that_they_leave_open(
    model: SentenceTransformer, tmp_path: Path, number: int
) -> None:
    group = read_release(released(tmp_path / "x")).groups[number]
    settings = parse_settings({"objective": "P"})
    tables = make_collator(model, [group], settings)([group.row()])["label"]
    listed = given_negatives([group]).get(group_key(group), [])
    batch = build_batch([group], Template(), OBJECTIVES["P"], mined=listed)
    width = max(len(batch.queries), len(batch.passages))
    queries, passages = (
        torch.nn.functional.pad(torch.eye(count), (0, width - count))
        for count in (len(batch.queries), len(batch.passages))
    )
    _, (negatives,) = scores_of_terms(OBJECTIVES["P"], queries, passages, tables)
    others = [batch.passages[place] for place in (*batch.passage_of, *batch.mined_of)]
    for place in range(2):
        contrasted = {
            text for text, value in zip(others, negatives[place], strict=True) if value > -torch.inf
        }
        assert contrasted == expected_negatives(group, place)
    if number == 0:
        assert {"N of 0", "N[1] of 0", "M of 0"} <= expected_negatives(group, 0)
        assert expected_negatives(group, 1) == {"P of 0", "M of 0", "M[1] of 0"}


@pytest.mark.parametrize("objective", ["I", "IQ", "P,I:multi", "P,I,IQ:uni", "promptriever"])
def test_instructions_have_their_contrast_beside_lists(
    model: SentenceTransformer, tmp_path: Path, objective: str
) -> None:
    settings = parse_settings({"objective": objective, "held_out": "0"})
    found = groups_of(released(tmp_path / "x"), settings)
    rows = found.training
    tables = make_collator(model, rows, settings)([group.row() for group in rows])["label"]
    batch = build_batch(rows, Template(), settings.parsed_objective)
    anchors = range(0, 2 * len(rows), 2 if objective == "promptriever" else 1)
    assert len(tables["passage_of"]) == 2 * len(rows) and len(anchors) in (6, 12)
    width = max(len(batch.queries), len(batch.passages) + 16)
    vectors = [torch.eye(width), torch.eye(width)]
    of_terms = settings.parsed_objective.for_shape(SHAPE)
    _, negatives = scores_of_terms(of_terms, *vectors, tables)
    for term, scores in zip(of_terms.terms, negatives, strict=True):
        assert (scores > -torch.inf).any(dim=1).all(), term
    if "I" in of_terms.terms:
        for anchor, group in enumerate(rows):
            (own, query, _), (other, _, _) = group.triplets()
            crossed = {batch.queries[place] for place in batch.crossed_of[2 * anchor]}
            assert f"{other} {query}" in crossed and f"{own} {query}" not in crossed


def test_a_baseline_that_reads_no_lists_is_refused(tmp_path: Path) -> None:
    for given, code in (
        ({"objective": "mnrl"}, "negatives_need_term"),
        ({"objective": "P", "trained_side": "query"}, "negatives_need_trained_passages"),
    ):
        with pytest.raises(BadInput) as refused:
            groups_of(released(tmp_path / code), parse_settings(given))
        assert refused.value.code == code


def test_held_out_measures_follow_the_claims(tmp_path: Path) -> None:
    groups = read_release(released(tmp_path / "x")).groups
    benchmark = held_out_benchmark("x", groups)
    name_of = {text: name for name, text in benchmark.corpus.items()}

    def scored(best: dict[str, str]) -> dict[str, dict[str, float]]:
        """The measures of a model that ranks each question's own passage, below this one."""

        def score(texts: Any, wanted: Any) -> list[list[float]]:
            right = {f"{i} {q}": passage for group in groups for i, q, passage in group.triplets()}
            return [
                [
                    2.0
                    if benchmark.corpus[name] == best.get(text)
                    else float(benchmark.corpus[name] == right[text])
                    for name in of
                ]
                for text, of in zip(texts, wanted, strict=True)
            ]

        return follow_by_group(benchmark, Template(), score)

    everything = {STRICT: 1.0, INSTRUCTION_FLIP: 1.0}
    assert scored({})["g000000"] == everything
    violating = scored({"I of 0 Q of 0": "N[2] of 0"})["g000000"]
    assert violating == {STRICT: 0.0, INSTRUCTION_FLIP: 1.0}, "it violates the instruction"
    # under the other instruction no claim says whether N satisfies it; M does not answer at all
    assert scored({"D of 0 Q of 0": "N of 0"})["g000000"] == everything
    assert scored({"D of 0 Q of 0": "M of 0"})["g000000"][STRICT] == 0.0
    assert scored({"I of 0 Q of 0": "M of 0"})["g000000"][STRICT] == 0.0
    places = benchmark.groups["g000000"]
    answering = {benchmark.corpus[name] for name in places.answering}
    assert answering == {"P of 0", "N1 of 0", "N of 0", "N[1] of 0", "N[2] of 0"}
    assert benchmark.excluded["g000000-defying"] == [
        name_of[f"{name} of 0"] for name in ("N", "N[1]", "N[2]")
    ]
    assert "g000000-plain" not in benchmark.excluded and "g000004-defying" not in benchmark.excluded

    def rank(texts: Any, depth: int) -> list[dict[str, float]]:
        """For each text the passages of its group, N first."""
        found = []
        for text in texts:
            number = text.rsplit(" ", 1)[1]
            own = [one for one in benchmark.corpus.values() if one.endswith(f" of {number}")]
            first = {"D": "N1", "I": "P"}.get(text[0], "N")
            scores = {f"{first} of {number}": 1.5} | (
                {f"N of {number}": 2.0} if text[0] == "D" else {}
            )
            found.append({name_of[one]: scores.get(one, 1.0) for one in own})
        return found

    def score(texts: Any, wanted: Any) -> list[list[float]]:
        return [[1.0] * len(of) for of in wanted]

    found = following_of(benchmark, Template(), score, rank=rank)[""]
    assert found["g000000"]["right-first"] == 1.0, "what no claim grades takes no part"
    assert found["g000000"]["plain-ndcg@10"] > found["g000004"]["plain-ndcg@10"] - 1
    assert comply_by_group(benchmark, Template(), score).keys() == benchmark.groups.keys()
    assert bm25_following(benchmark, Template())[STRICT] is not None


RECIPE = (FOLDER / "promptriever.toml").read_text()
CHANGED = (
    (
        "\n[vary]",
        '"J" = { field = "instruction", column = "other_instruction" }\n'
        '"R" = { field = "passage", column = "other_passage" }\n'
        '"M" = { field = "passage", column = "off_topic", count = 1 }\n\n[vary]',
    ),
    (
        "[checks.fits]",
        '[steps.oppose]\ngives = ["J", "R"]\ninputs = ["Q", "P+", "I"]\nmodel = "gpt-4o-mini"\n'
        'prompt = "other.md"\noutput = "json"\n\n[steps.stray]\ngives = ["M"]\n'
        'inputs = ["Q", "J"]\nmodel = "gpt-4o-mini"\nprompt = "stray.md"\noutput = "json"\n\n'
        "[checks.fits]",
    ),
    (
        '"(I, Q)" = { 2 = "P+", 1 = "N" }\n',
        '"(I, Q)" = { 2 = "P+", 1 = "N" }\n"(J, Q)" = { 2 = "R", 0 = "M" }\n',
    ),
)
PROMPT = "You write texts.\n---\nQuery: {{query}}\n\n{}\n"


def written_recipe(folder: Path) -> str:
    text = RECIPE
    for old, new in CHANGED:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    (folder / "own.toml").write_text(text)
    (folder / "other.md").write_text(PROMPT.format("Instruction: {instruction}"))
    (folder / "stray.md").write_text(PROMPT.format("Instruction: {other_instruction}"))
    return str(folder / "own.toml")


@pytest.mark.long
def test_a_recipe_of_it_is_grown_offline_released_trained_from_and_evaluated(
    sqlite_store: Store, tmp_path: Path
) -> None:
    from curation.importing.importing import import_dataset
    from curation.recorded.recording import SHIPPED
    from trainer.evaluate.job import evaluate
    from trainer.launch.here import train

    demo = SHIPPED.parent
    files = {"pairs": demo / "pairs.jsonl", "passages": demo / "passages.jsonl"}
    import_dataset(sqlite_store, name="demo", **files)
    recipe = written_recipe(tmp_path)
    shape = load_recipe(recipe).shape
    assert [text.sign for text in shape.lists] == ["B", "N", "M"] and shape.other_instruction == 1
    run = run_curation(sqlite_store, dataset="demo", provider="offline", recipe=recipe, limit=60)
    assert run["status"] == "done" and run["kept"] >= 8, run["dropped"]
    out = tmp_path / "out"
    export(sqlite_store, out, dataset="demo", runs=[run["run_id"]], format="parquet", held_out=0.4)
    read = read_release(out)
    assert read.shape == shape and len(read.groups) == run["kept"]
    assert len({sum(one.grade == 1 for one in group.negatives) for group in read.groups}) > 1
    assert {one.scenario for group in read.groups for one in group.negatives} == {0, 1}
    settings = TINY | {"objective": "P,I,IQ:multi", "max_steps": "2"}
    config = {"release": str(out), "out": str(tmp_path / "model"), "settings": settings}
    trained = train(claim(sqlite_store, config))
    assert trained["steps"] == 2 and trained["loss_last"] > 0
    assert {STRICT, INSTRUCTION_FLIP, "p-mrr", "sicr"} <= trained["held_out"]["after"].keys()
    asked = {"models": [config["out"], "bm25"], "release": str(out)}
    found = evaluate(claim(sqlite_store, asked, kind="evaluate"))
    for each in found["models"]:
        assert np.isfinite(each["metrics"][STRICT]) and each["metrics"]["p-mrr"] is not None


def test_a_groups_negative_of_another_scenario_keeps_its_place() -> None:
    group = Group(
        "1",
        ("q", "i", "p", "d", "n1"),
        negatives=(Negative(1, "v", 0), Negative(1, "w", 1), Negative(0, "o", 1)),
        shape=SHAPE,
    )
    assert [(place, one.text) for place, one in group.open_claims()] == [(1, "v"), (0, "w")]
