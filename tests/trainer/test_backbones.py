"""Backbones as they are found: pooling, padding on either side, prefixes."""

from pathlib import Path

import numpy as np
import pytest

from trainer.model.backbone import load_backbone
from trainer.settings.settings import parse_settings

TEXTS = ["short", "a text that is much longer than the other one", "in between"]


@pytest.mark.parametrize("pooling", ["mean", "cls", "last"])
@pytest.mark.parametrize(
    ("architecture", "side"), [("qwen2", "left"), ("qwen2", "right"), ("modernbert", "right")]
)
def test_a_vector_does_not_depend_on_padding(pooling: str, architecture: str, side: str) -> None:
    settings = parse_settings({"base_model": f"tiny-random-{architecture}", "pooling": pooling})
    model = load_backbone(settings)
    model.tokenizer.padding_side = side
    together = model.encode(TEXTS)
    alone = [model.encode([text])[0] for text in TEXTS]
    assert np.allclose(together, alone, atol=1e-5)
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-5)


@pytest.mark.parametrize(("architecture", "mode"), [("llama", "lasttoken"), ("bert", "mean")])
def test_a_plain_transformer_is_pooled_by_its_architecture(
    tmp_path: Path, architecture: str, mode: str
) -> None:
    """Its folder has weights, config and tokenizer, and says nothing about pooling."""
    tiny = load_backbone(parse_settings({"base_model": f"tiny-random-{architecture}"}))
    tiny[0].model.save_pretrained(tmp_path)
    tiny.tokenizer.save_pretrained(tmp_path)
    model = load_backbone(parse_settings({"base_model": str(tmp_path)}))
    assert model[1].pooling_mode in (mode, (mode,))
    assert np.allclose(model.encode(TEXTS), tiny.encode(TEXTS), atol=1e-5)


def test_prefixes_stand_before_queries_and_passages_each_their_own() -> None:
    given = {"query_prefix": "query: ", "passage_prefix": "passage: "}
    model = load_backbone(parse_settings({"base_model": "tiny-random-bert", **given}))
    plain = load_backbone(parse_settings({"base_model": "tiny-random-bert"}))
    assert np.allclose(model.encode_query(["q"]), plain.encode(["query: q"]), atol=1e-6)
    assert np.allclose(model.encode_document(["p"]), plain.encode(["passage: p"]), atol=1e-6)
