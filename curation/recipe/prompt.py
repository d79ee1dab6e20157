"""Prompts are files; `messages` fills one in. Pure.

A prompt file is the system message, a line of three dashes, and the user message, with the task's
inputs in braces. Its identity is the sha256 of the file's text.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from curation.recipe.tasks import TASKS, Task
from db.corpus.datasets import text_sha256
from db.errors import BadInput

FOLDER = Path(__file__).parent / "prompts"
ECHO_WORDS = 9  # as many words of a prompt in a row are an echo of it
_PLACE = re.compile(r"\{([a-z_]+)\}")
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
    def runs(self) -> frozenset[tuple[str, ...]]:
        """Every run of ECHO_WORDS words of its own text, inputs left out."""
        fixed = [plain_words(part) for part in _PLACE.sub("\n", self.text).split("\n")]
        return frozenset(
            tuple(line[start : start + ECHO_WORDS])
            for line in fixed
            for start in range(len(line) - ECHO_WORDS + 1)
        )

    @cached_property
    def parts(self) -> tuple[list[str], list[str]]:
        """What is told (system) and what is asked (user), each split at its places."""
        told, _, asked = self.text.partition("\n---\n")
        if not asked:
            told, asked = "", told
        return _PLACE.split(told.strip()), _PLACE.split(asked.strip())


_PUNCTUATION = str.maketrans(dict.fromkeys('!"#$%&()*+,./:;<=>?@[\\]^_`{|}~“”‘…', " "))


def plain_words(text: str) -> list[str]:
    """The words of a text in lower case; ten times as quick as a regular expression."""
    return text.lower().translate(_PUNCTUATION).split()


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


def _filled(parts: Sequence[str], inputs: Inputs) -> str:
    """Texts and names of places in turn, as one text."""
    return "".join(
        _shown(inputs[part]) if number % 2 else part for number, part in enumerate(parts)
    )


def _shown(value: str | list[str]) -> str:
    if isinstance(value, str):
        return value
    return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(value, 1))
