"""Claims: what a shape says of every passage, and rows with negatives of their own, ragged."""

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import SentenceTransformer
from shaped_recipes import SHAPES

from db.errors import BadInput
from db.shape import INF_IR, Shape
from trainer.data.batches import Collator, build_batch
from trainer.data.claims import PROMPTRIEVER, given_negatives, right_texts
from trainer.data.groups import Group, Negative, group_key, group_of
from trainer.data.release_files import read_release
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


def graded(shape: Shape) -> dict[tuple[str, str, str], int]:
    return {
        (
            claim.instruction.sign if claim.instruction else "",
            claim.query.sign,
            claim.passage.sign,
        ): (claim.grade)
        for claim in shape.claims
    }


def test_inf_irs_claims_are_its_scenarios_and_what_they_imply() -> None:
    found = graded(INF_IR)
    assert len(found) == len(INF_IR.claims) == 15
    assert {key for key, grade in found.items() if grade == 2} == {
        ("I+", "Q+", "P+"),
        ("I-", "Q+", "P1-"),
        ("I+", "Q-", "P2-"),
        ("", "Q+", "P+"),
        ("", "Q+", "P1-"),
        ("", "Q-", "P2-"),
    }
    assert {key for key, grade in found.items() if grade == 1} == {
        ("I+", "Q+", "P1-"),
        ("I-", "Q+", "P+"),
    }


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("is_plain", [False, True])
def test_the_negatives_of_p_are_what_the_claims_do_not_grade_2(name: str, is_plain: bool) -> None:
    """P is defined by claims: of a group alone, each anchor's negatives are the passages that
    have another grade under its instruction and query."""
    shape = SHAPES[name]
    group = group_of({text.column: text.sign for text in shape.all_texts}, shape=shape)
    group = group.without_instructions() if is_plain else group
    batch = build_batch([group], Template(), OBJECTIVES["P"])
    queries, passages = torch.eye(len(batch.queries)), torch.eye(len(batch.passages))
    width = max(len(batch.queries), len(batch.passages))
    queries, passages = (
        torch.nn.functional.pad(each, (0, width - each.shape[1])) for each in (queries, passages)
    )
    tables = {
        "matched_of": torch.tensor(batch.matched_of),
        "passage_of": torch.tensor(batch.passage_of),
    }
    _, (negatives,) = scores_of_terms(OBJECTIVES["P"], queries, passages, tables)
    claims = graded(shape)
    for place, scenario in enumerate(shape.all_scenarios):
        instruction = "" if is_plain else scenario.instruction.sign
        for other, of in enumerate(shape.all_scenarios):
            is_negative = bool(negatives[place, other] > -torch.inf)
            grade = claims[instruction, scenario.query.sign, of.passage.sign]
            assert is_negative == (grade != 2), (scenario.role, of.role)


ROWS: list[dict[str, Any]] = [
    {
        "query_id": "1",
        "only_query": "who wrote it",
        "only_instruction": "Name the author only.",
        "has_instruction": True,
        "positive_passages": [{"docid": "a", "title": "", "text": "Ada wrote it."}],
        "negative_passages": [
            {"text": "Ada wrote it in 1900.", "explanation": "instruction_negative"},
            {"text": "It is a book.", "explanation": ""},
            {"text": "Printers print.", "explanation": ""},
        ],
    },
    {
        "query_id": "1",
        "only_query": "who wrote it",
        "only_instruction": "",
        "has_instruction": False,
        "positive_passages": [{"text": "Ada wrote it."}, {"text": "Its author is Ada."}],
        "negative_passages": [{"text": "It is a book.", "explanation": ""}],
    },
    {
        "query_id": "2",
        "only_query": "where is the sea",
        "only_instruction": "In one word.",
        "has_instruction": True,
        "positive_passages": [{"text": "South."}],
        "negative_passages": [],
    },
]


