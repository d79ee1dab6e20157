"""The encoder of an install without PyTorch gives the vectors that PyTorch gives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hub_server import Hub

import curation
from analysis.embed.embedding import encoder_of
from analysis.embed.model_source import DEFAULT_MODEL, model_source
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


FROM_THE_HUB = """
import analysis.embed.onnx_encoder as here
from db.errors import InfError
here.model_source = lambda: here.DEFAULT_MODEL  # no package with the weights
try:
    print(*here.OnnxEncoder().encode_query(["a"]).shape)
except InfError as error:
    print(error.code)
"""


@pytest.mark.slow
def test_without_the_package_the_hub_gives_the_weights_and_others_are_refused(
    hub: Hub, there: dict[str, str]
) -> None:
    def printed() -> str:
        command = [sys.executable, "-W", "ignore", "-c", FROM_THE_HUB]
        done = subprocess.run(command, env=os.environ | there, capture_output=True, text=True)
        return (done.stdout or done.stderr).strip()

    assert printed() == "embedding_model_load_failed"
    hub.publish(DEFAULT_MODEL, Path(model_source()), "models")
    assert printed() == "1 384"
    (cached,) = Path(there["HF_HOME"]).rglob("snapshots/*/model.safetensors")
    with cached.open("r+b") as weights:
        weights.seek(-1, os.SEEK_END)
        weights.write(b"?")
    assert printed() == "packaged_weights_changed"
