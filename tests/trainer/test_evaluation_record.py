"""The record of an evaluation: the content of its data, and the texts as really read."""

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from trainer_folders import (
    write_beir,
    write_followir,
    write_instructions_of_a_query,
    write_jsonl,
    write_judgments,
)
from trainer_jobs import claim, config_for

from analysis.text.bm25 import convention_of
from db.outcome.evaluations import list_evaluations
from db.store.store import Store
from trainer.evaluate.job import evaluate
from trainer.launch.here import train
from trainer.model.backbone import load_model
from trainer.records.applied import read_by_model
from trainer.records.likeness import FORMAT, PARTS, differences
from trainer.records.pinning import benchmark_content
from trainer.records.record import evaluation_record, library_versions, model_record
from trainer.report.compared.measures import is_trained
from trainer.suites.registry import read_benchmark


def test_one_judgment_changed_in_a_folder_of_the_same_name_is_another_benchmark(
    tmp_path: Path,
) -> None:
    one = benchmark_content(read_benchmark(write_beir(tmp_path / "a" / "beir")))
    same = benchmark_content(read_benchmark(write_beir(tmp_path / "b" / "beir")))
    assert one == same
    write_judgments(tmp_path / "b" / "beir" / "qrels" / "test.tsv", [("1", "d1", 2)])
    other = benchmark_content(read_benchmark(tmp_path / "b" / "beir"))
    assert {part for part in PARTS if other[part] != one[part]} == {"judgments"}
    assert other["sha256"] != one["sha256"]


@pytest.mark.parametrize(
    ("field", "value", "part"),
    [
        ("corpus", {"d1": "other"}, "corpus"),
        ("candidates", {"q1-og": ["d1"]}, "candidates"),
        ("excluded", {"q1-og": ["d1"]}, "candidates"),
        ("changed_documents", {"q1": ["d1"]}, "forms"),
        ("same_query", {"q1-og": "q"}, "forms"),
    ],
)
def test_every_part_of_a_benchmark_has_a_hash_of_its_own(
    tmp_path: Path, field: str, value: object, part: str
) -> None:
    benchmark = read_benchmark(write_followir(tmp_path))
    one = benchmark_content(benchmark)
    other = benchmark_content(replace(benchmark, **{field: value}))  # type: ignore[arg-type]
    assert {name for name in PARTS if other[name] != one[name]} == {part}


def test_queries_without_a_relevant_document_are_named(tmp_path: Path) -> None:
    write_beir(tmp_path)
    write_judgments(tmp_path / "qrels" / "test.tsv", [("1", "d0", 1), ("2", "d1", 0)])
    assert benchmark_content(read_benchmark(tmp_path))["without_relevant"] == ["2"]


def test_the_order_of_lines_is_no_part_of_a_benchmark(sqlite_store: Store, tmp_path: Path) -> None:
    """InstructIR: the query is named by the smallest id, and the first texts are those of it."""
    found = []
    for name in "ab":
        folder = write_instructions_of_a_query(tmp_path / name / "set")
        if name == "b":
            for file in (folder / "queries.jsonl", folder / "corpus.jsonl"):
                file.write_text("".join(reversed(file.read_text().splitlines(keepends=True))))
            header, *lines = (folder / "qrels" / "test.tsv").read_text().splitlines()
            (folder / "qrels" / "test.tsv").write_text("\n".join([header, *reversed(lines)]))
        config = {"models": ["bm25"], "benchmark": str(folder)}
        found.append(evaluate(claim(sqlite_store, config, kind="evaluate"))["models"][0]["record"])
    one, other = found
    assert one["benchmark"] == other["benchmark"] and one["applied"] == other["applied"]
    assert differences(one, other) == []


def record_of(**changed: Any) -> dict[str, Any]:
    content = dict.fromkeys(("sha256", *PARTS), "0a")
    model = {"name": "m", "weights_sha256": None}
    return {"format": FORMAT, "benchmark": content, "model": model, "applied": {}} | changed


def test_records_of_another_format_are_refused_in_words() -> None:
    assert differences(record_of(), record_of()) == []
    for pair in ((record_of(), {"format": 9}), ({"format": 9}, record_of())):
        (reason,) = differences(*pair)
        assert reason.startswith("a record of format 9") and "evaluate again" in reason


def test_other_paraphrases_are_another_condition(tmp_path: Path) -> None:
    benchmark = read_benchmark(write_beir(tmp_path))

    def record(*paraphrases: str) -> dict[str, Any]:
        return evaluation_record(
            benchmark,
            benchmark_content(benchmark),
            model=model_record("bm25"),
            first_stage=None,
            depth=1000,
            template="",
            prompts={},
            given_prefixes=None,
            chat_template=None,
            applied={},
            paraphrases={"briefly": paraphrases} if paraphrases else None,
        )

    assert differences(record("short", "in brief"), record("in brief", "short")) == []
    (reason,) = differences(record("short"), record("in brief"))
    assert reason.startswith("other paraphrases")
    assert differences(record("short"), record()) == []  # stability was not measured


def test_the_prefix_stands_among_the_tokens_that_the_model_read() -> None:
    model = load_model("tiny-random-bert")
    bare = read_by_model(model, ["river"], ["bank"])
    model.prompts["query"] = "query: "
    read = read_by_model(model, ["river"], ["bank"])
    (query,), (document,) = read["query"], read["document"]
    assert query["text"] == "query: river" and document["text"] == "bank"
    assert query["count"] > bare["query"][0]["count"]
    assert query["tokens"] != bare["query"][0]["tokens"] and document == bare["document"][0]


