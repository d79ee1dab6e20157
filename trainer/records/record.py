"""The record of an evaluation: everything that a comparison with it depends on.

Note: a model behind an API has neither weights nor revision here; its server and the
name it gives the model stand instead.
"""

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from analysis.embed.embedding import model_identity
from analysis.embed.model_hash import hub_revision, model_sha256
from trainer.evaluate.benchmarks import Benchmark
from trainer.evaluate.reranking import plain_name
from trainer.records.likeness import FORMAT, PARTS

LIBRARIES = (
    "inf-studio",
    "torch",
    "transformers",
    "sentence-transformers",
    "tokenizers",
    "numpy",
    "pytrec-eval-terrier",
    "bm25s",
    "PyStemmer",
)


def model_record(name: str, *, trained_on: str | None = None) -> dict[str, Any]:
    """What identifies a model: its name, the sha256 of its weights, its revision on the Hub.

    trained_on: the content sha256 of the release that it was trained on with InF Studio; None for
    any other model, which is a base here.
    """
    plain = plain_name(name)
    return {
        "name": name,
        "identity": model_identity(plain),
        "weights_sha256": model_sha256(plain),
        "revision": hub_revision(plain),
        "trained_on": trained_on,
    }


def run_record(name: str, sha256: str) -> dict[str, Any]:
    """The same of a TREC run file, by the content that was read; what made it is unknown."""
    identity = f"trec:sha256 {sha256}"
    return {"name": name, "identity": identity, "weights_sha256": None, "revision": None}


def library_versions() -> dict[str, str]:
    """{name: version} of Python and of the installed libraries that scores depend on."""
    found = {"python": platform.python_version()}
    for name in LIBRARIES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def evaluation_record(
    benchmark: Benchmark,
    content: Mapping[str, Any],
    *,
    model: Mapping[str, Any],
    first_stage: int | None,
    depth: int,
    template: str | None,
    prompts: Mapping[str, str | None],
    given_prefixes: Mapping[str, str] | None,
    chat_template: str | None,
    applied: Mapping[str, Any],
    paraphrases: Mapping[str, Sequence[str]] | None = None,
    bm25: str | None = None,
    held_out: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """The record of one model on one benchmark.

    content: `benchmark_content` of it. model: `model_record` or `run_record`. first_stage: how many
    of BM25's best a reranker scored, None for a model that scores every document. depth: how many
    documents of a ranking count.
    given_prefixes: those of this evaluation; None for a model that has its own. paraphrases: those
    of instructions that stability was measured with, None where it was not. bm25: the convention of
    BM25 where it is the model or chose a reranker's candidates. held_out: of held-out groups
    (`trainer.records.circular`).
    """
    documents = len(benchmark.corpus)
    if benchmark.candidates:
        sizes = sorted(len(set(of)) for of in benchmark.candidates.values())
        listed = f"{sizes[0]:,}" if sizes[0] == sizes[-1] else f"{sizes[0]:,} to {sizes[-1]:,}"
        pool = f"{listed} listed candidates per query"
    elif first_stage is not None and first_stage < documents:
        pool = f"BM25's best {first_stage:,} of {documents:,} documents"
    else:
        pool = f"all {documents:,} documents"
    return {
        "format": FORMAT,
        "kind": benchmark.kind,
        "instructions": has_instructions(benchmark),
        "benchmark": dict(content),
        "downloads": dict(benchmark.downloads),
        "pool": pool,
        "depth": min(depth, documents),
        "convention": benchmark.convention,
        "bm25": bm25,
        "model": dict(model),
        "template": template,
        "prompts": dict(prompts),
        "given_prefixes": None if given_prefixes is None else dict(given_prefixes),
        "chat_template": chat_template,
        "paraphrases": None
        if paraphrases is None
        else _sha256(sorted((name, sorted(of)) for name, of in paraphrases.items())),
        "applied": dict(applied),
        "libraries": library_versions(),
        "held_out": None if held_out is None else dict(held_out),
    }


def has_instructions(benchmark: Benchmark) -> bool:
    """Whether any query of a benchmark has an instruction; if not it is ordinary retrieval."""
    return any(question.instruction for question in benchmark.questions.values())


def content_together(contents: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The content of several benchmarks as one, in their order; of one alone its own."""
    if len(contents) == 1:
        return dict(contents[0])
    together = {
        part: _sha256([content[part] for content in contents]) for part in ("sha256", *PARTS)
    }
    counts = {
        name: sum(content[name] for content in contents) for name in ("documents", "questions")
    }
    left_out = [query for content in contents for query in content["without_relevant"]]
    return {**together, **counts, "without_relevant": left_out}


def mean_record(records: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The record of a suite's mean: its sets' contents and conditions together, in their order."""
    joined = {
        name: "; ".join(dict.fromkeys(str(record[name]) for record in records))
        for name in ("pool", "depth", "convention")
    }
    content = content_together([record["benchmark"] for record in records])
    by_bm25 = dict.fromkeys(str(record["bm25"]) for record in records if record["bm25"])
    return {
        **records[0],
        "benchmark": content,
        "downloads": {
            name: commit
            for record in records
            for name, commit in record.get("downloads", {}).items()
        },
        **joined,
        "bm25": "; ".join(by_bm25) if by_bm25 else None,
    }


def _sha256(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode()).hexdigest()
