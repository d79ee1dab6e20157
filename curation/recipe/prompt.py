"""Prompts are files; `messages` fills one in. Pure.

A prompt file is the system message, a line of three dashes, and the user message, with the task's
inputs in braces. Its identity is the sha256 of the file's text.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from curation.recipe.tasks import Task, TaskSpec
from db.corpus.datasets import text_sha256
from db.errors import BadInput

FOLDER = Path(__file__).parent / "prompts"
ECHO_WORDS = 9  # as many words of a prompt in a row are an echo of it
_PLACE = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
# what may be meant for one, as {I}, {P1-} or { query }; JSON has quotes in its braces
_LIKE_A_PLACE = re.compile(r"\{[ \t]*[^\W\d][\w.+\[\]-]*[ \t]*\}")
_OR_ADD = {  # by the table that names the prompt
    "steps": ", or add its text to the step's inputs",
    "checks": ", or add its text to the check's with",
}
FENCED = "fenced_"  # prefix of an input's name: its texts are put between tags
_TAG = re.compile(r"[<＜﹤](?=\s*[/／]?\s*passage\b)", re.IGNORECASE)
_ENTRY = re.compile(r"^\s*\[(\d+)\]", re.MULTILINE)
Inputs = Mapping[str, str | list[str]]
# where a recipe's prompts are: the folder of its file, or texts by name (of a recipe in the store)
Beside = Path | Mapping[str, str]


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
        return frozenset(place.removeprefix(FENCED) for place in _PLACE.findall(self.text))

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
        """System and user message, each split at its inputs."""
        system, _, user = self.text.partition("\n---\n")
        if not user:
            system, user = "", system
        return _PLACE.split(system.strip()), _PLACE.split(user.strip())


_PUNCTUATION = str.maketrans(dict.fromkeys('!"#$%&()*+,./:;<=>?@[\\]^_`{|}~“”‘…', " "))


def plain_words(text: str) -> list[str]:
    """The words of a text in lower case; ten times as fast as a regular expression."""
    return text.lower().translate(_PUNCTUATION).split()


def read_prompt(
    task: Task, spec: TaskSpec, name: str, beside: Beside, place: str = "the recipe"
) -> Prompt:
    """The prompt file of that name, next to the recipe or among the built-in ones.

    place: of the recipe that names it. Raises BadInput if it is missing or names an
    input that its task does not have.
    """
    text = _text_of(name, beside, place)
    given, named = spec.inputs, Prompt(Path(name).name, text).places
    missing = sorted(set(spec.needed) - named)
    for like in _LIKE_A_PLACE.finditer(text):
        found = _PLACE.fullmatch(like[0])
        if found is not None and found[1].removeprefix(FENCED) in given:
            continue
        number = text.count("\n", 0, like.start()) + 1
        kind = place.rpartition("[")[2].partition(".")[0]
        raise BadInput(
            f"the prompt {name!r}, line {number}, names {like[0]}; {task} is given: "
            f"{', '.join(given)}",
            f"use one of these{_OR_ADD.get(kind, '')}",
            code="prompt_variable_unknown",
            file=name,
            line=number,
        )
    if missing:
        raise BadInput(
            f"{place}: the prompt {name!r} does not use {{{missing[0]}}}, which {task} needs",
            "add it to the prompt",
            code="prompt_variable_missing",
        )
    return Prompt(Path(name).name, text)


def _text_of(name: str, beside: Beside, place: str) -> str:
    """The text of a prompt file; no name leads from a stored recipe to a file of the server."""
    if isinstance(beside, Path):
        places = [folder / name for folder in (beside, FOLDER)]
    elif name in beside:
        return beside[name]
    else:
        places = [path for path in FOLDER.iterdir() if path.name == name]
    path = next((each for each in places if each.is_file()), None)
    if path is None:
        raise BadInput(
            f"{place}: no prompt file {name!r} next to the recipe or in {FOLDER.name}/",
            "put the file there, or correct its name",
            code="prompt_unknown",
        )
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise BadInput(
            f"the prompt {name!r} is not UTF-8 text", "save it as UTF-8", code="text_not_utf8"
        ) from error


def messages(prompt: Prompt, inputs: Inputs) -> list[dict[str, str]]:
    """The messages for a chat model. Braces in an input are text, never filled in again."""
    system, user = (_filled(parts, inputs) for parts in prompt.parts)
    head = [{"role": "system", "content": system}] if system else []
    return [*head, {"role": "user", "content": user}]


def fenced(labels: Iterable[object], texts: Iterable[str]) -> str:
    """Candidates of an item, each between tags with its label, which no text can imitate."""
    return "\n\n".join(
        f"<passage {label}>\n{_TAG.sub('‹', text)}\n</passage {label}>"
        for label, text in zip(labels, texts, strict=False)
    )


def escapes(prompt: Prompt, inputs: Inputs) -> bool:
    """Whether a list of texts in brackets holds a text that looks like another entry of it.

    Prompts of earlier versions number their candidates `[1] …`. Lists that no text forges are sent
    as ever and keep their content key; a forged one is sent escaped, under a key of its own.
    """
    return any(
        isinstance(inputs[name], list) and any(_ENTRY.search(text) for text in inputs[name])
        for parts in prompt.parts
        for name in parts[1::2]
        if name in inputs
    )


def _filled(parts: Sequence[str], inputs: Inputs) -> str:
    """Texts and names of places in turn, as one text."""
    return "".join(
        _shown(part, inputs) if number % 2 else part for number, part in enumerate(parts)
    )


def _shown(place: str, inputs: Inputs) -> str:
    value = inputs.get(place.removeprefix(FENCED), f"{{{place}}}")  # of an older prompt: was text
    if isinstance(value, str):
        return value
    if place.startswith(FENCED):
        return fenced(range(1, len(value) + 1), value)
    texts = (_ENTRY.sub(r"(\1)", text) for text in value)
    return "\n\n".join(f"[{number}] {text}" for number, text in enumerate(texts, 1))
