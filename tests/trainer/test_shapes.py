"""Trainings and held-out measures by the shape of a release's groups."""

import json
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from shaped_recipes import SHAPES

from db.errors import BadInput
from db.shape import INF_IR, Shape
from trainer.data.batches import Collator, build_batch
from trainer.data.groups import Group, group_of
from trainer.data.release_files import read_release
from trainer.evaluate.benchmarks import held_out_benchmark
from trainer.evaluate.following import INSTRUCTION_FLIP, QUERY_FLIP, STRICT, follows
from trainer.evaluate.scoring import score_bm25
from trainer.launch.plan import groups_of
from trainer.loop.embedding_loss import EmbeddingLoss, own_group_scores
from trainer.model.backbone import load_backbone
from trainer.objectives.names import ALL_OBJECTIVES, OBJECTIVES
from trainer.report.held_out_scores import choose_probes
from trainer.settings.settings import parse_settings
from trainer.settings.template import Template


@pytest.fixture(scope="module")
def model() -> SentenceTransformer:
    return load_backbone(parse_settings({}))


def groups(shape: Shape, count: int = 6) -> list[Group]:
    """Groups of the shape whose texts are their sign and number."""
    return [
        group_of(
            {text.column: f"{text.sign} of {number}" for text in shape.all_texts},
            group_id=str(number),
            shape=shape,
        )
        for number in range(count)
    ]


def release(folder: Path, shape: Shape, count: int = 6) -> Path:
    """A release's folder with so many groups."""
    (folder / "data").mkdir(parents=True)
    (folder / "release.json").write_text(json.dumps(shape.entry))
    rows = (json.dumps(each.row() | {"group_id": each.group_id}) for each in groups(shape, count))
    (folder / "data" / "x-00000-of-00001.jsonl").write_text("\n".join(rows) + "\n")
    return folder


@pytest.mark.parametrize("name", SHAPES)
def test_a_batch_has_every_scenario_of_the_shape(name: str) -> None:
    shape = SHAPES[name]
    rows = groups(shape, 3)
    batch = build_batch(rows, Template(), OBJECTIVES["P"])
    count = len(shape.roles)
    assert len(batch.matched_of) == len(batch.passage_of) == 3 * count
    assert len(batch.passages) == 3 * sum(text.field == "passage" for text in shape.all_texts)
    for group, at in zip(rows, range(0, 3 * count, count), strict=True):
        for place, (instruction, query, passage) in enumerate(group.triplets(), start=at):
            assert batch.queries[batch.matched_of[place]] == f"{instruction} {query}"
            assert batch.passages[batch.passage_of[place]] == passage
    assert len(set(rows[0].split_keys())) == sum(
        text.field != "instruction" for text in shape.all_texts
    )


@pytest.mark.parametrize("name", ["two", "five"])
def test_the_contrasting_instruction_is_always_sampled(name: str) -> None:
    rows = groups(SHAPES[name], 2)
    batch = build_batch(rows, Template(), OBJECTIVES["I"], 1)
    (first, query, _), (other, _, _) = rows[0].triplets()[:2]
    crossed = [[batch.queries[place] for place in of] for of in batch.crossed_of]
    assert crossed[0] == [f"{other} {query}"] and crossed[1] == [f"{first} {query}"]


@pytest.mark.parametrize("objective", [name for name in ALL_OBJECTIVES if name != "mnrl"])
@pytest.mark.parametrize("name", ["two", "five"])
def test_every_objective_gives_a_gradient(
    model: SentenceTransformer, name: str, objective: str
) -> None:
    shape = SHAPES[name]
    settings = parse_settings({"objective": objective})
    rows = [group.row() for group in groups(shape, 4)]
    collator = Collator(model, Template(), settings.parsed_objective, shape=shape)
    columns = collator(rows)
    tables = columns.pop("label")
    loss = EmbeddingLoss(model, settings.parsed_objective, temperature=0.05, shape=shape)
    anchors = tables["matched_of"][:: loss.objective.anchor_every]
    assert len(anchors) == (4 if objective == "promptriever" else 4 * len(shape.roles))
    vectors = [torch.randn(512, 8, requires_grad=True) for _ in range(2)]
    value = loss._objective(vectors, tables, {})
    value.backward()
    assert torch.isfinite(value) and all(each.grad is not None for each in vectors)
    scores, own, _ = own_group_scores([each.detach() for each in vectors], tables, len(shape.roles))
    assert scores.shape[1] == len(shape.roles) and own.max() < len(shape.roles)


def test_objectives_that_contrast_instructions_need_a_second_one(tmp_path: Path) -> None:
    folder = release(tmp_path, SHAPES["one"])
    for objective in ("I", "IQ", "P,I:multi", "P,IQ:uni"):
        with pytest.raises(BadInput) as refused:
            groups_of(folder, parse_settings({"objective": objective}))
        assert refused.value.code == "objective_without_contrast"
    found = groups_of(folder, parse_settings({"objective": "P", "held_out": "0.3"}))
    assert found.release.shape == SHAPES["one"] and found.training and found.held_out


def test_a_further_release_of_another_shape_is_refused(tmp_path: Path) -> None:
    main, other = release(tmp_path / "a", SHAPES["four"]), release(tmp_path / "b", SHAPES["two"])
    settings = parse_settings({"more_releases": f"{other}"})
    with pytest.raises(BadInput) as refused:
        groups_of(main, settings, [other])
    assert refused.value.code == "more_releases_of_two_shapes"


def test_a_release_lacking_a_text_of_its_shape_is_refused(tmp_path: Path) -> None:
    folder = release(tmp_path, SHAPES["five"])
    (folder / "release.json").write_text("{}")
    assert read_release(folder).shape == INF_IR  # its seven columns are there
    (folder / "release.json").write_text(json.dumps(SHAPES["two"].entry))
    with pytest.raises(BadInput, match="5 text columns") as refused:
        read_release(folder)
    assert refused.value.code == "group_column_missing"


@pytest.mark.parametrize(
    ("name", "measures"),
    [
        ("one", set()),
        ("two", {STRICT, INSTRUCTION_FLIP}),
        ("reordered", {STRICT, INSTRUCTION_FLIP, QUERY_FLIP}),
        ("five", {STRICT, INSTRUCTION_FLIP, QUERY_FLIP}),
    ],
)
def test_held_out_measures_are_those_the_shape_has(name: str, measures: set[str]) -> None:
    shape = SHAPES[name]
    assert set(follows(np.eye(len(shape.roles)), shape)) == measures
    assert all(value == 1.0 for value in follows(np.eye(len(shape.roles)), shape).values())
    benchmark = held_out_benchmark("x", groups(shape))
    found = score_bm25(Template(), benchmark)
    assert {each for each in found.metrics if each in (STRICT, INSTRUCTION_FLIP, QUERY_FLIP)} == (
        measures
    )
    has_contrast = INSTRUCTION_FLIP in measures
    assert (found.metrics["p-mrr"] is not None) == has_contrast
    assert bool(choose_probes(benchmark)) == has_contrast
    assert ("sicr" in found.metrics) == has_contrast


def test_flips_are_of_the_scenarios_that_alter_one_text() -> None:
    """In `reordered` the second scenario alters the query, the third the instruction."""
    shape = SHAPES["reordered"]
    assert (shape.other_query, shape.other_instruction) == (1, 2)
    scores = np.array([[1.0, 0.0, 2.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
    assert follows(scores, shape) == {STRICT: 0.0, INSTRUCTION_FLIP: 0.0, QUERY_FLIP: 1.0}
