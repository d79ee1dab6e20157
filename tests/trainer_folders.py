"""Small benchmark folders in the formats they are published in, for the trainer's tests."""

import json
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as parquet


def write_jsonl(file: Path, rows: list[dict[str, object]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


def write_judgments(file: Path, rows: list[tuple[str, str, int]]) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    lines = ["query-id\tcorpus-id\tscore", *("\t".join(map(str, row)) for row in rows)]
    file.write_text("\n".join(lines) + "\n")


def write_followir(folder: Path) -> Path:
    """Two queries; for q1 the document d2 stops being relevant, for q2 nothing changes."""
    write_jsonl(
        folder / "queries.jsonl",
        [
            {"_id": q, "text": f"text {q}", "instruction_og": "any", "instruction_changed": "few"}
            for q in ("q1", "q2")
        ],
    )
    write_jsonl(
        folder / "corpus.jsonl",
        [
            {"_id": f"d{n}", "title": "T" if n == 1 else "", "text": f"body {n}"}
            for n in range(1, 5)
        ],
    )
    write_jsonl(
        folder / "top_ranked.jsonl",
        [{"qid": q, "pid": f"d{n}"} for q in ("q1", "q2") for n in (1, 2, 3)],
    )
    write_judgments(
        folder / "qrels_og" / "test.tsv", [("q1", "d1", 1), ("q1", "d2", 1), ("q2", "d3", 1)]
    )
    write_judgments(
        folder / "qrels_changed" / "test.tsv", [("q1", "d1", 1), ("q1", "d2", 0), ("q2", "d3", 1)]
    )
    return folder


def write_beir(folder: Path) -> Path:
    write_jsonl(
        folder / "queries.jsonl",
        [{"_id": 1, "text": "one", "instruction": "briefly"}, {"_id": 2, "text": "two"}],
    )
    write_jsonl(folder / "corpus.jsonl", [{"_id": f"d{n}", "text": f"body {n}"} for n in range(3)])
    write_judgments(folder / "qrels" / "test.tsv", [("1", "d0", 2)])
    return folder


def write_bright(folder: Path, **changed: Any) -> Path:
    """Two tasks; for a1 the document b is excluded, for the other questions none."""
    for name in ("examples", "documents"):
        (folder / name).mkdir(parents=True)
    for task in ("biology", "aops"):
        rows = [
            {"id": "0", "query": "why", "gold_ids": ["a"], "excluded_ids": ["b"]},
            {"id": "1", "query": "how", "gold_ids": ["b"], "excluded_ids": ["N/A"]},
        ]
        rows[0] |= changed
        documents = [{"id": name, "content": f"text {name}"} for name in "abc"]
        for kind, table in (("examples", rows), ("documents", documents)):
            file = folder / kind / f"{task}-00000-of-00001.parquet"
            parquet.write_table(pa.Table.from_pylist(table), file)
    return folder


INSTRUCTIR_PARTS: dict[str, tuple[str, list[dict[str, Any]]]] = {
    "corpus": ("corpus", [{"_id": f"d{n}", "title": "", "text": f"body {n}"} for n in range(3)]),
    "queries": (
        "queries",
        [{"_id": f"{n}", "text": t} for n, t in (("7_0", "one"), ("7_1", "one"), ("8_0", "two"))],
    ),
    "instruction": (
        "instruction",
        [{"query-id": name, "instruction": f"for {name}"} for name in ("7_0", "7_1", "8_0")],
    ),
    "default": (
        "test",
        [
            {"query-id": query, "corpus-id": document, "score": 1}
            for query, document in (("7_0", "d0"), ("7_1", "d1"), ("8_0", "d2"))
        ],
    ),
}
FILES = {
    "corpus": "corpus.jsonl",
    "queries": "queries.jsonl",
    "instruction": "instructions.jsonl",
    "default": "qrels/test.jsonl",
    "top_ranked": "top_ranked/test.jsonl",
}


def write_instructir(folder: Path, **changed: list[dict[str, Any]] | None) -> Path:
    """InstructIR as mteb publishes it: parts as configurations of the card, in JSON lines."""
    card = ["---", "configs:"]
    parts = dict(INSTRUCTIR_PARTS)
    for name, rows in changed.items():
        split = parts[name][0] if name in parts else "test"
        if rows is None:
            del parts[name]
        else:
            parts[name] = (split, rows)
    for name, (split, rows) in parts.items():
        write_jsonl(folder / FILES[name], rows)
        card += [f"- config_name: {name}", "  data_files:"]
        card += [f"  - split: {split}", f"    path: {FILES[name]}"]
    (folder / "README.md").write_text("\n".join([*card, "---", "# InstructIR", ""]))
    return folder


def write_instructions_of_a_query(folder: Path) -> Path:
    """The same questions as a BEIR folder whose queries hold their instructions."""
    parts = {name: rows for name, (_, rows) in INSTRUCTIR_PARTS.items()}
    instructions = {row["query-id"]: row["instruction"] for row in parts["instruction"]}
    queries = [row | {"instruction": instructions[row["_id"]]} for row in parts["queries"]]
    write_jsonl(folder / "queries.jsonl", queries)
    write_jsonl(folder / "corpus.jsonl", parts["corpus"])
    judged = [(row["query-id"], row["corpus-id"], row["score"]) for row in parts["default"]]
    write_judgments(folder / "qrels" / "test.tsv", judged)
    return folder


def write_mfollowir(
    folder: Path, languages: tuple[str, ...] = ("fas", "rus"), **changed: Any
) -> Path:
    """mFollowIR as mteb publishes it, in Parquet: one query in two forms over four documents."""
    card = ["---", "configs:"]
    for language in languages:
        parts: dict[str, tuple[str, list[dict[str, Any]]]] = {
            "corpus": (
                "corpus",
                [{"_id": f"d{n}", "title": "", "text": f"{language} body {n}"} for n in range(4)],
            ),
            "queries": (
                "queries",
                [{"_id": f"7-{form}", "text": "one"} for form in ("og", "changed")],
            ),
            "instruction": (
                "instruction",
                [
                    {"query-id": "7-og", "instruction": "any"},
                    {"query-id": "7-changed", "instruction": "few"},
                ],
            ),
            "default": (
                "test",
                [
                    {"query-id": f"7-{form}", "corpus-id": document, "score": grade}
                    for form, document, grade in (
                        ("og", "d0", 3),
                        ("og", "d1", 1),
                        ("changed", "d0", 3),
                        ("changed", "d1", 0),
                    )
                ],
            ),
            "top_ranked": (
                "top_ranked",
                [
                    {"query-id": f"7-{form}", "corpus-ids": ["d0", "d1", "d2"]}
                    for form in ("og", "changed")
                ],
            ),
            "qrel_diff": ("qrel_diff", [{"query-id": "7", "corpus-ids": ["d1"]}]),
        }
        for name, (split, rows) in parts.items():
            if changed.get(name, ()) is None:
                continue
            file = Path(f"{name}-{language}") / f"{split}-00000-of-00001.parquet"
            (folder / file).parent.mkdir(parents=True, exist_ok=True)
            table = pa.Table.from_pylist(changed.get(name, rows))
            parquet.write_table(table, folder / file)
            card += [f"- config_name: {name}-{language}", "  data_files:"]
            card += [f"  - split: {split}", f"    path: {name}-{language}/*.parquet"]
    (folder / "README.md").write_text("\n".join([*card, "---", "# mFollowIR", ""]))
    return folder


def write_infosearch(folder: Path) -> Path:
    """One dimension: for q1 d1 stays relevant under the instruction and d2 does not."""
    forms = ("og", "changed", "reversed")
    write_jsonl(
        folder / "queries.jsonl",
        [
            {"_id": "q1", "text": "rivers"}
            | {f"instruction_{form}": "" if form == "og" else f"for {form}" for form in forms},
            {"_id": "q2", "text": "not judged"} | {f"instruction_{form}": "" for form in forms},
        ],
    )
    documents = [{"_id": f"d{n}", "title": "", "text": f"rivers body {n}"} for n in range(1, 5)]
    write_jsonl(folder / "corpus.jsonl", documents)
    for form, grades in zip(forms, ((1, 1), (1, 0), (0, 1)), strict=True):
        rows = [("q1", f"d{n}", grade) for n, grade in enumerate(grades, start=1)]
        write_judgments(folder / f"qrels_{form}" / "test.tsv", rows)
    return folder
