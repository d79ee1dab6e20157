"""Rerankers by name, with tiny random weights: scores, order, and what is refused."""

from pathlib import Path

import pytest
from tiny_language_models import write_cross_encoder, write_t5
from trainer_folders import write_beir, write_followir
from trainer_jobs import claim

from db.errors import BadInput
from db.store.store import Store
from trainer.evaluate.job import evaluate
from trainer.evaluate.reranking import load_reranker, score_reranker
from trainer.settings.template import Template
from trainer.suites.registry import read_benchmark


@pytest.mark.parametrize("kind", ["monot5", "flan-t5"])
def test_a_pairs_score_does_not_depend_on_the_pairs_beside_it(kind: str, tmp_path: Path) -> None:
    score = load_reranker(f"{kind}:{write_t5(tmp_path, framed=False)}")
    pairs = [("short", "text"), ("a much longer query", "passage " * 30), ("", "")]
    together = score(pairs)
    assert together == pytest.approx([score([pair])[0] for pair in pairs], abs=1e-5)
    assert all(0 < value < 1 for value in together)


def test_monot5_is_the_probability_of_true_against_false(tmp_path: Path) -> None:
    import torch
    from transformers import AutoTokenizer, T5ForConditionalGeneration

    folder = write_t5(tmp_path, framed=False)
    (value,) = load_reranker(f"monot5:{folder}")([("q", "d")])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    features = tokenizer("Query: q Document: d Relevant:", return_tensors="pt")
    model = T5ForConditionalGeneration.from_pretrained(folder).eval()
    logits = model(**features, decoder_input_ids=torch.tensor([[0]])).logits[0, 0]
    true, false = (logits[tokenizer(word)["input_ids"][0]] for word in ("true", "false"))
    assert value == pytest.approx(torch.sigmoid(true - false).item(), abs=1e-6)


def test_a_long_document_is_cut_and_the_question_after_it_stays(tmp_path: Path) -> None:
    from transformers import AutoTokenizer

    from trainer.evaluate.reranking import MAX_TOKENS, _prompt

    tokenizer = AutoTokenizer.from_pretrained(write_t5(tmp_path, framed=False))
    prompt = _prompt(tokenizer, "monot5", "why", "x" * 5000)
    assert prompt.startswith("Query: why Document: xxx") and prompt.endswith("x Relevant:")
    assert len(tokenizer(prompt)["input_ids"]) == MAX_TOKENS


def test_only_listed_candidates_are_read_and_equal_scores_are_ties(tmp_path: Path) -> None:
    benchmark = read_benchmark(write_followir(tmp_path))
    seen: list[tuple[str, str]] = []

    def score(pairs: list[tuple[str, str]]) -> list[float]:
        seen.extend(pairs)
        return [1.0 if document == "body 3" else 0.0 for _, document in pairs]

    scores = score_reranker(score, Template(), benchmark)
    assert len(seen) == 4 * 3 and ("any text q1", "T body 1") in seen
    assert scores.per_query["q2-og"]["mrr"] == 1.0  # d3 is right and first
    assert scores.metrics["p-mrr"] == 0.0  # q1: d2 stands where it stood


def test_rerankers_are_scored_beside_bm25_by_name(sqlite_store: Store, tmp_path: Path) -> None:
    names = [
        "bm25",
        f"cross-encoder:{write_cross_encoder(tmp_path / 'cross')}",
        f"flan-t5:{write_t5(tmp_path / 't5', framed=False)}",
        f"monot5:{tmp_path / 't5'}",
    ]
    folder = write_beir(tmp_path / "beir")  # lists no candidates: BM25's best are reranked
    config = {"models": names, "benchmark": str(folder)}
    result = evaluate(claim(sqlite_store, config, kind="evaluate"))
    assert [model["model"] for model in result["models"]] == names
    assert all(0 < model["metrics"]["mrr"] <= 1 for model in result["models"])


def test_an_unusable_reranker_is_refused_with_the_remedy(tmp_path: Path) -> None:
    import torch

    with pytest.raises(BadInput, match="2 numbers for a pair"):
        load_reranker(f"cross-encoder:{write_cross_encoder(tmp_path / 'two', labels=2)}")
    pickled = write_t5(tmp_path / "pickled", framed=False)
    (pickled / "model.safetensors").unlink()
    torch.save({}, pickled / "pytorch_model.bin")
    with pytest.raises(BadInput, match="weights are safetensors"):
        load_reranker(f"monot5:{pickled}")
