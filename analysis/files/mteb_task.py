"""Held-out groups of InF Studio as a task of mteb: `python mteb_task.py [MODEL]`.

This file lies in a checkpoint (its held-out groups are `held_out.jsonl` next to it) or in a release
that holds out a split of its own. It needs mteb and sentence-transformers and nothing else of ours:

    pip install mteb sentence-transformers

A group is a question for each scenario of its shape (InF-IR's three, or those that `release.json`
names), with one right passage, among the passages of all groups: (I+,Q+) for P+, (I-,Q+) for P1-,
(I+,Q-) for P2-. Groups with lists of negatives have Promptriever's columns; with one scenario, a
query without its instruction is a question, too. Main score: nDCG@10; `strict` and the two flips,
where the shape has them, are shares of groups. MODEL: a folder or a name, by default the checkpoint
in this folder; instruction and query become one text as its `inf_embed.json` says, "{instruction}
{query}" where it has none. Weights are read in float32, or as stored where passages are the base
model's.
"""

import argparse
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import mteb
import numpy as np
from datasets import Dataset
from mteb.abstasks.retrieval import AbsTaskRetrieval
from mteb.abstasks.task_metadata import TaskMetadata
from mteb.models.model_meta import ModelMeta
from sentence_transformers import SentenceTransformer

HERE = Path(__file__).parent
GROUPS = "held_out.jsonl"
FIELDS = ("instruction", "query", "passage")
INF_IR: dict[str, Any] = {  # its texts by the names of their columns
    "scenarios": [
        {"role": role, "instruction": instruction, "query": query, "passage": passage}
        for role, instruction, query, passage in (
            ("positive", "instruction_positive", "query_positive", "document_positive"),
            (
                "instruction_negative",
                "instruction_negative",
                "query_positive",
                "hard_negative_document_1",
            ),
            (
                "query_negative",
                "instruction_positive",
                "query_negative",
                "hard_negative_document_2",
            ),
        )
    ],
}
INSTRUCTED = "instructed"


class Question(NamedTuple):
    """An instruction (may be empty) and a query, and the passage that is right for them.

    below: further passages of the group that are not; apart: those of which its claims say nothing.
    """

    instruction: str
    query: str
    right: str
    below: Sequence[str] = ()
    apart: Sequence[str] = ()


def shape_of(folder: Path) -> dict[str, Any]:
    """The shape that a release's manifest names; InF-IR's without one."""
    file = folder / "release.json"
    manifest = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
    return dict(manifest.get("shape") or INF_IR)


def groups_of(folder: Path, shape: Mapping[str, Any]) -> list[list[Question]]:
    """The held-out groups of a checkpoint, or the kept ones that a release holds out."""
    own = folder / GROUPS
    if own.is_file():
        rows = [json.loads(line) for line in own.read_text(encoding="utf-8").splitlines()]
    else:
        rows = [row for file in sorted((folder / "data").iterdir()) for row in _held_out(file)]
    kept = (
        row
        for row in rows
        if row.get("verdict", "kept") == "kept" or row.get("review") == "approve"
    )
    if not shape.get("lists"):
        column = {text["sign"]: text["column"] for text in shape.get("texts", ())}
        places = [[column.get(of[f], of[f]) for f in FIELDS] for of in shape["scenarios"]]
        return [[Question(*(str(row[name]) for name in of)) for of in places] for row in kept]
    if len(shape["scenarios"]) == 1:
        return [
            [Question(row["only_instruction"], row["only_query"], right, _texts(row, "negative"))]
            for row in kept
            for right in _texts(row, "positive")
        ]
    return [_of_rows(list(rows)) for _, rows in groupby(kept, lambda row: row["group_id"])]


def _of_rows(rows: Sequence[Mapping[str, Any]]) -> list[Question]:
    """A group of several scenarios: the rows with an instruction; those without one have all that
    answers their query."""
    instructed = [row for row in rows if row["has_instruction"]]
    answers = {
        row["only_query"]: _texts(row, "positive") for row in rows if not row["has_instruction"]
    }
    rights = [_texts(row, "positive")[0] for row in instructed]
    every = (
        text for row in rows for kind in ("positive", "negative") for text in _texts(row, kind)
    )
    others = [text for text in dict.fromkeys(every) if text not in rights]
    found = []
    for row, right in zip(instructed, rights, strict=True):
        instruction, query = row["only_instruction"], row["only_query"]
        open_ones = {*answers[query]}.difference(rights, _texts(row, "negative"))
        below = [text for text in others if text not in open_ones]
        apart = [text for text in others if text in open_ones]
        found.append(Question(instruction, query, right, below, apart))
    return found


