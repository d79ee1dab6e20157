"""Vectors are kept between evaluations, by model and text."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from trainer_folders import write_beir, write_jsonl
from trainer_jobs import claim, config_for

from db.store.store import Store
from trainer.evaluate import scoring, vector_cache
from trainer.evaluate.job import evaluate
from trainer.evaluate.vector_cache import VectorCache, identity_of
from trainer.launch.here import train
from trainer.model.backbone import load_model
from trainer.probe import natural
from trainer.settings.settings import TrainSettings


def test_cached_texts_are_not_encoded_again(store: Store) -> None:
    asked: list[list[str]] = []

    def encode(texts: Sequence[str], **_: Any) -> np.ndarray:
        asked.append(list(texts))
        return np.array([[len(text), 1.0] for text in texts], dtype=np.float32)

    def vectors(texts: list[str], kind: str = "query") -> np.ndarray:
        counted: list[int] = []
        cache = VectorCache(store, "m", kind, "query: ")
        found = scoring.encode_unique(encode, texts, counted.append, cache)
        assert sum(counted) == len(set(texts))
        return found

    first = vectors(["a", "bb", "a"])
    assert asked == [["bb", "a"]] and first.tolist() == [[1, 1], [2, 1], [1, 1]]
    assert vectors(["bb", "ccc"]).tolist() == [[2, 1], [3, 1]]
    assert asked == [["bb", "a"], ["ccc"]]
    vectors(["a"], kind="document")
    assert asked[2:] == [["a"]]  # a passage is another text than a query


def test_a_corpus_that_would_fill_the_store_is_not_kept(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_cache, "MAX_TEXTS", 2)
    cache = VectorCache(sqlite_store, "m", "document", "")
    cache.keep(["a", "b"], np.ones((2, 2), dtype=np.float32), of=3)
    assert cache.read(["a", "b"]) == {}
    cache.keep(["a", "b"], np.ones((2, 2), dtype=np.float32), of=2)
    assert set(cache.read(["a", "b"])) == {"a", "b"} and cache.read(["a", "b", "c"]) == {}


def test_a_second_evaluation_encodes_what_is_new_and_scores_the_same(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_beir(tmp_path / "beir")
    out = train(claim(sqlite_store, config_for(tmp_path, max_steps="1", held_out="0")))["path"]
    config = {"models": [out], "benchmark": str(folder)}
    encoded: list[str] = []
    model = type(load_model(out))
    plain = model.encode

    def counting(self: Any, inputs: Any, **options: Any) -> Any:
        encoded.extend(inputs)
        return plain(self, inputs, **options)

    monkeypatch.setattr(model, "encode", counting)
    read_for_record = ["briefly one", "body 0", "body 1"]  # the first texts, as tokens, each time
    first = evaluate(claim(sqlite_store, config, kind="evaluate"))
    assert len(encoded) == 4 + 3  # of the checkpoint: one question, three documents
    assert encoded[4:] == read_for_record
    del encoded[4:]
    again = evaluate(claim(sqlite_store, config, kind="evaluate"))
    assert encoded[4:] == read_for_record
    del encoded[4:]
    for one, other in zip(first["models"], again["models"], strict=True):
        assert one["metrics"] == other["metrics"]
    write_jsonl(folder / "corpus.jsonl", [{"_id": f"d{n}", "text": f"body {n}"} for n in range(5)])
    evaluate(claim(sqlite_store, config, kind="evaluate"))
    assert sorted(encoded[4:-3]) == ["body 3", "body 4"]


def test_a_retrained_or_differently_prepared_model_has_another_identity(tmp_path: Path) -> None:
    folder = tmp_path / "model"
    load_model("tiny-random-bert").save(str(folder))
    before = identity_of(str(folder))
    (folder / "config_sentence_transformers.json").write_text("{}")
    assert identity_of(str(folder)) != before
    changed = ({}, {"pooling": "cls"}, {"epochs": 3}, {"query_prefix": "query: "})
    known = [identity_of("m", TrainSettings(**each)) for each in changed]
    assert known[0] == known[2] and "m" not in known
    assert len(set(known)) == 3, "pooling and the prefix make other vectors, epochs do not"


@pytest.mark.long
def test_a_second_training_reads_what_the_first_kept_of_its_base_model(
    sqlite_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "beir").mkdir()
    few = natural.read_natural_probe()[:6]
    monkeypatch.setattr(natural, "read_natural_probe", lambda: few)
    guard = str(write_beir(tmp_path / "beir"))
    encoded: list[int] = []
    model = type(load_model("tiny-random-bert"))
    plain = model.encode

    def counting(self: Any, inputs: Any, **options: Any) -> Any:
        encoded.append(len(inputs))
        return plain(self, inputs, **options)

    monkeypatch.setattr(model, "encode", counting)

    def training(name: str, **settings: str) -> tuple[dict[str, Any], int]:
        encoded.clear()
        config = config_for(tmp_path, max_steps="1", guard=guard, natural_probe="on")
        config["settings"] |= settings
        result = train(claim(sqlite_store, config | {"out": str(tmp_path / name)}))
        return result, sum(encoded)

    first, every = training("first")
    second, after_only = training("second", learning_rate="0.001")
    for part in ("held_out", "natural_probe"):
        assert second[part]["before"] == first[part]["before"]
    gain, probe = first["natural_probe"]["gain"]["natural-flip"], first["natural_probe"]
    difference = probe["after"]["natural-flip"] - probe["before"]["natural-flip"]
    assert gain["value"] == pytest.approx(difference)
    assert second["guard"]["ndcg@10"]["before"] == first["guard"]["ndcg@10"]["before"]
    assert after_only == every / 2  # the trained model's texts, none of the base model's
    assert training("third", pooling="cls")[1] == every  # prepared in another way: another model
