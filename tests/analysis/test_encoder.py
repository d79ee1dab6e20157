import socket
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
import torch

from analysis.embed import encoder
from analysis.embed.encoder import CLOSE, Encoder, spread
from analysis.embed.model_source import DEFAULT_MODEL, model_source

WORDS = "the lighthouse keeper wrote down when every ship of the morning passed the Ångström rock"
TEXTS = [" ".join(WORDS.split()[: 1 + number % 15]) + f" {number}" for number in range(20)]
TEXTS += ["", " ".join([WORDS] * 8)]

openvino = pytest.mark.skipif(find_spec("openvino") is None, reason="openvino is not installed")


@pytest.fixture
def model() -> Any:
    from sentence_transformers import SentenceTransformer

    return SentenceTransformer(model_source(DEFAULT_MODEL), device="cpu")


def reference(model: Any, texts: list[str]) -> np.ndarray:
    return np.asarray(model.encode(texts, normalize_embeddings=True, show_progress_bar=False))


@pytest.mark.long
@openvino
def test_the_compiled_network_gives_the_vectors_of_the_reference(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder, "WORTH_CHARACTERS", 0)
    expected = reference(model, TEXTS)
    fast = Encoder(model)
    found = fast.encode(TEXTS)
    assert fast.how.startswith("OpenVINO, verified")
    assert found.dtype == np.float32
    assert np.allclose((found * expected).sum(axis=1), 1.0, atol=1e-5)
    assert np.allclose(np.linalg.norm(found, axis=1), 1.0, atol=1e-5)


@pytest.mark.long
@openvino
def test_compiling_reports_nowhere(model: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    connections: list[object] = []
    monkeypatch.setattr(socket.socket, "connect", lambda *address: connections.append(address))
    monkeypatch.setattr(socket, "getaddrinfo", lambda *address, **_: connections.append(address))
    monkeypatch.setattr(encoder, "WORTH_CHARACTERS", 0)
    fast = Encoder(model)
    fast.encode(TEXTS)
    assert fast.how.startswith("OpenVINO")
    assert connections == []


class Branching(torch.nn.Module):
    """A network as some are: what it does to long texts, a tracer shown short ones never sees."""

    def __init__(self, network: Any) -> None:
        super().__init__()
        self.network, self.config = network, network.config

    def forward(self, **features: Any) -> Any:
        out = self.network(**features)
        if features["input_ids"].shape[1] > 50:
            out.last_hidden_state = out.last_hidden_state.roll(7, dims=2)
        return out


@pytest.mark.long
@openvino
def test_a_network_whose_compiled_vectors_differ_is_not_replaced(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model[0].model = before = Branching(model[0].model)
    expected = reference(model, TEXTS)
    monkeypatch.setattr(encoder, "WORTH_CHARACTERS", 0)
    slow = Encoder(model)
    found = slow.encode(TEXTS)
    assert "OpenVINO differs from the reference: cosine" in slow.how
    assert model[0].model is before
    assert np.allclose(found, expected, atol=1e-5)


class Untraceable(Branching):
    def forward(self, **features: Any) -> Any:
        if torch.jit.is_tracing():
            raise NotImplementedError("no tracing of this network\nmore lines")
        return self.network(**features)


@openvino
def test_a_network_that_cannot_be_read_stays_and_the_sentence_says_why(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model[0].model = before = Untraceable(model[0].model)
    monkeypatch.setattr(encoder, "WORTH_CHARACTERS", 0)
    slow = Encoder(model)
    assert slow.encode(["a", "b"]).shape == (2, 384)
    assert model[0].model is before
    assert slow.how.startswith("PyTorch, the reference: OpenVINO cannot run this model (")


@openvino
def test_a_table_of_words_has_nothing_to_compile_and_is_used_as_it_is(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import StaticEmbedding
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit

    tokenizer = Tokenizer(WordLevel({"one": 0, "two": 1, "[UNK]": 2}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    table = np.eye(3, dtype=np.float32)
    static = SentenceTransformer(modules=[StaticEmbedding(tokenizer, table)], device="cpu")
    monkeypatch.setattr(encoder, "WORTH_CHARACTERS", 0)
    used = Encoder(static)
    assert np.allclose(used.encode(["one", "two"]), table[:2])
    assert used.how.endswith("OpenVINO has nothing to compile in this model")


@pytest.mark.long
def test_without_openvino_the_reference_is_used_and_the_sentence_names_the_extra(
    model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoder, "find_spec", lambda name: None)
    monkeypatch.setattr(encoder, "WORTH_CHARACTERS", 0)
    slow = Encoder(model)
    assert np.allclose(slow.encode(TEXTS), reference(model, TEXTS), atol=1e-6)
    assert slow.how.endswith("OpenVINO is not installed (the extra `fast`)")


def test_few_texts_are_not_worth_a_compilation(model: Any) -> None:
    slow = Encoder(model)
    slow.encode(TEXTS)
    assert slow.how == "PyTorch, the reference"


@pytest.mark.long
def test_bfloat16_keeps_the_vectors_close_to_the_reference(model: Any) -> None:
    # the graphics card's way, computed by the processor: the same roundings, less speed
    expected = reference(model, TEXTS)
    card = Encoder(model)
    card._bfloat16 = True
    found = card.encode(TEXTS)
    assert found.dtype == np.float32
    assert not np.array_equal(found, expected)
    assert (found * expected).sum(axis=1).min() > CLOSE - 2e-4


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no graphics card")
def test_a_graphics_card_works_in_verified_bfloat16(monkeypatch: pytest.MonkeyPatch) -> None:
    from sentence_transformers import SentenceTransformer

    monkeypatch.setattr(encoder, "WORTH_CHARACTERS", 0)
    model = SentenceTransformer(model_source(DEFAULT_MODEL), device="cuda")
    expected = reference(model, TEXTS)
    fast = Encoder(model)
    found = fast.encode(TEXTS)
    assert "graphics card" in fast.how
    assert (found * expected).sum(axis=1).min() >= CLOSE


def test_probes_are_spread_over_the_lengths() -> None:
    texts = ["x" * length for length in range(100, 0, -1)]
    lengths = [len(text) for text in spread(texts)]
    assert lengths[0] == 1
    assert lengths[-1] == 100
    assert len(lengths) == 16
    assert spread(["one", "three"]) == ["one", "three"]