def _texts(row: Mapping[str, Any], kind: str) -> list[str]:
    return [str(passage["text"]) for passage in row[f"{kind}_passages"]]


def _held_out(file: Path) -> Iterator[dict[str, Any]]:
    split = file.name.split("-")[0]
    if not (split.endswith("_held_out") or split == "test"):
        return
    if file.suffix == ".jsonl":
        yield from map(json.loads, file.read_text(encoding="utf-8").splitlines())
    elif file.suffix == ".parquet":
        yield from Dataset.from_parquet(str(file))


class HeldOutGroups(AbsTaskRetrieval):
    """The groups of a folder, a question for each scenario, over the passages of all."""

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
        shape = shape_of(self.folder)
        self.flips = _flips(shape["scenarios"])
        roles = [str(of["role"]).replace("_", "-") for of in shape["scenarios"]]
        self.groups = [
            {f"g{number:06d}-{role}": of for role, of in zip(roles, group, strict=True)}
            for number, group in enumerate(groups_of(self.folder, shape))
        ]
        by_name = {name: of for group in self.groups for name, of in group.items()}
        if not by_name:
            raise SystemExit(f"{self.folder} holds no held-out groups")
        texts = [of.right for of in by_name.values()]  # before all that is never right
        texts += (text for of in by_name.values() for text in (*of.below, *of.apart))
        self.places = {text: f"d{n:06d}" for n, text in enumerate(dict.fromkeys(texts))}
        right: dict[tuple[str, str], dict[str, int]] = {}
        for of in by_name.values():
            right.setdefault((of.instruction, of.query), {})[self.places[of.right]] = 1
        questions = [
            {"id": name, "text": of.query, "instruction": of.instruction}
            for name, of in by_name.items()
        ]
        corpus = [{"id": name, "text": text} for text, name in self.places.items()]
        self._top_k = max(self._top_k, len(corpus))  # the flips need the score of every passage
        ranked = None
        if any(of.apart for of in by_name.values()):
            ranked = {
                name: [place for text, place in self.places.items() if text not in of.apart]
                for name, of in by_name.items()
            }
        self.dataset = {
            "default": {
                "test": {
                    "corpus": Dataset.from_list(corpus),
                    "queries": Dataset.from_list(questions),
                    "relevant_docs": {
                        name: right[of.instruction, of.query] for name, of in by_name.items()
                    },
                    "top_ranked": ranked,
                }
            }
        }
        self.data_loaded = True

    def task_specific_scores(
        self, scores: Any, qrels: Any, results: Any, hf_split: str, hf_subset: str
    ) -> dict[str, float]:
        """`strict`, `instruction_flip`, `query_flip`: equal scores count against the model."""
        found = []
        for group in self.groups if len(self.groups[0]) > 1 else ():
            rights = [of.right for of in group.values()]
            s = [
                [results[name][self.places[text]] for text in (*rights, *of.below)]
                for name, of in group.items()
            ]
            strict = all(of[k] > x for k, of in enumerate(s) for j, x in enumerate(of) if j != k)
            flips = {
                flip: s[0][0] > s[0][k] and s[k][k] > s[k][0] for flip, k in self.flips.items()
            }
            found.append({"strict": strict, **flips})
        return {name: float(np.mean([of[name] for of in found])) for name in (found or [{}])[0]}


def _flips(scenarios: Sequence[Mapping[str, str]]) -> dict[str, int]:
    """The place of the first scenario that alters the instruction, or the query, alone."""
    first, found = scenarios[0], dict[str, int]()
    for flip, same, unlike in (
        ("instruction_flip", "query", "instruction"),
        ("query_flip", "instruction", "query"),
    ):
        for place, of in reversed(list(enumerate(scenarios))):
            if of[same] == first[same] and of[unlike] != first[unlike]:
                found[flip] = place
    return found


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
        pairs = [
            pair
            for batch in inputs
            for pair in zip(batch["instruction"], batch["query"], strict=True)
        ]
        texts = [self.template.format(instruction=i, query=q) if i else q for i, q in pairs]
        # passages and plain queries are the base model's
        is_instructed = np.array([[self.has_door and bool(i)] for i, _ in pairs])
        if not is_instructed.any():
            return np.asarray(self.model.encode_query(texts))
        encode: Any = self.model.encode
        instructed = np.asarray(encode(texts, task=INSTRUCTED, prompt_name=INSTRUCTED))
        if is_instructed.all():
            return instructed
        return np.where(is_instructed, instructed, self.model.encode_query(texts))

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
    print(json.dumps({name: found[name] for name in shown if name in found}))  # noqa: T201


if __name__ == "__main__":
    main()
