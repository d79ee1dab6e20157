"""What a model is scored on: held-out groups, and folders in FollowIR's and BEIR's formats.

A FollowIR folder has `queries.jsonl` {_id, text, instruction_og, instruction_changed},
`corpus.jsonl` {_id, title, text}, `top_ranked.jsonl` {qid, pid}, `qrels_og/test.tsv` and
`qrels_changed/test.tsv` {query-id, corpus-id, score}. A BEIR folder has `queries.jsonl`
{_id, text, and `instruction` where there is one}, `corpus.jsonl` and `qrels/test.tsv`.
InstructIR is a BEIR folder in which a query has several instructions (ids `17_0`, `17_1`, …). What
mteb publishes is read in `mteb_folders`.
"""

import csv
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from analysis.files.rows import read_rows as read_file_rows
from db.errors import BadInput, NotFound
from trainer.data.release_files import Group
from trainer.evaluate.following import GroupPlaces

Value = TypeVar("Value")


@dataclass(frozen=True)
class Question:
    """An instruction (may be empty) and a query."""

    instruction: str
    query: str


@dataclass(frozen=True)
class Benchmark:
    """Questions, a corpus, and which documents are right.

    Where instructions change, `original` and `changed` hold for each query id the two question
    ids, and `changed_documents` the documents whose relevance differs between the two.
    `candidates`: the documents a question is ranked over; all where it is not listed.
    `changed_candidates`: for a query the documents among which its changed ones are ranked for
    p-MRR, under both instructions; `groups`: where held-out groups stand.
    `excluded`: documents taken out of a question's ranking (BRIGHT). `same_query`: for every
    question the query it asks under one of several instructions (InstructIR; robustness@k).
    """

    name: str
    kind: str
    convention: str
    questions: dict[str, Question]
    corpus: dict[str, str]
    judgments: dict[str, dict[str, int]]
    original: dict[str, str] = field(default_factory=dict)
    changed: dict[str, str] = field(default_factory=dict)
    changed_documents: dict[str, list[str]] = field(default_factory=dict)
    candidates: dict[str, list[str]] = field(default_factory=dict)
    excluded: dict[str, list[str]] = field(default_factory=dict)
    same_query: dict[str, str] = field(default_factory=dict)
    changed_candidates: dict[str, list[str]] = field(default_factory=dict)
    groups: dict[str, GroupPlaces] = field(default_factory=dict)


ORIGINAL, CHANGED = "-og", "-changed"
ROLES = ("positive", "instruction-negative", "query-negative")
P_MRR_CANDIDATES = 100


def held_out_benchmark(name: str, groups: list[Group]) -> Benchmark:
    """The three questions of every held-out group over all passages of the held-out groups.

    p-MRR: original (I+,Q+), changed (I-,Q+), changed document P+, which the changed instruction
    makes wrong, ranked over one fixed list: BM25's best 100 for Q+ and the group's own passages.
    Equal passages are one document, equal questions keep their own ids.
    """
    places: dict[str, str] = {}
    questions: dict[str, Question] = {}
    judgments: dict[str, dict[str, int]] = {}
    right: dict[tuple[str, str], dict[str, int]] = {}
    benchmark_ids: dict[str, tuple[str, str]] = {}
    for number, group in enumerate(groups):
        for role, (instruction, query, passage) in zip(ROLES, group.triplets(), strict=True):
            document = places.setdefault(passage, f"d{len(places):06d}")
            question = f"g{number:06d}-{role}"
            questions[question] = Question(instruction, query)
            right.setdefault((instruction, query), {})[document] = 1
            benchmark_ids[question] = (instruction, query)
    for question, key in benchmark_ids.items():
        judgments[question] = right[key]
    ids = {f"g{number:06d}": group for number, group in enumerate(groups)}
    in_benchmark = {
        key: GroupPlaces(
            questions=(f"{key}-{ROLES[0]}", f"{key}-{ROLES[1]}", f"{key}-{ROLES[2]}"),
            documents=(
                places[group.document_positive],
                places[group.hard_negative_document_1],
                places[group.hard_negative_document_2],
            ),
        )
        for key, group in ids.items()
    }
    return Benchmark(
        name=name,
        kind="held-out groups",
        groups=in_benchmark,
        changed_candidates=_p_mrr_candidates(ids, places, in_benchmark),
        convention="every scenario of a held-out group is a query with one right passage, ranked "
        "among all passages of the held-out groups; p-MRR: original (I+,Q+), changed (I-,Q+), "
        "changed document P+, ranked over BM25's best 100 for Q+ and the group's passages; ties by "
        "score, then id, both descending",
        questions=questions,
        corpus={document: passage for passage, document in places.items()},
        judgments=judgments,
        original={key: f"{key}-positive" for key in ids},
        changed={key: f"{key}-instruction-negative" for key in ids},
        changed_documents={key: [places[group.document_positive]] for key, group in ids.items()},
    )


def _p_mrr_candidates(
    groups: Mapping[str, Group], places: Mapping[str, str], found: Mapping[str, GroupPlaces]
) -> dict[str, list[str]]:
    """For every group BM25's best documents for Q+, and the group's own."""
    ids = list(places.values())
    if len(ids) <= P_MRR_CANDIDATES:
        return dict.fromkeys(groups, ids)
    from analysis.text.bm25 import Bm25

    queries = [group.query_positive for group in groups.values()]
    best, _ = Bm25(list(places)).top(queries, P_MRR_CANDIDATES)
    return {
        key: list(dict.fromkeys([*found[key].documents, *(ids[place] for place in row)]))
        for key, row in zip(groups, best, strict=True)
    }


