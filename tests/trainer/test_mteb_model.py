"""The same model on the same files: our numbers are mteb's."""

import random
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer
from trainer_folders import write_jsonl, write_judgments
from trainer_jobs import claim, config_for

from db.errors import BadInput
from db.store.store import Store
from trainer.evaluate.benchmarks import Benchmark
from trainer.evaluate.job import evaluate
from trainer.launch.here import train
from trainer.suites.followir import CHANGED, ORIGINAL
from trainer.suites.registry import read_benchmark

pytestmark = pytest.mark.long


def write_larger_followir(folder: Path) -> Path:
    """Eight queries over forty documents, a third of the right ones changed."""
    draw = random.Random(10)  # no near ties: see `least_gap`
    words = [
        "river",
        "bridge",
        "stone",
        "oak",
        "iron",
        "arch",
        "builder",
        "metre",
        "bank",
        "ford",
        "wheel",
        "mill",
        "lock",
    ]
    queries = [f"q{number}" for number in range(8)]
    documents = [f"d{number:02d}" for number in range(40)]
    write_jsonl(
        folder / "queries.jsonl",
        [
            {
                "_id": query,
                "text": " ".join(draw.sample(words, 3)),
                "instruction_og": "Any passage on " + draw.choice(words),
                "instruction_changed": "No passage on " + draw.choice(words),
            }
            for query in queries
        ],
    )
    write_jsonl(
        folder / "corpus.jsonl",
        [
            {"_id": name, "title": draw.choice(words), "text": " ".join(draw.choices(words, k=9))}
            for name in documents
        ],
    )
    listed = {query: draw.sample(documents, 25) for query in queries}
    write_jsonl(
        folder / "top_ranked.jsonl",
        [{"qid": query, "pid": name} for query in queries for name in listed[query]],
    )
    right = [(query, name) for query in queries for name in draw.sample(listed[query], 6)]
    write_judgments(folder / "qrels_og" / "test.tsv", [(q, d, 1) for q, d in right])
    write_judgments(
        folder / "qrels_changed" / "test.tsv",
        [(q, d, int(number % 3 > 0)) for number, (q, d) in enumerate(right)],
    )
    return folder


def least_gap(benchmark: Benchmark, folder: str, template: str) -> float:
    """The least difference between two documents' scores for one question."""
    model = SentenceTransformer(folder)
    questions = [
        template.format(query=each.query, instruction=each.instruction)
        for each in benchmark.questions.values()
    ]
    of_questions = model.encode_query(questions, normalize_embeddings=True)
    documents = model.encode_document(list(benchmark.corpus.values()), normalize_embeddings=True)
    return float(np.diff(np.sort(of_questions @ documents.T, axis=1), axis=1).min())


def mteb_scores(benchmark: Benchmark, model: object) -> dict[str, float]:
    """mteb's own scores of the model on the same data, from memory instead of the hub."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import mteb
        from datasets import Dataset
        from mteb._evaluators.retrieval_metrics import evaluate_p_mrr_change
        from mteb.tasks.instruction_reranking.eng.news21_instruction_retrieval import (
            News21InstructionRetrieval,
        )

        class LocalTask(News21InstructionRetrieval):
            def load_data(self, *_: object, **__: object) -> None:
                names = list(benchmark.questions)
                questions = [benchmark.questions[name] for name in names]
                self.dataset = {
                    "default": {
                        "test": {
                            "corpus": Dataset.from_dict(
                                {
                                    "id": list(benchmark.corpus),
                                    "text": list(benchmark.corpus.values()),
                                }
                            ),
                            "queries": Dataset.from_dict(
                                {
                                    "id": names,
                                    "text": [question.query for question in questions],
                                    "instruction": [q.instruction for q in questions],
                                }
                            ),
                            "relevant_docs": benchmark.judgments,
                            "top_ranked": benchmark.candidates,
                        }
                    }
                }
                self.data_loaded = True

            def task_specific_scores(  # type: ignore[override]
                self, scores: object, qrels: object, results: object, **_: object
            ) -> object:
                return evaluate_p_mrr_change(
                    qrels, results, benchmark.changed_documents, self.k_values
                )

        found = mteb.evaluate(
            model, LocalTask(), cache=None, overwrite_strategy="always", show_progress_bar=False
        )
    scores: dict[str, float] = found.task_results[0].scores["test"][0]
    return scores


@pytest.mark.long
def test_our_numbers_on_a_followir_folder_are_mtebs(sqlite_store: Store, tmp_path: Path) -> None:
    from trainer.evaluate.mteb_model import MtebModel

    given = {"query_prefix": "query: ", "template": "{query} ({instruction})"}
    given |= {"learning_rate": "1e-2"}  # spreads the scores of random weights
    config = config_for(tmp_path, max_steps="2", held_out="0", **given)
    out = train(claim(sqlite_store, config))["path"]
    folder = write_larger_followir(tmp_path / "News21")
    result = evaluate(
        claim(
            sqlite_store,
            {"models": [out], "benchmark": str(folder), "with_base": False},
            kind="evaluate",
        )
    )
    ours = result["models"][0]["metrics"]
    # Else the order of two documents would hang on the order in which floats are added.
    assert least_gap(read_benchmark(folder), out, given["template"]) > 1e-6
    theirs = mteb_scores(read_benchmark(folder), MtebModel(out))
    assert ours["p-mrr"] == pytest.approx(theirs["p-MRR"], abs=1e-9)
    # mteb rounds these to five digits
    for part, prefix in (("og", ""), ("changed", "changed:")):
        for name, key in (("ndcg@5", "ndcg_at_5"), ("map@1000", "map_at_1000")):
            assert ours[prefix + name] == pytest.approx(theirs[part][key], abs=1e-5), name
    assert {ORIGINAL, CHANGED} == {"-og", "-changed"}


@pytest.mark.parametrize("given", ["prompt_type", "prompt_name"])
def test_prefixes_are_applied_under_both_names_of_the_role(given: str, tmp_path: Path) -> None:
    """A real project's prefixes were left out silently when mteb renamed the argument."""
    from trainer.evaluate.mteb_model import MtebModel
    from trainer.model.backbone import load_model

    plain = load_model("tiny-random-bert")
    plain.prompts = {"query": "query: ", "document": "passage: "}
    plain.save(str(tmp_path / "model"))
    model = MtebModel(str(tmp_path / "model"))
    task: dict[str, Any] = {
        "task_metadata": SimpleNamespace(type="Retrieval"),
        "hf_split": "test",
        "hf_subset": "default",
    }
    batch = [{"text": ["river"], "query": ["river"]}]
    for role, prefix in (("query", "query: "), ("document", "passage: ")):
        found = model.encode(batch, **task, **{given: role})
        wanted = model.model.encode([prefix + "river"], prompt="", normalize_embeddings=True)
        assert found == pytest.approx(wanted, abs=1e-6)
    with pytest.raises(BadInput, match="neither prompt_type nor prompt_name"):
        model.encode(batch, **task)
    model.encode(batch, **(task | {"task_metadata": SimpleNamespace(type="STS")}))
