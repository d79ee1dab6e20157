"""FollowIR: judgments under an original and under a changed instruction.

A folder has `queries.jsonl` {_id, text, instruction_og, instruction_changed}, `corpus.jsonl` {_id,
title, text}, `top_ranked.jsonl` {qid, pid}, `qrels_og/test.tsv` and `qrels_changed/test.tsv`
{query-id, corpus-id, score}. FollowIR's `score` is the mean of Robust04 MAP@1000, News21 nDCG@5 and
Core17 MAP@1000, each under the original instruction.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import fmean

from db.errors import BadInput
from trainer.evaluate.benchmarks import Benchmark, Question
from trainer.suites.reading import corpus_of, judgments_of, queries_of, read_rows
from trainer.suites.suite import Suite

ORIGINAL, CHANGED = "-og", "-changed"
SCORES = {"robust04": "map@1000", "news21": "ndcg@5", "core17": "map@1000"}


def read_followir(folder: Path) -> Benchmark:
    """The benchmark of a FollowIR folder. Raises BadInput with file and line."""
    corpus = corpus_of(folder)
    judged = {
        suffix: judgments_of(folder / part / "test.tsv", corpus)
        for suffix, part in ((ORIGINAL, "qrels_og"), (CHANGED, "qrels_changed"))
    }
    questions: dict[str, Question] = {}
    rows = queries_of(folder)
    for place, row in rows:
        for suffix, key in ((ORIGINAL, "instruction_og"), (CHANGED, "instruction_changed")):
            if not isinstance(row.get(key), str):
                raise BadInput(
                    f"{place} has no `{key}`",
                    "take the file as it was published",
                    code="field_missing",
                )
            questions[row["_id"] + suffix] = Question(row[key], row["text"])
    ids = [row["_id"] for _, row in rows]
    candidates: dict[str, list[str]] = {}
    for place, row in read_rows(folder / "top_ranked.jsonl", ("qid", "pid")):
        if row["pid"] not in corpus:
            raise BadInput(
                f"{place}: no document {row['pid']!r} in corpus.jsonl",
                "Get the benchmark's files again",
                code="document_unknown",
            )
        for suffix in (ORIGINAL, CHANGED):
            candidates.setdefault(row["qid"] + suffix, []).append(row["pid"])
    changed_documents = {
        query: sorted(
            document
            for document in judged[ORIGINAL].get(query, {}).keys()
            | judged[CHANGED].get(query, {}).keys()
            if (judged[ORIGINAL].get(query, {}).get(document, 0) > 0)
            != (judged[CHANGED].get(query, {}).get(document, 0) > 0)
        )
        for query in ids
    }
    return Benchmark(
        name=folder.name,
        kind="FollowIR",
        originals_count=True,
        convention="the original instruction is scored against qrels_og, the changed one against "
        "qrels_changed (mteb 2; mteb 1 scores both against the changed ones), reranking "
        "top_ranked; p-MRR over documents whose relevance changed; ties by score, then id, both "
        "descending",
        questions=questions,
        corpus=corpus,
        judgments={
            query + suffix: grades
            for suffix, judgments in judged.items()
            for query, grades in judgments.items()
            if query + suffix in questions
        },
        original={query: query + ORIGINAL for query in ids},
        changed={query: query + CHANGED for query in ids},
        changed_documents=changed_documents,
        candidates=candidates,
    )


def followir_score(
    benchmarks: Sequence[Benchmark], metrics: Sequence[Mapping[str, float | None]]
) -> dict[str, float]:
    """{"followir score": …} where all three sets have their own measure, else {}."""
    found: dict[str, float] = {}
    for benchmark, values in zip(benchmarks, metrics, strict=True):
        for collection, measure in SCORES.items():
            value = values.get(measure)
            is_it = benchmark.kind == "FollowIR" and collection in benchmark.name.lower()
            if is_it and value is not None:
                found[collection] = value
    return {"followir score": fmean(found.values())} if found.keys() == SCORES.keys() else {}


SUITE = Suite(
    name="followir",
    label="FollowIR",
    layout="queries.jsonl, corpus.jsonl, top_ranked.jsonl, qrels_og/test.tsv and "
    "qrels_changed/test.tsv",
    is_layout=lambda folder: (folder / "qrels_og").exists() or (folder / "qrels_changed").exists(),
    read=lambda folder: [read_followir(folder)],
    repositories={
        "Robust04": "jhu-clsp/robust04-instructions",
        "News21": "jhu-clsp/news21-instructions",
        "Core17": "jhu-clsp/core17-instructions",
    },
    further_means=followir_score,
)