def read_benchmark(folder: Path) -> Benchmark:
    """A benchmark folder. Raises NotFound or BadInput with file, line and remedy."""
    if not folder.is_dir():
        raise NotFound(f"no benchmark folder {folder}")
    if (folder / "qrels_og").exists() or (folder / "qrels_changed").exists():
        return _read_followir(folder)
    if (folder / "qrels").exists():
        return _read_beir(folder)
    raise BadInput(
        f"{folder} has no relevance judgments: qrels/test.tsv (BEIR), or qrels_og/test.tsv and "
        "qrels_changed/test.tsv (FollowIR), is needed"
    )


def _read_followir(folder: Path) -> Benchmark:
    corpus = _corpus(folder)
    judged = {
        suffix: _judgments(folder / part / "test.tsv", corpus)
        for suffix, part in ((ORIGINAL, "qrels_og"), (CHANGED, "qrels_changed"))
    }
    questions: dict[str, Question] = {}
    rows = _queries(folder)
    for place, row in rows:
        for suffix, key in ((ORIGINAL, "instruction_og"), (CHANGED, "instruction_changed")):
            if not isinstance(row.get(key), str):
                raise BadInput(f"{place} has no `{key}`")
            questions[row["_id"] + suffix] = Question(row[key], row["text"])
    ids = [row["_id"] for _, row in rows]
    candidates: dict[str, list[str]] = {}
    for place, row in read_rows(folder / "top_ranked.jsonl", ("qid", "pid")):
        if row["pid"] not in corpus:
            raise BadInput(f"{place}: no document {row['pid']!r} in corpus.jsonl")
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


def _read_beir(folder: Path) -> Benchmark:
    corpus = _corpus(folder)
    questions = {
        row["_id"]: Question(str(row.get("instruction") or ""), row["text"])
        for _, row in _queries(folder)
    }
    judgments = _judgments(folder / "qrels" / "test.tsv", corpus)
    if unknown := sorted(judgments.keys() - questions.keys()):
        raise BadInput(f"{folder / 'qrels' / 'test.tsv'}: no query {unknown[0]!r} in queries.jsonl")
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
    """InstructIR names the instructions of query 17 `17_0`, `17_1`, …: {question: query}.

    Empty where a folder is not so: an instruction is missing, equal names ask other queries, or no
    query has a second instruction.
    """
    by_query: dict[str, list[Question]] = {}
    for name, question in questions.items():
        by_query.setdefault(name.split("_")[0], []).append(question)
    several = any(len(theirs) > 1 for theirs in by_query.values())
    alike = all(len({one.query for one in theirs}) == 1 for theirs in by_query.values())
    if not (several and alike and all(one.instruction for one in questions.values())):
        return {}
    return {name: name.split("_")[0] for name in questions}


def _queries(folder: Path) -> list[tuple[str, dict[str, Any]]]:
    """(place, row) of queries.jsonl, every id once."""
    rows = read_rows(folder / "queries.jsonl", ("_id", "text"))
    return list(by_id("query", ((place, row["_id"], (place, row)) for place, row in rows)).values())


def _corpus(folder: Path) -> dict[str, str]:
    rows = read_rows(folder / "corpus.jsonl", ("_id", "text"))
    corpus = by_id("document", ((place, row["_id"], titled_text(row)) for place, row in rows))
    if not corpus:
        raise BadInput(f"{folder / 'corpus.jsonl'} holds no document")
    return corpus


def by_id(what: str, rows: Iterable[tuple[str, str, Value]]) -> dict[str, Value]:
    """{id: value} of (place, id, value). Raises BadInput where an id is there twice."""
    found: dict[str, Value] = {}
    for place, name, value in rows:
        if name in found:
            raise BadInput(f"{place}: {what} {name!r} is there twice")
        found[name] = value
    return found


def titled_text(row: Mapping[str, Any]) -> str:
    """A document with its title in front, where it has one."""
    return f"{row.get('title') or ''} {row['text']}".strip()


def _judgments(file: Path, corpus: dict[str, str]) -> dict[str, dict[str, int]]:
    if not file.is_file():
        raise BadInput(f"{file} is missing: a benchmark needs its relevance judgments there")
    judgments: dict[str, dict[str, int]] = {}
    with file.open(encoding="utf-8", newline="") as lines:
        for number, row in enumerate(csv.DictReader(lines, delimiter="\t"), start=2):
            try:
                query, document, grade = row["query-id"], row["corpus-id"], int(row["score"])
            except (KeyError, TypeError, ValueError) as error:
                raise BadInput(
                    f"{file}, line {number}: the columns query-id, corpus-id and score (a whole "
                    "number), separated by tabs, are needed"
                ) from error
            if document not in corpus:
                raise BadInput(f"{file}, line {number}: no document {document!r} in corpus.jsonl")
            judgments.setdefault(query, {})[document] = grade
    if not judgments:
        raise BadInput(f"{file} holds no judgment")
    return judgments


def read_rows(file: Path, needed: tuple[str, ...]) -> Iterator[tuple[str, dict[str, Any]]]:
    """(place, row) of a JSON-lines file; the needed fields are text. Raises BadInput with line."""
    if not file.is_file():
        raise BadInput(f"{file} is missing: see `inf evaluate --help` for the folder's layout")
    for found in read_file_rows(file):
        place, row = f"{file}, line {found.line}", found.values
        if found.reason is not None:
            raise BadInput(f"{place}: {found.reason}")
        for key in needed:
            value = row.get(key)
            if isinstance(value, int) and not isinstance(value, bool):
                row[key] = str(value)
            elif not isinstance(value, str):
                raise BadInput(f"{place} has no `{key}`")
        yield place, row
