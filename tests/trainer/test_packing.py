"""Packed rows give the embeddings and gradients of flat ones; a wrong mask or positions do not."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from trainer_release import make_rows

from db.shape import INF_IR
from trainer.data.batches import PASSAGES, QUERIES, Collator
from trainer.data.groups import group_of
from trainer.loop.embedding_loss import EmbeddingLoss
from trainer.loop.packing_check import MAX_DIFFERENCE, make_collator, packing_difference
from trainer.model import packing, tree_attention
from trainer.model.backbone import load_backbone
from trainer.model.packing import (
    as_features,
    can_pack,
    enable_packing,
    last_of_segments,
    pack_rows,
    tree_mask,
)
from trainer.objectives.names import OBJECTIVES
from trainer.settings.settings import parse_settings
from trainer.settings.template import Template

WAYS = ["eager", "by mask", "by parts"]


@pytest.fixture
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """eager, or sdpa whose packed rows are all computed by their parts, or none of them is."""
    least = {"by mask": float("inf"), "by parts": 0.0}.get(request.param)
    if least is not None:
        monkeypatch.setattr(tree_attention, "MIN_SAVED", least)
    return str(request.param)


def build(architecture: str, way: str = "sdpa", **settings: str) -> Any:
    attention = "eager" if way == "eager" else "sdpa"
    model = load_backbone(parse_settings({"base_model": f"tiny-random-{architecture}", **settings}))
    model[0].model.set_attn_implementation(attention)
    enable_packing(model)
    return model


def collators(model: Any, sampled: int = 0) -> tuple[Collator, Collator]:
    objective = OBJECTIVES["P,I:multi"]
    return (
        Collator(model, Template(), objective, sampled, shape=INF_IR),
        Collator(model, Template(), objective, sampled, packing=True, shape=INF_IR),
    )


def loss_and_gradients(
    model: Any, batch: dict[str, Any], *, texts_at_once: int = 0
) -> tuple[float, dict[str, torch.Tensor]]:
    loss = EmbeddingLoss(
        model, OBJECTIVES["P,I:multi"], temperature=0.05, texts_at_once=texts_at_once, shape=INF_IR
    )
    columns = [
        {
            key.removeprefix(f"{name}_"): value
            for key, value in batch.items()
            if key.startswith(f"{name}_")
        }
        for name in (QUERIES, PASSAGES)
    ]
    model.zero_grad()
    value = loss(columns, batch["label"])
    value.backward()
    return float(value.detach()), {
        name: parameter.grad.clone()
        for name, parameter in model.named_parameters()
        if parameter.grad is not None
    }


def ragged_rows(count: int) -> list[dict[str, Any]]:
    rows = make_rows(count)
    for number, row in enumerate(rows):
        row["instruction_positive"] += " Take care." * (number % 3)
        row["query_negative"] += ", then" * number
    return rows


def test_rows_share_the_longest_common_prefix() -> None:
    texts = [[1, 2, 3, 4], [1, 2, 3, 5, 6], [9, 9], [1, 2, 7]]
    packed = pack_rows(texts, [0, 0, 1, 0])
    assert packed.input_ids == [[1, 2, 3, 4, 3, 5, 6, 7], [9, 9]]
    assert packed.segment_ids == [[0, 0, 1, 1, 2, 2, 2, 3], [0, 1]]
    assert packed.position_ids == [[0, 1, 2, 3, 2, 3, 4, 2], [0, 1]]
    assert packed.order == [0, 1, 3, 2]


def test_a_row_ends_where_it_would_be_too_long() -> None:
    packed = pack_rows([[1, 2, 3], [1, 2, 4], [1, 2, 5], [1, 2, 6]], [0] * 4, longest_row=4)
    assert packed.input_ids == [[1, 2, 3, 4], [1, 2, 5, 6]]
    assert packed.segment_ids == [[0, 0, 1, 2]] * 2


def test_one_text_and_texts_without_a_common_prefix() -> None:
    assert pack_rows([[5]], [0]).segment_ids == [[1]]
    assert pack_rows([[1, 2], [3, 4]], [0, 0]).segment_ids == [[1, 1, 2, 2]]


def test_who_sees_whom_by_hand() -> None:
    segments = as_features(pack_rows([[1, 2, 3], [1, 2, 4, 5]], [0, 0]), 0)["segment_ids"]
    seen = tree_mask(segments, torch.float32)[0, 0] == 0
    # rows: tokens 1 2 | 3 | 4 5; the 4 sees 1 2 and itself, never the 3
    assert seen.int().tolist() == [
        [1, 0, 0, 0, 0],
        [1, 1, 0, 0, 0],
        [1, 1, 1, 0, 0],
        [1, 1, 0, 1, 0],
        [1, 1, 0, 1, 1],
    ]
    assert last_of_segments(segments).int().tolist() == [[0, 0, 1, 0, 1]]


@pytest.mark.parametrize("architecture", ["qwen2", "llama"])
@pytest.mark.parametrize("way", WAYS, indirect=True)
@pytest.mark.parametrize("checkpointing", [False, True])
@pytest.mark.parametrize("rows", [make_rows(3), ragged_rows(4)], ids=["fixed", "ragged"])
def test_packed_equals_flat(
    architecture: str, way: str, checkpointing: bool, rows: list[dict[str, Any]]
) -> None:
    model = build(architecture, way)
    if checkpointing:
        model[0].model.activation_checkpointing_enable({"use_reentrant": False})
    model.train()
    flat, packed = (collator(rows) for collator in collators(model))
    assert packing_difference(model, flat, packed) < 1e-5
    flat_loss, flat_gradients = loss_and_gradients(model, flat)
    packed_loss, packed_gradients = loss_and_gradients(model, packed)
    assert packed_loss == pytest.approx(flat_loss, abs=1e-5)
    for name, gradient in flat_gradients.items():
        assert torch.allclose(gradient, packed_gradients[name], atol=2e-5), name


def test_a_sample_of_instructions_packs_too() -> None:
    model = build("qwen2")
    flat, packed = (collator(ragged_rows(4)) for collator in collators(model, 2))
    assert packing_difference(model, flat, packed) < 1e-5


def plain_causal(segments: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    allowed = torch.ones(segments.shape[1], segments.shape[1], dtype=torch.bool).tril()
    mask = torch.zeros(len(segments), *allowed.shape, dtype=dtype)
    return mask.masked_fill(~allowed, torch.finfo(dtype).min)[:, None]


def shifted(*arguments: Any) -> tree_attention.TreeLayout:
    """A layout that reads every segment in the place of the next one."""
    layout = tree_attention.tree_layout(*arguments)
    return replace(layout, segments=layout.segments.roll(1, 1))


def break_packing(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    """Give attention a wrong layout where it computes by parts, else a wrong mask."""
    if way == "by parts":
        monkeypatch.setattr(packing, "tree_layout", shifted)
    else:
        monkeypatch.setattr(packing, "tree_mask", plain_causal)


@pytest.mark.parametrize("way", WAYS, indirect=True)
def test_a_wrong_mask_or_layout_is_detected(monkeypatch: pytest.MonkeyPatch, way: str) -> None:
    model = build("llama", way)
    flat, packed = (collator(ragged_rows(3)) for collator in collators(model))
    assert packing_difference(model, flat, packed) < 1e-5
    break_packing(monkeypatch, way)
    assert packing_difference(model, flat, packed) > MAX_DIFFERENCE


@pytest.mark.parametrize("way", ["by mask", "by parts"], indirect=True)
@pytest.mark.parametrize("autocast", [False, True], ids=["bf16 weights", "autocast"])
def test_packed_equals_flat_in_bf16(way: str, autocast: bool) -> None:
    model = build("qwen2", way)
    if not autocast:
        model.to(torch.bfloat16)
    flat, packed = (collator(ragged_rows(4)) for collator in collators(model))
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        assert packing_difference(model, flat, packed) < 100 * MAX_DIFFERENCE
        flat_loss, flat_gradients = loss_and_gradients(model, flat)
        packed_loss, packed_gradients = loss_and_gradients(model, packed)
    assert packed_loss == pytest.approx(flat_loss, rel=0.02)
    one, other = (
        torch.cat([gradients[name].flatten().float() for name in flat_gradients])
        for gradients in (flat_gradients, packed_gradients)
    )
    # weights of bf16 round every gradient: there mask and parts differ from flat alike
    assert torch.cosine_similarity(one, other, dim=0) > (0.99 if autocast else 0.95)


def test_long_rows_are_computed_by_parts_and_short_ones_under_the_mask() -> None:
    model = build("qwen2")

    def given(texts: list[list[int]]) -> dict[str, Any]:
        features = as_features(pack_rows(texts, [0] * len(texts)), 0)
        return model._who_sees_whom(features["segment_ids"])

    prefix = list(range(48))
    assert "tree" not in given([[*prefix, *[number] * 12] for number in range(4)])
    assert "tree" in given([[*prefix, *[number] * 12] for number in range(16)])
    # one long segment among short ones: padding them all to its length would cost more
    assert "tree" not in given(
        [[*prefix, *[number] * (1 + 90 * (number == 3))] for number in range(16)]
    )
    model[0].model.set_attn_implementation("eager")
    assert "tree" not in given([[*prefix, *[number] * 12] for number in range(16)])


def test_the_last_layer_skips_tokens_that_are_not_read() -> None:
    model = build("llama")
    seen: list[int] = []
    layers = model[0].model.layers
    for layer in layers:
        layer.mlp.down_proj.register_forward_hook(
            lambda *arguments: seen.append(arguments[2][..., 0].numel())
        )
    texts = [[1, 2, 3, number] for number in range(5, 10)]
    features = as_features(pack_rows(texts, [0] * 5), 0)
    model(dict(features))
    assert seen == [
        8,
        5,
    ]  # all tokens in the first layer, the last ones of the segments in the last
    seen.clear()
    model({"input_ids": torch.tensor(texts), "attention_mask": torch.ones(5, 4).long()})
    assert seen == [20, 20]


def test_wrong_positions_are_detected() -> None:
    model = build("qwen2")
    flat, packed = (collator(ragged_rows(3)) for collator in collators(model))
    width = packed[f"{QUERIES}_position_ids"].shape[1]
    packed[f"{QUERIES}_position_ids"][:] = torch.arange(width)
    assert packing_difference(model, flat, packed) > MAX_DIFFERENCE


@pytest.mark.parametrize("way", ["flat", "by mask", "by parts"], indirect=True)
def test_cached_gradients_equal_plain_ones(way: str) -> None:
    model = build("qwen2", way)
    model.train()
    batch = collators(model)[way != "flat"](ragged_rows(4))
    plain_loss, plain = loss_and_gradients(model, batch)
    cached_loss, cached = loss_and_gradients(model, batch, texts_at_once=3)
    assert cached_loss == pytest.approx(plain_loss, abs=1e-5)
    for name, gradient in plain.items():
        assert torch.allclose(gradient, cached[name], atol=2e-5), name


@pytest.mark.parametrize(
    ("architecture", "settings", "can"),
    [
        ("qwen2", {}, True),
        ("mistral", {}, True),
        ("bert", {}, False),
        ("llama", {"pooling": "mean"}, False),
        ("llama", {"encoders": "two"}, False),
    ],
)
def test_only_causal_models_with_last_token_pooling_pack(
    architecture: str, settings: dict[str, str], can: bool
) -> None:
    model = load_backbone(parse_settings({"base_model": f"tiny-random-{architecture}", **settings}))
    assert can_pack(model) is can


def test_queries_longer_than_a_models_window_are_not_packed() -> None:
    model = load_backbone(parse_settings({"base_model": "tiny-random-mistral"}))
    model[0].config.sliding_window = 256
    assert model[0].query_length == 256 and can_pack(model)
    model[0].config.sliding_window = 255
    assert not can_pack(model)


@pytest.mark.parametrize("way", ["by mask", "by parts"], indirect=True)
def test_where_packing_is_wrong_training_falls_back_with_a_warning(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, way: str
) -> None:
    settings = parse_settings({"base_model": "tiny-random-qwen2", "objective": "P,I:multi"})
    groups = [group_of(row, shape=INF_IR) for row in ragged_rows(3)]
    assert make_collator(load_backbone(settings), groups, settings).packing
    break_packing(monkeypatch, way)
    assert not make_collator(load_backbone(settings), groups, settings).packing
    assert "packing is off" in caplog.text

    def cannot(*_: object) -> torch.Tensor:
        raise NotImplementedError("no masks here")

    monkeypatch.setattr(packing, "tree_layout" if way == "by parts" else "tree_mask", cannot)
    assert not make_collator(load_backbone(settings), groups, settings).packing
    assert "no masks here" in caplog.text
