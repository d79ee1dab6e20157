"""Problems with their solutions: programming tasks (LeetCode, MBPP) and word problems (MetaMath,
GSM8K).

LeetCode rows have the description as HTML (`content`) and a column per programming language; each
language makes a pair of its own, its language kept in the pair. MBPP-like rows have one `solution`
(or `code`, `passage`) and its `language`. Math rows are `query`/`response` (MetaMath) or
`question`/`answer` (GSM8K); GSM8K's calculator marks `<<16-3=13>>` are taken out.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from analysis.files.rows import read_rows
from curation.sources.rows import (
    Converted,
    LeftOut,
    SourceInput,
    SourceKind,
    SourcePair,
    SourcePassage,
    passage_id_of,
    text_in,
    without_tags,
)

LANGUAGES = {
    "python": "Python",
    "python3": "Python",
    "java": "Java",
    "c++": "C++",
    "cpp": "C++",
    "javascript": "JavaScript",
    "go": "Go",
    "rust": "Rust",
    "c#": "C#",
}
_FENCE = re.compile(r"```[\w+#]*\n(.*?)```", re.DOTALL)
_CALCULATED = re.compile(r"<<[^<>]*>>")


def read_leetcode(file: Path) -> Iterator[Converted]:
    """Programming tasks with their solutions, the language known."""
    for row in read_rows(file):
        if row.reason is not None:
            yield LeftOut(file.name, row.line, row.reason)
            continue
        task = without_tags(text_in(row.values, "content", "description", "problem", "query"))
        solutions = dict(_solutions(row.values))
        if not task or not solutions:
            reason = "no description" if not task else "no solution whose language is known"
            yield LeftOut(file.name, row.line, reason)
            continue
        key = row.values.get("id") or row.values.get("query_id") or row.values.get("slug")
        number = str(key if key not in (None, "") else row.line)
        title = text_in(row.values, "title", "slug")
        for language, code in solutions.items():
            passage_id = passage_id_of("code", f"{language}\n{code}")
            yield SourcePassage(passage_id, code, meta={"language": language})
            meta = {"language": language} | ({"title": title} if title else {})
            yield SourcePair(f"{number}-{language}", task, passage_id, meta)


def read_math(file: Path) -> Iterator[Converted]:
    """Word problems with their worked solutions."""
    for row in read_rows(file):
        if row.reason is not None:
            yield LeftOut(file.name, row.line, row.reason)
            continue
        problem = text_in(row.values, "query", "question", "problem")
        solution = _CALCULATED.sub(
            "", text_in(row.values, "response", "answer", "solution", "passage")
        )
        if not problem or not solution:
            reason = "no problem" if not problem else "no solution"
            yield LeftOut(file.name, row.line, reason)
            continue
        passage_id = passage_id_of("solution", solution)
        yield SourcePassage(passage_id, solution)
        number = str(row.values.get("query_id") or f"math-{row.line}")
        kind = text_in(row.values, "type")
        yield SourcePair(number, problem, passage_id, {"type": kind} if kind else {})


def _solutions(row: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(language, code) of each solution; explanations around a fenced block are left out."""
    for name, value in row.items():
        language = LANGUAGES.get(name.lower())
        if language and isinstance(value, str) and value.strip():
            yield language, _code(value)
    language = text_in(row, "language")
    code = text_in(row, "solution", "code", "passage")
    if language and code:
        yield LANGUAGES.get(language.lower(), language), _code(code)


def _code(text: str) -> str:
    fenced = _FENCE.search(text)
    return (fenced.group(1) if fenced else text).strip("\n").rstrip()


FORMATS = {
    "leetcode": SourceKind(
        "Programming tasks with solutions, the language known.",
        (SourceInput("file"),),
        read_leetcode,
    ),
    "math": SourceKind(
        "Word problems with worked solutions (MetaMath, GSM8K).",
        (SourceInput("file"),),
        read_math,
    ),
}
