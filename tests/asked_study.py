"""A study from a file: records of four passages and questions of every kind, for tests."""

import json
from pathlib import Path
from typing import Any

from curation.questions.questions_file import read_questions
from curation.questions.study_file import study_from_file
from db.store.store import Store

KINDS = ("positive", "instruction_negative", "instruction_negative", "hard_negative")
QUERY_OK = {"key": "query_ok", "type": "yes_no", "about": "query", "text": "Is it a real query?"}
ROLE = {
    "key": "role",
    "type": "grade",
    "about": "passage",
    "text": "What does the passage do?",
    "labels": {"0": "does not answer", "1": "violates the instruction", "2": "satisfies it"},
    "expected": {"positive": "2", "instruction_negative": "1", "hard_negative": "0"},
}
BEST = {
    "key": "best",
    "type": "pick",
    "text": "Which is the best?",
    "expected": "positive",
}
FLUENCY = {"key": "fluency", "type": "score", "about": "item", "text": "How fluent is it?"}
QUESTIONS = [QUERY_OK | {"expected": "yes"}, ROLE, BEST, FLUENCY]
PER_RECORD = 7  # items: one of each question, four of the grade


def record(number: int, **more: Any) -> dict[str, Any]:
    """A row of the file."""
    passages = [
        {"id": f"r{number}p{place}", "kind": kind, "text": f"Text {place} on tea {number}: {kind}."}
        for place, kind in enumerate(KINDS)
    ]
    return {
        "id": f"r{number}",
        "query": f"what is tea {number}",
        "instruction": f"Only what was written before 19{number:02}.",
        "passages": passages,
    } | more


def write_records(path: Path, rows: list[dict[str, Any]]) -> Path:
    """The file of these rows."""
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def make_asked_study(
    store: Store,
    folder: Path,
    rows: list[dict[str, Any]],
    questions: list[dict[str, Any]] = QUESTIONS,
    *,
    overlap: int = 2,
) -> int:
    """A study of these rows; its id."""
    body = json.dumps({"name": "roles", "questions": questions})
    with store.write() as session:
        study = study_from_file(
            session,
            write_records(folder / "items.jsonl", rows),
            read_questions(body, "questions.json"),
            overlap=overlap,
            created_by="cora",
        )
        session.commit()
        return study.id
