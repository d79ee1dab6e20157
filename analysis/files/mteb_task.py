"""Held-out groups of InF Studio as a task of mteb: `python mteb_task.py [MODEL]`.

This file lies in a checkpoint (its held-out groups are `held_out.jsonl` next to it) or in a release
that holds out a split of its own. It needs mteb and sentence-transformers and nothing else of ours:

    pip install mteb sentence-transformers

A group is three questions, each with one right passage, among the passages of all groups: (I+,Q+)
for P+, (I-,Q+) for P1-, (I+,Q-) for P2-. Main score: nDCG@10; `strict` and the two flips are shares
of groups. MODEL: a folder or a name, by default the checkpoint in this folder; instruction and
query become one text as its `inf_embed.json` says, "{instruction} {query}" where it has none.
Weights are read in float32, or as stored where passages are the base model's.
"""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mteb
import numpy as np
from datasets import Dataset
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models.model_meta import ModelMeta
from sentence_transformers import SentenceTransformer

HERE = Path(__file__).parent
GROUPS = "held_out.jsonl"
SCENARIOS = {
    "positive": ("instruction_positive", "query_positive", "document_positive"),
    "instruction-negative": (
        "instruction_negative",
        "query_positive",
        "hard_negative_document_1",
    ),
    "query-negative": ("instruction_positive", "query_negative", "hard_negative_document_2"),
}
INSTRUCTED = "instructed"


def groups_of(folder: Path) -> list[dict[str, Any]]:
    """The held-out groups of a checkpoint, or the kept ones that a release holds out."""
    own = folder / GROUPS
    if own.is_file():
        return [json.loads(line) for line in own.read_text(encoding="utf-8").splitlines()]
    rows = [row for file in sorted((folder / "data").iterdir()) for row in _held_out(file)]
    return [
        row
        for row in rows
        if row.get("verdict", "kept") == "kept" or row.get("review") == "approve"
    ]


def _held_out(file: Path) -> Iterator[dict[str, Any]]:
    split = file.name.split("-")[0]
    if not (split.endswith("_held_out") or split == "test"):
        return
    if file.suffix == ".jsonl":
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())
    elif file.suffix == ".parquet":
        yield from Dataset.from_parquet(str(file))


class HeldOutGroups(AbsTaskRetrieval):
    """The groups of a folder, three questions each, over the passages of all."""

    metadata = TaskMetadata(
        name="InfHeldOutGroups",
        description="Groups of instructions, queries and passages that no training has seen.",
        reference=None,
        dataset={"path": "local", "revision": "local"},
        type="InstructionRetrieval",
        category="t2t",
        modalities=["text"],
        eval_splits=["test"],
        eval_langs=["eng-Latn"],
        main_score="ndcg_at_10",
        date=None,
        domains=None,
        task_subtypes=None,
        license=None,
        annotations_creators=None,
        dialect=None,
        sample_creation=None,
        bibtex_citation=None,
    )
    folder = HERE

    def load_data(self, *_: Any, **__: Any) -> None:
        """Questions, passages and judgments; equal texts are one passage."""
        if self.data_loaded:
            return
        places: dict[str, str] = {}
        questions: list[dict[str, str]] = []
        right: dict[tuple[str, str], dict[str, int]] = {}
        self.places: dict[str, tuple[list[str], list[str]]] = {}
        for number, row in enumerate(groups_of(self.folder)):
            names, documents = [], []
            for role, columns in SCENARIOS.items():
                instruction, query, passage = (str(row[column]) for column in columns)
                document = places.setdefault(passage, f"d{len(places):06d}")
                name = f"g{number:06d}-{role}"
                questions.append({"id": name, "text": query, "instruction": instruction})
                right.setdefault((instruction, query), {})[document] = 1
                names.append(name)
                documents.append(document)
            self.places[f"g{number:06d}"] = (names, documents)
        if not questions:
            raise SystemExit(f"{self.folder} holds no held-out groups")
        corpus = [{"id": name, "text": text} for text, name in places.items()]
        self._top_k = max(self._top_k, len(corpus))  # the flips need the score of every passage
        judgments = {each["id"]: right[each["instruction"], each["text"]] for each in questions}
        self.dataset = {
            "default": {
                "test": {
                    "corpus": Dataset.from_list(corpus),
                    "queries": Dataset.from_list(questions),
                    "relevant_docs": judgments,
                    "top_ranked": None,
                }
            }
        }
        self.data_loaded = True

    def task_specific_scores(
        self, scores: Any, qrels: Any, results: Any, hf_split: str, hf_subset: str
    ) -> dict[str, float]:
        """`strict`, `instruction_flip`, `query_flip`: equal scores count against the model."""
        found = []
        for names, documents in self.places.values():
            s = np.array([[results[name][document] for document in documents] for name in names])
            others = s + np.diag([-np.inf] * 3)
            found.append(
                (
                    bool((np.diag(s) > others.max(axis=1)).all()),
                    *(bool(s[0, 0] > s[0, k] and s[k, k] > s[k, 0]) for k in (1, 2)),
                )
            )
        means = np.mean(found, axis=0)
        measures = ("strict", "instruction_flip", "query_flip")
        return {name: float(value) for name, value in zip(measures, means, strict=True)}


