"""The encoder of an install without PyTorch gives the vectors that PyTorch gives."""

import json
from pathlib import Path

import numpy as np
import pytest

import curation
from analysis.embed.embedding import encoder_of
from analysis.embed.onnx_encoder import OnnxEncoder

PASSAGES = Path(curation.__file__).parent / "demo" / "passages.jsonl"
EDGES = [
    "",
    "a",
    "x " * 1000,
    "日本語のテキスト。検索の例",
    "Что такое поиск?",
    "مرحبا بالعالم",
    "ﬁn de siècle 😀",
]


@pytest.mark.slow
def test_its_vectors_are_those_of_pytorch_whatever_the_language_and_length() -> None:
    passages = [json.loads(line)["text"] for line in PASSAGES.read_text().splitlines()]
    texts = [*passages[:: len(passages) // 25], *EDGES]
    reference = encoder_of().encode(texts)
    encoder = OnnxEncoder()
    found = encoder.encode_document(texts)
    assert found.dtype == np.float32 and found.shape == (len(texts), 384)
    assert np.abs(found - reference).max() < 1e-6
    alone = encoder.encode_query(texts[:1], batch_size=1)
    assert np.abs(alone - reference[:1]).max() < 1e-6
