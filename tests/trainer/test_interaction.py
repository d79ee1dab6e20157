"""Interaction II: by hand, against naive loops, gradients, padding, memory, save and load."""

import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor
from trainer_jobs import claim, config_for

from db.errors import BadInput
from db.store.store import Store
from trainer.evaluate.job import evaluate
from trainer.launch.here import train
from trainer.model.backbone import load_backbone, load_model
from trainer.model.interaction import CrossAttentionTransformer, cross_attend
from trainer.settings.settings import parse_settings
from trainer.settings.template import APART, SEPARATOR, Template


def ones(*shape: int) -> Tensor:
    return torch.ones(*shape, dtype=torch.long)


def test_cross_attention_by_hand() -> None:
    """d = 4, √d = 2. One instruction token (2·ln 3, 0, 0, 0); query tokens e1 and e2.

    Scores 2·ln 3 / 2 = ln 3 and 0: softmax 3/4 and 1/4. Values (4,0,0,0) and (0,8,0,0) give
    (3, 2, 0, 0). A second token, of zeros, reads (2, 4, 0, 0); the mean is (2.5, 3, 0, 0).
    """
    query = torch.eye(4)[None, :2]
    value = torch.tensor([[[4.0, 0, 0, 0], [0, 8.0, 0, 0]]])
    token = torch.tensor([[[2 * math.log(3), 0, 0, 0]]])
    joined = cross_attend(token, ones(1, 1), query, ones(1, 2), value)
    assert torch.allclose(joined, torch.tensor([[3.0, 2, 0, 0]]))
    both = torch.cat([token, torch.zeros(1, 1, 4)], dim=1)
    joined = cross_attend(both, ones(1, 2), query, ones(1, 2), value)
    assert torch.allclose(joined, torch.tensor([[2.5, 3, 0, 0]]))


def naive(instruction: Tensor, query: Tensor, value: Tensor) -> list[float]:
    """Loops over one pair's tokens."""
    size = instruction.shape[1]
    total = [0.0] * size
    for word in instruction:
        weights = [math.exp(float(word @ key) / math.sqrt(size)) for key in query]
        for weight, row in zip(weights, value, strict=True):
            for place in range(size):
                total[place] += weight / sum(weights) * float(row[place])
    return [number / len(instruction) for number in total]


def test_cross_attention_equals_naive_loops_whatever_the_padding() -> None:
    torch.manual_seed(0)
    lengths = [(3, 5), (1, 2), (4, 1)]
    instruction, query, value = torch.randn(3, 3, 6, 8, dtype=torch.float64).unbind(0)
    masks = torch.zeros(2, 3, 6, dtype=torch.long)
    for row, pair in enumerate(lengths):
        for side, length in enumerate(pair):
            masks[side, row, :length] = 1
    joined = cross_attend(instruction, masks[0], query, masks[1], value)
    for row, (instruction_tokens, tokens) in enumerate(lengths):
        wanted = naive(
            instruction[row, :instruction_tokens], query[row, :tokens], value[row, :tokens]
        )
        assert joined[row].tolist() == pytest.approx(wanted, abs=1e-12)


