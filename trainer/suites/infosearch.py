"""InfoSearch: a query alone or with its original instruction, instructed, and reversed.

A folder has `queries.jsonl` {_id, text, instruction_og (may be empty), instruction_changed,
instruction_reversed}, `corpus.jsonl` {_id, title, text} and `qrels_og/test.tsv`,
`qrels_changed/test.tsv`, `qrels_reversed/test.tsv`. Measures (arXiv 2410.23841): SICR and WISE over
the documents that stay relevant, p-MRR over those that the instruction takes away.
"""

from pathlib import Path

from db.errors import BadInput
from trainer.evaluate.benchmarks import Benchmark, Question
from trainer.suites.followir import CHANGED, ORIGINAL
from trainer.suites.reading import corpus_of, judgments_of, queries_of
from trainer.suites.suite import Suite

REVERSED = "-reversed"
FORMS = {ORIGINAL: "og", CHANGED: "changed", REVERSED: "reversed"}
DIMENSIONS = ("Audience", "Keyword", "Format", "Language", "Length", "Source")


def read_infosearch(folder: Path) -> Benchmark:
    """The benchmark of one dimension. Raises BadInput with file and line."""
    corpus = corpus_of(folder)
    judged = {
        suffix: judgments_of(folder / f"qrels_{part}" / "test.tsv", corpus)
        for suffix, part in FORMS.items()
    }
    questions: dict[str, Question] = {}
    ids: list[str] = []
    for place, row in queries_of(folder):
        if row["_id"] not in judged[ORIGINAL]:
            continue  # as the authors: a query without judgments is not asked
        ids.append(row["_id"])
        for suffix, part in FORMS.items():
            instruction = row.get(f"instruction_{part}")
            if instruction is None and suffix == ORIGINAL:
                instruction = ""
            if not isinstance(instruction, str):
                raise BadInput(
                    f"{place} has no `instruction_{part}`",
                    "take the file as it was published",
                    code="instruction_missing",
                )
            questions[row["_id"] + suffix] = Question(instruction, row["text"])
    if unknown := sorted(judged[ORIGINAL].keys() - set(ids)):
        raise BadInput(
            f"{folder}/qrels_og/test.tsv: no query {unknown[0]!r} in queries.jsonl",
            "Get the benchmark's files again",
            code="query_unknown",
        )
    kept: dict[str, list[str]] = {}
    removed: dict[str, list[str]] = {}
    for query in ids:
        right = [name for name, grade in judged[ORIGINAL][query].items() if grade > 0]
        still = judged[CHANGED].get(query, {})
        kept[query] = sorted(name for name in right if still.get(name, 0) > 0)
        removed[query] = sorted(name for name in right if still.get(name, 0) <= 0)
    return Benchmark(
        name=folder.name,
        kind="InfoSearch",
        originals_count=True,
        convention="the whole corpus is ranked under the original, the changed and the reversed "
        "instruction, the best 1,000 count; SICR and WISE over documents that stay relevant, p-MRR "
        "over those that do not; ties by score, then id, both descending",
        questions=questions,
        corpus=corpus,
        judgments={
            query + suffix: found[query]
            for suffix, found in judged.items()
            for query in ids
            if query in found
        },
        original={query: query + ORIGINAL for query in ids},
        changed={query: query + CHANGED for query in ids},
        reversed={query: query + REVERSED for query in ids},
        changed_documents=removed,
        kept=kept,
    )


SUITE = Suite(
    name="infosearch",
    label="InfoSearch",
    layout="queries.jsonl, corpus.jsonl, qrels_og/, qrels_changed/ and qrels_reversed/test.tsv",
    is_layout=lambda folder: (folder / "qrels_reversed").exists(),
    read=lambda folder: [read_infosearch(folder)],
    repositories={
        name: f"jianqunZ/{'Clarity' if name == 'Keyword' else name}-v1" for name in DIMENSIONS
    },
)