def folder_of(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.mkdir(parents=True)
    (path / "train-00000-of-00001.jsonl").write_text("\n".join(map(json.dumps, rows)) + "\n")
    return path


def test_promptrievers_columns_are_rows_with_as_many_negatives_as_there_are(tmp_path: Path) -> None:
    found = read_release(folder_of(tmp_path / "x", ROWS))
    assert found.shape == PROMPTRIEVER
    assert [(group.triplets(), len(group.negatives)) for group in found.groups] == [
        ((("Name the author only.", "who wrote it", "Ada wrote it."),), 3),
        ((("", "who wrote it", "Ada wrote it."),), 1),
        ((("", "who wrote it", "Its author is Ada."),), 1),
        ((("In one word.", "where is the sea", "South."),), 0),
    ]
    assert found.groups[0].negatives[0] == Negative(1, "Ada wrote it in 1900.")
    assert {negative.grade for negative in found.groups[0].negatives[1:]} == {0}
    assert found.groups[1].group_id != found.groups[2].group_id
    others = [{**ROWS[0], "negative_passages": []}, *ROWS[1:]]
    other = read_release(folder_of(tmp_path / "y", others))
    assert other.content_sha256 != found.content_sha256, "another release by its negatives alone"


@pytest.mark.parametrize("column", ["only_query", "positive_passages"])
def test_a_row_without_query_or_positive_is_refused_with_its_place(
    column: str, tmp_path: Path
) -> None:
    rows = [ROWS[0], {**ROWS[1], column: []}]
    with pytest.raises(BadInput, match=f"row 2: no usable `{column}`") as refused:
        read_release(folder_of(tmp_path / "x", rows))
    assert refused.value.code == "promptriever_row_incomplete"


def test_rows_negatives_contrast_all_anchors_but_those_they_serve(
    model: SentenceTransformer, tmp_path: Path
) -> None:
    groups = read_release(folder_of(tmp_path / "x", ROWS)).groups
    settings = parse_settings({"objective": "P"})
    collator = make_collator(model, groups, settings)
    columns = collator([group.row() for group in groups])
    tables = columns["label"]
    batch = build_batch(
        groups,
        Template(),
        OBJECTIVES["P"],
        mined=[
            text for each in groups for text in given_negatives(groups).get(group_key(each), ())
        ],
    )
    scores = torch.arange(float(len(batch.queries) * len(batch.passages)))
    width = max(len(batch.queries), len(batch.passages))
    queries = torch.nn.functional.pad(
        torch.eye(len(batch.queries)), (0, width - len(batch.queries))
    )
    passages = torch.nn.functional.pad(
        torch.eye(len(batch.passages)), (0, width - len(batch.passages))
    )
    assert scores.numel()
    _, (negatives,) = scores_of_terms(OBJECTIVES["P"], queries, passages, tables)
    others = [*batch.passage_of, *batch.mined_of]
    served = {
        ("Name the author only.", "who wrote it"): {"Ada wrote it."},
        ("", "who wrote it"): {"Ada wrote it.", "Its author is Ada.", "Ada wrote it in 1900."},
        ("In one word.", "where is the sea"): {"South."},
    }
    for (anchor, group), (column, place) in product(enumerate(groups), enumerate(others)):
        instruction, query, _ = group.triplets()[0]
        is_negative = bool(negatives[anchor, column] > -torch.inf)
        assert is_negative == (batch.passages[place] not in served[instruction, query])
    assert len(others) == 4 + 3, "four positives and three different negatives"


def test_rows_without_negatives_of_their_own_are_batched_as_before(
    model: SentenceTransformer,
) -> None:
    rows = [
        group_of({text.column: f"{text.sign} {number}" for text in INF_IR.all_texts}, shape=INF_IR)
        for number in range(3)
    ]
    settings = parse_settings({"objective": "P,I,IQ:multi"})
    tables = make_collator(model, rows, settings)([row.row() for row in rows])["label"]
    plain = Collator(model, settings.parsed_template, settings.parsed_objective, shape=INF_IR)
    expected = plain([row.row() for row in rows])["label"]
    assert tables.keys() == expected.keys() and "right_of" not in tables


def test_what_violates_an_instruction_answers_the_query_alone() -> None:
    group = Group(
        "1",
        ("query", "told", "right"),
        negatives=(Negative(1, "violates"), Negative(0, "off")),
        shape=PROMPTRIEVER,
    )
    assert right_texts([group], Template()) == {
        "told query": {"right"},
        Template().apply("", "query"): {"right", "violates"},
    }


def test_a_training_that_cannot_contrast_them_is_refused_before_it_loads(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path / "x", [{**row, "only_query": f"q {n}"} for n, row in enumerate(ROWS)]
    )
    for given, code in (
        ({"objective": "P,I:multi"}, "objective_without_contrast"),
        ({"objective": "P", "trained_side": "query"}, "negatives_need_trained_passages"),
        ({"objective": "mnrl"}, "negatives_need_term"),
    ):
        with pytest.raises(BadInput) as refused:
            groups_of(folder, parse_settings(given))
        assert refused.value.code == code