def test_cross_attentions_gradients_are_right() -> None:
    torch.manual_seed(1)
    given = [torch.randn(2, 3, 4, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    mask = torch.tensor([[1, 1, 0], [1, 1, 1]])
    assert torch.autograd.gradcheck(
        lambda i, q, v: cross_attend(i, mask, q, mask.flip(0), v), tuple(given)
    )


BACKBONES = ("tiny-random-bert", "tiny-random-qwen2")


@pytest.fixture(params=BACKBONES)
def model(request: pytest.FixtureRequest) -> Iterator[SentenceTransformer]:
    settings = parse_settings(
        {"base_model": request.param, "interaction": "II", "query_prefix": "query: "}
    )
    made = load_backbone(settings)
    torch.manual_seed(4)
    for name in ("w_i", "w_q1", "w_q2"):
        torch.nn.init.normal_(getattr(made[0], name).weight, std=0.3)
    yield made.eval()


def states(model: SentenceTransformer, text: str) -> Tensor:
    """Token states of one text alone, with its prefix."""
    plain = super(CrossAttentionTransformer, model[0])
    with torch.no_grad():
        found: Tensor = plain.forward(plain.preprocess(["query: " + text]))["token_embeddings"][0]
    return found


def test_a_batch_gives_what_each_pair_gives_by_hand(model: SentenceTransformer) -> None:
    pairs = [("Give a figure.", "how tall"), ("Only in metres, please.", "how tall"), ("x", "y z")]
    found = model.encode_query([Template(APART).apply(i, q) for i, q in pairs])
    assert len(model[0].states) == 3
    for vector, (instruction, query) in zip(found, pairs, strict=True):
        instruction_states, tokens = states(model, instruction), states(model, query)
        with torch.no_grad():
            joined = naive(
                model[0].w_i(instruction_states).double(),
                model[0].w_q1(tokens).double(),
                model[0].w_q2(tokens).double(),
            )
        wanted = np.array(joined) / np.linalg.norm(joined)
        assert np.abs(vector - wanted).max() < 1e-5


def test_texts_without_an_instruction_are_pooled_as_usual(model: SentenceTransformer) -> None:
    mixed = [Template(APART).apply("Give a figure.", "how tall"), "how tall", "and how wide is it"]
    together, alone = model.encode_query(mixed), model.encode_query(mixed[1:])
    assert np.abs(together[1:] - alone).max() < 1e-6
    assert np.abs(together[0] - together[1]).max() > 1e-3
    passage = f"a passage{SEPARATOR}with a stray sign"  # not split: it is no query
    assert model.encode_document([passage]).shape == (1, 32) and len(model[0].states) == 1


def test_an_instruction_used_again_is_not_encoded_again(
    model: SentenceTransformer, monkeypatch: pytest.MonkeyPatch
) -> None:
    encoded: list[int] = []
    plain = model[0]._encode

    def counting(ids: Tensor, mask: Tensor) -> Tensor:
        encoded.append(len(ids))
        return plain(ids, mask)

    monkeypatch.setattr(model[0], "_encode", counting)
    queries = [f"question {number}" for number in range(4)]
    texts = [Template(APART).apply("Give a figure.", query) for query in queries]
    first = model.encode_query(texts)
    assert encoded == [4, 1]  # four queries, one instruction
    assert np.abs(model.encode_query(texts) - first).max() < 1e-6
    assert encoded == [4, 1, 4]
    model.train()
    assert not model[0].states
    model.eval().encode_query(texts)
    model.load_state_dict(model.state_dict())
    assert not model[0].states


@pytest.mark.long
def test_a_training_with_interaction_ii_is_saved_loaded_and_scored(
    sqlite_store: Store, tmp_path: Path
) -> None:
    given = {"interaction": "II", "objective": "P,I:multi", "max_steps": "3", "texts_at_once": "5"}
    given |= {"query_prefix": "query: ", "learning_rate": "1e-2"}
    config = config_for(tmp_path, **given)
    result = train(claim(sqlite_store, config))
    model = load_model(result["path"])
    matrix = model[0].w_q2.weight.detach()
    assert not torch.equal(matrix, torch.eye(32))  # it was trained
    assert (Path(result["path"]) / "interaction.safetensors").exists()
    here = model.encode_query(["how long"], instruction="In metres.")
    code = (
        "import sys, numpy; from trainer.model.backbone import load_model;"
        "v = load_model(sys.argv[1]).encode_query(['how long'], instruction='In metres.');"
        "numpy.save(sys.argv[2], v)"
    )
    command = [sys.executable, "-c", code, result["path"], str(tmp_path / "v.npy")]
    subprocess.run(command, check=True, capture_output=True)
    assert np.array_equal(here, np.load(tmp_path / "v.npy"))
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(result["path"])
    release = {"models": [result["path"]], "release": config["release"]}
    scored = evaluate(claim(sqlite_store, release, "evaluate"))["models"][1]
    after = result["held_out"]["after"]
    assert {name: scored["metrics"][name] for name in after} == pytest.approx(after, abs=1e-6)
    assert scored["template"] == APART
    further = {"base_model": result["path"], "max_steps": "1"}
    with pytest.raises(BadInput, match="give interaction=II"):
        load_backbone(parse_settings(further))
    again = load_backbone(parse_settings(further | {"interaction": "II"}))
    assert torch.equal(again[0].w_q2.weight, matrix)


@pytest.mark.parametrize("backbone", BACKBONES)
@pytest.mark.parametrize("extra", [{"lora_rank": "2"}, {"gradient_checkpointing": "on"}])
def test_interaction_ii_trains_with_other_settings(
    sqlite_store: Store, tmp_path: Path, backbone: str, extra: dict[str, str]
) -> None:
    given = {
        "base_model": backbone,
        "interaction": "II",
        "objective": "P,I,IQ:uni",
        "held_out": "0",
    }
    result = train(claim(sqlite_store, config_for(tmp_path, **given, **extra, max_steps="2")))
    assert result["steps"] == 2 and (Path(result["path"]) / "interaction.safetensors").exists()


def test_settings_unsupported_by_interaction_ii_are_refused() -> None:
    with pytest.raises(BadInput, match="encoders=shared"):
        parse_settings({"interaction": "II", "encoders": "two"})
    with pytest.raises(BadInput, match="a template has no effect there"):
        parse_settings({"interaction": "II", "template": "{query} {instruction}"})
