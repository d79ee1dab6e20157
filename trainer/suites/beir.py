"""BEIR, and InstructIR as a BEIR folder in which a query has several instructions.

A folder has `queries.jsonl` {_id, text, and `instruction` where there is one}, `corpus.jsonl` and
`qrels/test.tsv`. InstructIR asks one query under several instructions: equal query texts.
"""

from pathlib import Path

from db.errors import BadInput
from trainer.evaluate.benchmarks import Benchmark, Question
from trainer.suites.reading import corpus_of, judgments_of, queries_of
from trainer.suites.suite import Suite


def read_beir(folder: Path) -> Benchmark:
    """The benchmark of a BEIR folder. Raises BadInput with file and line."""
    corpus = corpus_of(folder)
    questions = {
        row["_id"]: Question(str(row.get("instruction") or ""), row["text"])
        for _, row in queries_of(folder)
    }
    judgments = judgments_of(folder / "qrels" / "test.tsv", corpus)
    if unknown := sorted(judgments.keys() - questions.keys()):
        raise BadInput(
            f"{folder / 'qrels' / 'test.tsv'}: no query {unknown[0]!r} in queries.jsonl",
            "Get the benchmark's files again",
            code="query_unknown",
        )
    return retrieval_benchmark(folder.name, questions, corpus, judgments, "qrels/test.tsv")


def retrieval_benchmark(
    name: str,
    questions: dict[str, Question],
    corpus: dict[str, str],
    judgments: dict[str, dict[str, int]],
    judged: str,
    candidates: dict[str, list[str]] | None = None,
) -> Benchmark:
    """The judged questions over a corpus, or over `candidates`; InstructIR where they are so.

    judged: where the judgments stand, for the convention.
    """
    judged_questions = {query: questions[query] for query in judgments}
    same_query = _instructions_of_a_query(judged_questions)
    ranked = "a query's top_ranked documents are" if candidates else "the whole corpus is"
    robustness = (
        "; robustness@10: the lowest nDCG@10 over a query's instructions, mean over queries"
    )
    return Benchmark(
        name=name,
        kind="InstructIR" if same_query else "BEIR",
        convention=f"{ranked} ranked; queries of {judged}; ties by score, then id, "
        "both descending" + (robustness if same_query else ""),
        questions=judged_questions,
        corpus=corpus,
        judgments=judgments,
        candidates=candidates or {},
        same_query=same_query,
    )


def _instructions_of_a_query(questions: dict[str, Question]) -> dict[str, str]:
    """{question: the question of the same query with the smallest id}; by the texts.

    Empty where an instruction is missing, or no query has a second instruction.
    """
    first: dict[str, str] = {}
    for name in sorted(questions):  # the order of lines is no part of the content
        first.setdefault(questions[name].query, name)
    several = len(first) < len(questions)
    if not (several and all(one.instruction for one in questions.values())):
        return {}
    return {name: first[question.query] for name, question in questions.items()}


SUITE = Suite(
    name="beir",
    label="BEIR",
    layout="queries.jsonl, corpus.jsonl and qrels/test.tsv",
    is_layout=lambda folder: (folder / "qrels").exists(),
    read=lambda folder: [read_beir(folder)],
)