class Model:
    """A model as mteb takes one: instruction and query joined by its template, float32."""

    def __init__(self, name: str, memory: dict[str, Any]) -> None:
        self.template = str(memory.get("template") or "{instruction} {query}")
        if memory.get("interaction") == "II":
            raise SystemExit(
                "Interaction II needs `inf evaluations`: sentence-transformers lacks it"
            )
        # float32, but where passages are a base model's: that is read as it is stored
        is_apart = (memory.get("settings") or {}).get("trained_side") == "query"
        options: dict[str, Any] = {} if is_apart else {"torch_dtype": "float32"}
        self.model = SentenceTransformer(name, model_kwargs=options)
        self.has_door = INSTRUCTED in self.model.prompts
        self.mteb_model_meta = ModelMeta.create_empty(
            {"name": f"local/{Path(name).name}", "revision": "local"}
        )

    def encode(self, inputs: Any, *, prompt_type: Any = None, **_: Any) -> np.ndarray:
        """Vectors of mteb's batches."""
        if str(getattr(prompt_type, "value", prompt_type)) != "query":
            texts = [text for batch in inputs for text in batch["text"]]
            return np.asarray(self.model.encode_document(texts))
        texts = [
            self.template.format(instruction=instruction, query=query)
            for batch in inputs
            for instruction, query in zip(batch["instruction"], batch["query"], strict=True)
        ]
        if self.has_door:  # passages and plain queries are the base model's
            encode: Any = self.model.encode
            return np.asarray(encode(texts, task=INSTRUCTED, prompt_name=INSTRUCTED))
        return np.asarray(self.model.encode_query(texts))

    def similarity(self, embeddings1: Any, embeddings2: Any) -> Any:
        """Every pair's score."""
        return self.model.similarity(embeddings1, embeddings2)

    def similarity_pairwise(self, embeddings1: Any, embeddings2: Any) -> Any:
        """The scores of corresponding pairs."""
        return self.model.similarity_pairwise(embeddings1, embeddings2)


def scores_of(model: Any, folder: Path = HERE) -> dict[str, float]:
    """mteb's scores of the model on the folder's held-out groups."""
    task = HeldOutGroups()
    task.folder = folder
    found = mteb.evaluate(
        model, task, cache=None, overwrite_strategy="always", show_progress_bar=False
    )
    return dict(found.task_results[0].scores["test"][0])


def main() -> None:
    """Print the scores of a model as JSON."""
    parser = argparse.ArgumentParser(description="Score a model on these held-out groups.")
    parser.add_argument("model", nargs="?", default=str(HERE))
    given = parser.parse_args()
    file = Path(given.model) / "inf_embed.json"
    memory = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    found = scores_of(Model(given.model, memory))
    shown = ("ndcg_at_10", "strict", "instruction_flip", "query_flip")
    print(json.dumps({name: found[name] for name in shown}))  # noqa: T201


if __name__ == "__main__":
    main()
