"""The questions that a study from a file asks: one JSON file, read and checked. Pure.

    {"name": "Audit", "questions": [
      {"key": "query_ok", "type": "yes_no", "about": "query", "text": "Is the query acceptable?"},
      {"key": "role", "type": "grade", "about": "passage", "text": "What does it do?",
       "labels": {"0": "does not answer", "1": "violates the instruction", "2": "satisfies"},
       "expected": {"positive": "2", "instruction_negative": "1"}}]}

`about`: `passage`, each of them by itself; `query`, `instruction`, or `item`, everything on the
card. A pick is always about all passages. `expected` is the right answer, by the kind of a passage
where the question is about passages. `guidelines` (Markdown) may stand beside `name`.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from db.errors import BadInput
from db.question import KINDS, Question, question_from

About = Literal["passage", "query", "instruction", "item"]
ABOUT: Final[tuple[About, ...]] = get_args(About)
SAME: Final = {"passages": "passage", "each passage": "passage", "text": "item", "": "item"}
KEYS: Final = ("key", "type", "about", "text", "labels", "expected")
_KEY = re.compile(r"[a-z][a-z0-9_]{0,39}")
MAX_QUESTIONS: Final = 20


@dataclass(frozen=True)
class StudyQuestion:
    """A question as a study asks it: about which texts, and what is expected where.

    `expected`: the right answer by kind of passage; of a question about one text, by "".
    """

    question: Question
    about: About
    expected: Mapping[str, str]

    @property
    def key(self) -> str:
        """Its name in files and figures."""
        return self.question.name

    def expected_of(self, kind: str) -> str | None:
        """The right answer for a passage of this kind, or "" for one text; None: unknown."""
        return self.expected.get(kind)


@dataclass(frozen=True)
class QuestionSet:
    """The questions of a study in their order, with a name and, if given, guidelines."""

    name: str
    entries: tuple[StudyQuestion, ...]
    guidelines: str = ""

    @property
    def markdown(self) -> str:
        """The guidelines: those given, or what the questions say."""
        if self.guidelines:
            return self.guidelines
        lines = ["Read everything on the card, then answer each question.", ""]
        for each in self.entries:
            lines.append(f"- **{each.question.text}**")
            labels = each.question.labels.items()
            lines += [f"    - {label}: {meaning}" for label, meaning in labels]
        last = (
            "- You cannot decide: choose **Ambiguous**. It is an answer; skip what you cannot read."
        )
        return "\n".join([*lines, last, ""])


def read_questions(text: str, file: str) -> QuestionSet:
    """The questions of a file's text. Raises BadInput with the place, the value and the remedy."""
    try:
        body = json.loads(text)
    except json.JSONDecodeError as error:
        raise BadInput(
            f"{file}, line {error.lineno}, column {error.colno}: it is not JSON ({error.msg})",
            'write {"name": …, "questions": [{"key": …, "type": …, "text": …}]}',
            code="questions_not_json",
        ) from error
    listed = body.get("questions") if isinstance(body, Mapping) else None
    if not isinstance(listed, list) or not listed:
        raise BadInput(
            f"{file}: `questions` is no list with a question",
            'write {"name": …, "questions": [{"key": …, "type": …, "text": …}]}',
            code="questions_missing",
        )
    if len(listed) > MAX_QUESTIONS:
        raise BadInput(
            f"{file}: {len(listed)} questions",
            f"ask at most {MAX_QUESTIONS} of one item",
            code="questions_too_many",
        )
    entries: list[StudyQuestion] = []
    for number, one in enumerate(listed, 1):
        found = _entry(one, f"{file}, question {number}")
        if found.key in [other.key for other in entries]:
            raise BadInput(
                f"{file}, question {number}: the key {found.key!r} is taken by one before it",
                "give each question a key of its own",
                code="question_key_taken",
            )
        entries.append(found)
    name, guidelines = (str(body.get(key) or "").strip() for key in ("name", "guidelines"))
    return QuestionSet(name, tuple(entries), guidelines)


def _entry(given: Any, where: str) -> StudyQuestion:
    if not isinstance(given, Mapping):
        raise BadInput(
            f"{where}: {given!r:.60} is no object",
            'write {"key": …, "type": …, "text": …}',
            code="question_invalid",
        )
    if unknown := [key for key in given if key not in KEYS]:
        raise BadInput(
            f"{where}: no key {unknown[0]!r}",
            f"keys are {', '.join(KEYS)}",
            code="question_invalid",
        )
    key, kind = given.get("key"), given.get("type")
    if not isinstance(key, str) or not _KEY.fullmatch(key):
        raise BadInput(
            f"{where}: `key` {key!r:.60} is no name",
            "begin with a small letter; then small letters, digits and _",
            code="question_key_invalid",
        )
    where = f"{where} ({key})"
    if kind not in KINDS:
        raise BadInput(
            f"{where}: `type` {kind!r:.60}", f"one of {', '.join(KINDS)}", code="question_kind"
        )
    text = given.get("text")
    if not isinstance(text, str) or not text.strip():
        raise BadInput(
            f"{where}: `text` {text!r:.60}",
            "write what people are asked",
            code="question_text_missing",
        )
    body = {"name": key, "kind": kind, "labels": _labels(given.get("labels")), "text": text.strip()}
    question = question_from(body, where)
    about = _about(given.get("about"), question, where)
    expected = given.get("expected")
    if expected is None:
        expected = {}
    elif not isinstance(expected, Mapping):
        expected = {"": expected}
    for about_kind, answer in expected.items():
        if bool(about_kind) != (about == "passage" and question.kind != "pick"):
            raise BadInput(
                f"{where}: `expected` {given['expected']!r:.60}",
                'by kind of passage, as {"positive": "2"}, where it is about passages; else one '
                "answer",
                code="question_expected_invalid",
            )
        if question.kind != "pick":  # whose answers are candidates: checked with the items
            question.check_expected(str(answer), f"{where}, `expected`")
    return StudyQuestion(
        question, about, {str(kind): str(answer) for kind, answer in expected.items()}
    )


def _labels(given: Any) -> Any:
    """Labels as `db.question` has them; a list is numbered from 0."""
    if isinstance(given, Sequence) and not isinstance(given, str):
        return {str(number): label for number, label in enumerate(given)}
    if isinstance(given, Mapping):
        return {str(label): meaning for label, meaning in given.items()}
    return given


def _about(given: Any, question: Question, where: str) -> About:
    if question.kind == "pick":
        if given not in (None, "passages", "passage", "item"):
            raise BadInput(
                f"{where}: a pick is about all passages, not about {given!r:.40}",
                "leave `about` out, or take another type",
                code="question_about_invalid",
            )
        return "item"
    if given is None:
        return "item" if question.kind == "yes_no" else "passage"
    about = SAME.get(str(given), given)
    for one in ABOUT:
        if one == about:
            return one
    raise BadInput(
        f"{where}: `about` {given!r:.60}",
        f"one of {', '.join(ABOUT)}",
        code="question_about_invalid",
    )
