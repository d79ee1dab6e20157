"""Texts are read as the template makes them: no chat template unless a setting requests it."""

import json
from pathlib import Path
from typing import Any

import pytest
from instruct_models import CHAT, write_instruct
from sentence_transformers import SentenceTransformer
from tiny_language_models import write_cross_encoder
from trainer_jobs import claim, config_for

from analysis.embed.chat_template import applies_chat_template, reading_of
from db.errors import BadInput
from db.jobs import jobs
from db.store.store import Store
from trainer.evaluate.mteb_model import MtebModel
from trainer.evaluate.reranking import load_reranker
from trainer.launch.here import train
from trainer.model.backbone import load_backbone, load_model
from trainer.serve.model_server import Searcher
from trainer.settings.settings import parse_settings


@pytest.fixture
def instruct(tmp_path: Path) -> str:
    return str(write_instruct(tmp_path / "instruct"))


def read_by(model: Any, text: str = "In metres. how long", task: str = "query") -> str:
    ids = model.preprocess([text], task=task)["input_ids"][0]
    return str(model.tokenizer.decode(ids))


def test_sentence_transformers_itself_wraps_the_texts_of_an_instruct_model(instruct: str) -> None:
    """Why `analysis.embed.chat_template` is there; without this the other tests show nothing."""
    assert "user:" in read_by(SentenceTransformer(instruct))


@pytest.mark.parametrize("task", ["query", "document"])
@pytest.mark.parametrize("encoders", ["shared", "two"])
def test_no_path_wraps_plain_texts(instruct: str, task: str, encoders: str) -> None:
    model = load_backbone(parse_settings({"base_model": instruct, "encoders": encoders}))
    assert read_by(model, task=task) == "In metres. how long"
    assert read_by(load_model(instruct), task=task) == "In metres. how long"


def test_embeddings_for_maps_read_plain_texts(sqlite_store: Store, instruct: str) -> None:
    from analysis.embed.embedding import embed_texts, encoder_of

    plain = load_model(instruct).encode(["hello world"], normalize_embeddings=True)
    (found,) = embed_texts(sqlite_store, ["hello world"], model=instruct)
    assert found == pytest.approx(plain[0], abs=1e-5)
    encoder_of.cache_clear()


def test_a_cross_encoder_with_a_chat_template_reads_plain_pairs(tmp_path: Path) -> None:
    """Its scores are those of the same weights without the template."""
    plain = write_cross_encoder(tmp_path / "plain")
    chat = write_cross_encoder(tmp_path / "chat")
    (chat / "chat_template.jinja").write_text(CHAT)
    pairs = [("how long", "it is 330 m long"), ("how", "by boat")]
    found = [load_reranker(f"cross-encoder:{folder}")(pairs) for folder in (plain, chat)]
    assert found[0] == pytest.approx(found[1], abs=1e-6) and found[0][0] != found[0][1]


def test_prefixes_stand_at_the_start_of_the_plain_text(instruct: str) -> None:
    settings = {"base_model": instruct, "query_prefix": "query: "}
    model = load_backbone(parse_settings(settings))
    ids = model.preprocess(["how long"], prompt=model.prompts["query"], task="query")["input_ids"]
    assert model.tokenizer.decode(ids[0]) == "query: how long"


@pytest.mark.parametrize("objective", ["P", "P,I:multi"])
def test_the_first_batch_of_an_instruct_model_holds_the_plain_texts(
    sqlite_store: Store, tmp_path: Path, instruct: str, objective: str
) -> None:
    """Flat, and packed (an instruction and its queries in one row)."""
    config = config_for(tmp_path, base_model=instruct, max_steps="1", objective=objective)
    handle = claim(sqlite_store, config)
    result = train(handle)
    with sqlite_store.read() as session:
        batch = jobs.get_job(session, handle.id).shown["batch"]
    texts = [text for column in batch.values() for text in column]
    assert not [text for text in texts if "user:" in text or "<s>" in text or "\n" in text]
    assert batch["matched"][0].startswith(
        ("Find a passage that gives", "Find a passage that names")
    )
    assert all(text.endswith(".") for text in batch["passages"])
    memory = json.loads((Path(result["path"]) / "inf_embed.json").read_text())
    assert memory["chat_template"] == "off"
    for model in (SentenceTransformer(result["path"]), load_model(result["path"])):
        assert read_by(model) == "In metres. how long"


def test_a_chat_template_that_is_requested_is_stored_with_the_model(
    sqlite_store: Store, tmp_path: Path, instruct: str
) -> None:
    config = config_for(tmp_path, base_model=instruct, max_steps="1", chat_template="on")
    handle = claim(sqlite_store, config)
    result = train(handle)
    with sqlite_store.read() as session:
        batch = jobs.get_job(session, handle.id).shown["batch"]
    assert batch["matched"][0].startswith("<s>user:Find") and batch["matched"][0].endswith("</s>\n")
    for model in (SentenceTransformer(result["path"]), load_model(result["path"])):
        assert read_by(model) == "<s>user:In metres. how long</s>\n"
    again = load_backbone(parse_settings({"base_model": result["path"]}))
    assert read_by(again) == "In metres. how long", "a training goes by its own setting"


def test_a_missing_chat_template_is_refused() -> None:
    with pytest.raises(BadInput, match="no chat template"):
        load_backbone(parse_settings({"base_model": "tiny-random-qwen2", "chat_template": "on"}))


def test_vectors_that_were_cached_in_a_chat_template_are_not_read_again(instruct: str) -> None:
    plain, own = load_model(instruct), load_backbone(parse_settings({"base_model": instruct}))
    assert reading_of(plain) == reading_of(own) == " on plain texts"
    assert reading_of(SentenceTransformer(instruct)) == " in its chat template"
    assert reading_of(load_model("tiny-random-bert")) == ""


def test_mteb_and_the_model_server_read_plain_texts(sqlite_store: Store, instruct: str) -> None:
    assert not applies_chat_template(MtebModel(instruct).model)
    assert not applies_chat_template(Searcher(sqlite_store)._model(instruct))
