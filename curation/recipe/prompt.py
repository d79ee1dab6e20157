"""Prompts are files: `messages` fills one in, `parse` reads the answer. Both are pure.

A prompt file is what the model is told (system), a line of three dashes, and what it is asked
(user), with the task's inputs in braces. Its identity is the sha256 of the file's text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from curation.recipe.structured import NotToSchema, is_json, read_json
from curation.recipe.tasks import TASKS, Gives, Task
from db.corpus.datasets import text_sha256
from db.errors import BadInput
from db.words import AMBIGUOUS, NONE

FOLDER = Path(__file__).parent / "prompts"
NO_CHARACTER = "\ufffd"
_UNSTORABLE = re.compile("[\\x00\\ud800-\\udfff]")
_PLACE = re.compile(r"\{([a-z_]+)\}")
_CHOICE = re.compile(
    r"choice\W*?:[\s*\[\"]*(?:passage\s*)?\[?(\d+|none|ambiguous)\b", re.IGNORECASE
)

NEEDED: dict[Task, tuple[str, ...]] = {
    "passage_instruction_negative": ("query_positive", "instruction_negative"),
    "passage_query_negative": ("query_negative", "instruction_positive"),
    "validation": ("query", "instruction", "passages"),
}
Inputs = Mapping[str, str | list[str]]


@dataclass(frozen=True)
class Prompt:
    """A prompt file as it was read."""

    name: str
    text: str

    @cached_property
    def sha256(self) -> str:
        """The identity of the prompt."""
        return text_sha256(self.text)

    @cached_property
    def places(self) -> frozenset[str]:
        """The inputs that it names."""
        return frozenset(_PLACE.findall(self.text))

    @cached_property
    def parts(self) -> tuple[list[str], list[str]]:
        """What is told (system) and what is asked (user), each split at its places."""
        told, _, asked = self.text.partition("\n---\n")
        if not asked:
            told, asked = "", told
        return _PLACE.split(told.strip()), _PLACE.split(asked.strip())


class Unparsable(Exception):
    """An answer is not in the form that was asked for; `reason` is the drop reason."""

    def __init__(self, reason: str, detail: str) -> None:
        self.reason = reason
        super().__init__(detail)


def read_prompt(task: Task, name: str, beside: Path) -> Prompt:
    """The prompt file of that name, beside the recipe or among those that come with us.

    Raises BadInput where it is missing or names something that its task is not given.
    """
    for folder in (beside, FOLDER):
        path = folder / name
        if path.is_file():
            break
    else:
        raise BadInput(f"no prompt file {name!r} beside the recipe or in {FOLDER.name}/")
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(f"the prompt {name!r} is not UTF-8 text") from error
    given, named = TASKS[task].inputs, Prompt(path.name, text).places
    unknown = sorted(named - set(given))
    missing = sorted(set(NEEDED.get(task, ())) - named)
    if unknown:
        raise BadInput(
            f"the prompt {name!r} names {{{unknown[0]}}}; {task} is given: {', '.join(given)}"
        )
    if missing:
        raise BadInput(f"the prompt {name!r} does not use {{{missing[0]}}}, which {task} needs")
    return Prompt(path.name, text)


def messages(prompt: Prompt, inputs: Inputs) -> list[dict[str, str]]:
    """What is sent to a chat model. Braces in an input are text, never filled in again."""
    told, asked = (_filled(parts, inputs) for parts in prompt.parts)
    head = [{"role": "system", "content": told}] if told else []
    return [*head, {"role": "user", "content": asked}]


def storable(text: str) -> str:
    """An answer as every store takes it: NULs and halves of surrogate pairs become U+FFFD."""
    return _UNSTORABLE.sub(NO_CHARACTER, text)


def parse(task: Task, answer: str, *, candidates: int = 0) -> str:
    """The text an answer gives, or the choice of a validator ("1" … , "none" or "ambiguous").

    A JSON object is read by the task's schema, anything else by the label that the prompt asks for.
    Instructions and queries are cut at their first newline (the paper's B.1). Raises Unparsable.
    """
    gives = TASKS[task].gives
    if not answer.strip():
        raise Unparsable("empty", f"{task}: the answer is empty")
    if is_json(answer):
        try:
            answer = f"{gives}: {read_json(task, answer)}"
        except NotToSchema as error:
            raise Unparsable("unparsable", str(error)) from error
    if gives == "Choice":
        return _parse_choice(answer, candidates)
    found = _labelled(gives, answer)
    if found is None:
        raise Unparsable("unparsable", f"{task}: no line starts with `{gives}:`")
    text = found.strip() if gives == "Passage" else _first_line(found)
    text = _unquoted(text)
    if NO_CHARACTER in text:
        raise Unparsable("unparsable", f"{task}: the answer holds what is no character")
    if not text:
        raise Unparsable("empty", f"{task}: nothing stands after `{gives}:`")
    return text


def _filled(parts: Sequence[str], inputs: Inputs) -> str:
    """Texts and names of places in turn, as one text."""
    return "".join(
        _shown(inputs[part]) if number % 2 else part for number, part in enumerate(parts)
    )


def _shown(value: str | list[str]) -> str:
    if isinstance(value, str):
        return value
    return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(value, 1))


def _labelled(gives: Gives, answer: str) -> str | None:
    match = re.search(rf"^\W*{gives}\W*?:[\s*]*", answer, re.IGNORECASE | re.MULTILINE)
    return None if match is None else answer[match.end() :]


def _first_line(text: str) -> str:
    return text.strip().split("\n", 1)[0].strip()


def _unquoted(text: str) -> str:
    for opening, closing in (('"', '"'), ("“", "”"), ("**", "**")):
        inner = text[len(opening) : -len(closing)]
        if text.startswith(opening) and text.endswith(closing) and opening not in inner and inner:
            return inner.strip()
    return text


def _parse_choice(answer: str, candidates: int) -> str:
    found = _CHOICE.findall(answer)
    if not found:
        raise Unparsable("unparsable", "validation: no line says `Choice: <number>`")
    word = str(found[-1]).lower()
    if word in (NONE, AMBIGUOUS):
        return word
    if not 1 <= int(word) <= candidates:
        raise Unparsable(
            "unknown_candidate", f"validation: chose passage {word} of {candidates} shown"
        )
    return str(int(word))
