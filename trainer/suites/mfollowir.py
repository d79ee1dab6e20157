"""mFollowIR: FollowIR over news in Persian, Russian and Chinese, as mteb publishes it.

A dataset whose card names for every language its parts `corpus-LANG`, `queries-LANG`,
`instruction-LANG`, `default-LANG` (the judgments), `top_ranked-LANG` and `qrel_diff-LANG`:
{query-id, corpus-ids} of the documents whose relevance changes. For a query of `qrel_diff`, the
other parts hold its original and its changed form, called `ID-og` and `ID-changed`. The
cross-lingual dataset is laid out alike, with English queries.
"""

from pathlib import Path

from analysis.text.bm25 import NO_LANGUAGE
from db.errors import BadInput
from trainer.evaluate.benchmarks import Benchmark, Question
from trainer.suites.followir import CHANGED, ORIGINAL
from trainer.suites.mteb_folders import (
    CARD,
    Parts,
    check_document,
    configurations_of,
    grade_of,
    id_of,
    rows_of_part,
    splits_of,
)
from trainer.suites.reading import by_id, titled_text
from trainer.suites.suite import Suite

# mteb's codes of the documents' language; Persian and Chinese have no stemmer in bm25s.
BM25_LANGUAGES = {"rus": "ru", "eng": "en"}
PARTS = ("corpus", "queries", "instruction", "default", "top_ranked", "qrel_diff")


def parts_by_language(folder: Path) -> dict[str, Parts]:
    """{language: {part: {split: paths}}} as the card says; empty for another layout."""
    found: dict[str, Parts] = {}
    for config in configurations_of(folder / CARD):
        name = str(config.get("config_name")) if isinstance(config, dict) else ""
        part, dash, language = name.partition("-")
        splits = splits_of(config.get("data_files")) if dash and part in PARTS else {}
        if splits:
            found.setdefault(language, {})[part] = splits
    return {
        language: parts
        for language, parts in sorted(found.items())
        if {"corpus", "queries", "qrel_diff"} <= parts.keys()
    }


def read_mfollowir(folder: Path) -> list[Benchmark]:
    """A benchmark for each language. Raises BadInput with file and line."""
    return [
        _read_language(folder, language, parts)
        for language, parts in parts_by_language(folder).items()
    ]


def _read_language(folder: Path, language: str, parts: Parts) -> Benchmark:
    if missing := [part for part in PARTS if part not in parts]:
        raise BadInput(
            f"{folder / CARD} names no part {missing[0]}-{language}",
            "Get the benchmark's files again",
            code="benchmark_part_missing",
        )
    documents = rows_of_part(folder, parts["corpus"], ("text",))
    corpus = by_id(
        "document", ((place, id_of(place, row), titled_text(row)) for place, row in documents)
    )
    texts = by_id(
        "query",
        (
            (place, id_of(place, row), str(row["text"]))
            for place, row in rows_of_part(folder, parts["queries"], ("text",))
        ),
    )
    instructions = {
        str(row["query-id"]): str(row["instruction"])
        for _, row in rows_of_part(folder, parts["instruction"], ("query-id", "instruction"))
    }
    changed_documents = {}
    for place, row in rows_of_part(folder, parts["qrel_diff"], ("query-id", "corpus-ids")):
        query = str(row["query-id"])
        changed_documents[query] = [str(document) for document in row["corpus-ids"]]
        for document in changed_documents[query]:
            check_document(place, document, corpus)
        for form in (query + ORIGINAL, query + CHANGED):
            if form not in texts or form not in instructions:
                raise BadInput(
                    f"{place}: no query and instruction {form!r} for query {query!r}",
                    "take the files as they were published",
                    code="query_form_missing",
                )
    forms = [query + suffix for query in changed_documents for suffix in (ORIGINAL, CHANGED)]
    judgments: dict[str, dict[str, int]] = {}
    for place, row in rows_of_part(folder, parts["default"], ("query-id", "corpus-id", "score")):
        check_document(place, str(row["corpus-id"]), corpus)
        of = judgments.setdefault(str(row["query-id"]), {})
        of[str(row["corpus-id"])] = grade_of(place, row["score"])
    candidates: dict[str, list[str]] = {}
    for place, row in rows_of_part(folder, parts["top_ranked"], ("query-id", "corpus-ids")):
        listed = [str(document) for document in row["corpus-ids"]]
        for document in listed:
            check_document(place, document, corpus)
        candidates[str(row["query-id"])] = listed
    for name, found in (("default", judgments), ("top_ranked", candidates)):
        if lacking := [form for form in forms if form not in found]:
            raise BadInput(
                f"{folder}: its part {name}-{language} has nothing for {lacking[0]!r}",
                "Get the benchmark's files again",
                code="benchmark_part_incomplete",
            )
    return Benchmark(
        name=f"{folder.name}/{language}",
        kind="mFollowIR",
        originals_count=True,
        convention="a separate list of top_ranked candidates for each query is reranked; the "
        "original instruction is scored (mFollowIR's measure is nDCG@20), the changed one is given "
        "with it; p-MRR over the documents of qrel_diff; ties by score, then id, both descending",
        questions={form: Question(instructions[form], texts[form]) for form in forms},
        corpus=corpus,
        judgments={form: judgments[form] for form in forms},
        original={query: query + ORIGINAL for query in changed_documents},
        changed={query: query + CHANGED for query in changed_documents},
        changed_documents=changed_documents,
        candidates={form: candidates[form] for form in forms},
        language=BM25_LANGUAGES.get(language.split("-")[-1], NO_LANGUAGE),
    )


SUITE = Suite(
    name="mfollowir",
    label="mFollowIR",
    layout="mteb's: a card whose configurations name corpus-LANG, queries-LANG, qrel_diff-LANG, …",
    is_layout=lambda folder: bool(parts_by_language(folder)),
    read=read_mfollowir,
    repositories={"": "jhu-clsp/mFollowIR-parquet-mteb"},
)
CROSS_LINGUAL = Suite(
    name="mfollowir-crosslingual",
    label="mFollowIR-CrossLingual",
    layout="as mFollowIR, with English queries",
    is_layout=SUITE.is_layout,
    read=read_mfollowir,
    repositories={"": "jhu-clsp/mFollowIR-cross-lingual-parquet-mteb"},
)