def test_a_prefix_that_the_library_drops_is_missing_among_the_tokens(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The prompt is still in the settings; what the forward pass gets is what counts."""
    model = load_model("tiny-random-bert")
    bare = read_by_model(model, ["river"], [])["query"][0]["tokens"]
    model.prompts["query"] = "query: "
    plain = model.encode
    monkeypatch.setattr(
        model, "encode_query", lambda texts, **given: plain(texts, prompt="", **given)
    )
    assert read_by_model(model, ["river"], [])["query"][0]["tokens"] == bare


def test_an_evaluation_stores_its_record(sqlite_store: Store, tmp_path: Path) -> None:
    config = {
        "models": ["tiny-random-bert", "bm25"],
        "benchmark": str(write_followir(tmp_path / "Core17")),
        "query_prefix": "query: ",
    }
    result = evaluate(claim(sqlite_store, config, kind="evaluate"))
    with sqlite_store.read() as session:
        bm25, model = (each.record for each in list_evaluations(session))
    assert model["benchmark"] == benchmark_content(read_benchmark(tmp_path / "Core17"))
    assert model["pool"] == "3 listed candidates per query" and model["depth"] == 4
    assert model["given_prefixes"] == {"query_prefix": "query: ", "passage_prefix": ""}
    assert model["applied"]["query"][0]["text"] == "query: few text q1"  # q1-changed
    assert len(model["applied"]["query"]) == 2 and model["chat_template"] == "off"
    assert model["libraries"] == library_versions()
    assert {"python", "torch", "pytrec-eval-terrier"} <= model["libraries"].keys()
    assert bm25["given_prefixes"] is None and bm25["applied"]["query"][0]["tokens"]
    assert result["sha256"] == model["benchmark"]["sha256"]
    (compared,) = result["comparisons"]
    assert compared["refused"] == []


def test_a_reranker_of_bm25s_best_hundred_has_another_pool(tmp_path: Path) -> None:
    benchmark = read_benchmark(write_beir(tmp_path))
    large = replace(benchmark, corpus={f"d{n}": "text" for n in range(150)})

    def pool(first_stage: int | None) -> str:
        record = evaluation_record(
            large,
            benchmark_content(large),
            model=model_record("bm25"),
            first_stage=first_stage,
            depth=1000,
            template="",
            prompts={},
            given_prefixes=None,
            chat_template=None,
            applied={},
        )
        return str(record["pool"])

    assert pool(None) == "all 150 documents" == pool(200)
    assert pool(100) == "BM25's best 100 of 150 documents"


def evaluated(store: Store, models: list[str], benchmark: Path, **config: str) -> dict[str, Any]:
    given = {"models": models, "benchmark": str(benchmark), **config}
    return evaluate(claim(store, given, kind="evaluate"))


def test_bm25s_convention_and_language_stand_in_the_record(
    sqlite_store: Store, tmp_path: Path
) -> None:
    folder = write_beir(tmp_path / "beir")
    found = evaluated(sqlite_store, ["bm25", "tiny-random-bert"], folder)["models"]
    english, model = (each["record"] for each in found)
    assert english["bm25"] == convention_of("en") and "language en" in english["bm25"]
    assert model["bm25"] is None and differences(english, model) == []
    assert {"bm25s", "PyStemmer"} <= english["libraries"].keys()
    (german,) = evaluated(sqlite_store, ["bm25"], folder, bm25_language="de")["models"]
    (reason,) = differences(english, german["record"])
    assert reason.startswith("other BM25") and "language de" in reason


def test_bm25_stems_in_the_language_that_was_requested(sqlite_store: Store, tmp_path: Path) -> None:
    """German "Brücken" finds "Brücke" by its stem; with the English stemmer it does not."""
    folder = write_beir(tmp_path / "beir")
    write_jsonl(folder / "queries.jsonl", [{"_id": "1", "text": "Brücken"}])
    texts = {"d0": "eine Brücke", "d1": "ein Haus", "d2": "ein Baum"}
    write_jsonl(folder / "corpus.jsonl", [{"_id": key, "text": of} for key, of in texts.items()])
    write_judgments(folder / "qrels" / "test.tsv", [("1", "d0", 1)])
    (german,) = evaluated(sqlite_store, ["bm25"], folder, bm25_language="de")["models"]
    (english,) = evaluated(sqlite_store, ["bm25"], folder)["models"]
    assert german["metrics"]["mrr"] == 1.0 and english["metrics"]["mrr"] < 1.0
    assert german["record"]["applied"]["document"][0]["tokens"] == ["bruck"]


def test_whether_a_model_was_trained_here_is_recorded(sqlite_store: Store, tmp_path: Path) -> None:
    """Not by a checkpoint in this store: one that was copied from elsewhere has none."""
    trained = train(claim(sqlite_store, config_for(tmp_path, max_steps="1")))["path"]
    copied = shutil.copytree(trained, tmp_path / "copied")
    models = [str(copied), "tiny-random-bert", "bm25"]
    result = evaluated(sqlite_store, models, write_beir(tmp_path / "beir"))
    release = json.loads((tmp_path / "release" / "release.json").read_text())
    known = [each["record"]["model"]["trained_on"] for each in result["models"]]
    assert known == [release["content_sha256"], None, None]
    with sqlite_store.read() as session:
        stored = {each.model: each for each in list_evaluations(session)}
        assert stored[str(copied)].checkpoint_id is None
        assert [is_trained(stored[model]) for model in models] == [True, False, False]
