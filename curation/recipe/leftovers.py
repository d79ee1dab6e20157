"""Finding leftovers in a text: parts that belong to the conversation around it. Pure.

A model learns such debris as a shortcut: it occurs in generated texts only, never in P+. Whatever
the given texts (document, query, instruction) contain themselves is not a leftover: a page about
HTML may hold tags, a forum post may say "let me know". The signs are the rows of `leftovers.toml`;
what no row knows is looked for over a whole run (`analysis.text.shared_parts`).
"""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from curation.recipe.prompt import ECHO_WORDS, Prompt, plain_words
from curation.recipe.structured import DESCRIPTIONS
from curation.recipe.tasks import Gives

TAIL_CHARACTERS = 240  # of the end: where a chat model takes its leave
HEAD = " \t\n\"'“*_"  # what may stand before the head of a text
MIN_QUOTED = 8  # characters; as many that a given text holds, too, are quoted from it


@dataclass(frozen=True)
class Leftover:
    """What a text holds that does not belong to it, and the drop reason for it."""

    what: str
    reason: str = "leftover"


@dataclass(frozen=True)
class _Sign:
    """A row of `leftovers.toml`, whose head explains the fields."""

    what: str
    pattern: re.Pattern[str]
    patterns: tuple[re.Pattern[str], ...]
    where: Literal["anywhere", "head", "tail", "rest"] = "anywhere"
    gives: tuple[str, ...] = ()
    code: bool = False
    needs: tuple[str, ...] = ()
    quotable: bool = False
    shared: bool = False
    reason: str = "leftover"

    @classmethod
    def of(cls, row: dict[str, Any]) -> "_Sign":
        flags = re.MULTILINE | (0 if row.pop("case", False) else re.IGNORECASE)
        patterns = row.pop("patterns")
        return cls(
            pattern=re.compile("|".join(patterns), flags),
            patterns=tuple(re.compile(each, flags) for each in patterns),
            gives=tuple(row.pop("in", ())),
            needs=tuple(row.pop("needs", ())),
            **row,
        )

    def search(self, text: str) -> re.Match[str] | None:
        """Where the sign is in a text."""
        if self.where == "head":
            return self.pattern.match(text.lstrip(HEAD))
        return self.pattern.search(text[-TAIL_CHARACTERS:] if self.where == "tail" else text)

    def is_given(self, text: str, found: str, gives: Gives, given: Mapping[str, str]) -> bool:
        """Whether one of the given texts has it itself, so that it is none of the model's.

        At the head by the same pattern: a query "sorry" excuses no "I'm sorry, but I cannot".
        """
        quoted = found.strip().lower()
        texts = given.values()
        if self.quotable and len(quoted) >= MIN_QUOTED and any(quoted in t.lower() for t in texts):
            return True
        if self.shared and gives == "Query":
            words = {word for word in plain_words(found) if len(word) > 4 or word.isdecimal()}
            if not words.isdisjoint(plain_words(given.get("query_positive", ""))):
                return True
        if self.where != "head":
            return any(self.pattern.search(one) for one in texts)
        shown = [each for each in self.patterns if each.match(text.lstrip(HEAD))]
        return all(any(each.match(one.lstrip(HEAD)) for one in texts) for each in shown)


_SIGNS = tuple(
    _Sign.of(row)
    for row in tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["sign"]
)
_DESCRIPTIONS = [plain_words(one) for one in DESCRIPTIONS.values()]  # of the schema's fields
_LIST = re.compile(r"\s*(?:\(?\d{1,2}[.)]\s|[-*•–—]\s|note\b[^\n]{0,12}:)", re.IGNORECASE)
_ECHO = re.compile(
    r"(?:(?:the|your|an?|my|new|old|search|given|negative|positive|contradict(?:ory|ing)|opposite"
    r"|different|revised|rewritten|single|short),?\s+)*"
    r"(?:instruction|query|passage|string|text|document|value|answer|n/?a|null|none|undefined|todo)"
    r"(?:\s+(?:here|text|goes here|alone))?",
    re.IGNORECASE,
)


def find_leftover(
    gives: Gives,
    text: str,
    *,
    rest: str = "",
    prompt: Prompt | None = None,
    given: Mapping[str, str] | None = None,
) -> Leftover | None:
    """The first leftover in a text or in the `rest` of its answer; None for a clean one.

    `given`: the inputs of the request; `language` among them says that the texts are code.
    """
    given = given or {}
    source = "\n".join(given.values())
    code = bool(given.get("language"))
    lowered = text.lower()
    for sign in _SIGNS:
        if (sign.gives and gives not in sign.gives) or (code and not sign.code):
            continue
        if sign.needs and not any(one in lowered for one in sign.needs):
            continue
        found = sign.search(rest if sign.where == "rest" else text)
        if found is not None and not sign.is_given(text, found.group(), gives, given):
            return Leftover(f"{sign.what} (“{_shortened(found.group())}”)", sign.reason)
    what = (None if code else _marks(text, source)) or _echo(
        text, prompt, source, line=gives != "Passage"
    )
    return None if what is None else Leftover(what)


def find_refusal(text: str) -> Leftover | None:
    """The refusal with which an answer without a label begins; None for any other answer."""
    refusals = (sign for sign in _SIGNS if sign.reason == "refused")
    found = next((one for sign in refusals if (one := sign.search(text))), None)
    return None if found is None else Leftover(f"the model refused: {text[:120]}", "refused")


def _marks(text: str, source: str) -> str | None:
    if text.count("**") % 2 and "**" not in source:
        return "a single mark of bold type (“**”)"
    for opening, closing in (('"', '"'), ("“", "”"), ("{", "}"), ("[", "]")):
        opened = text.count(opening)
        is_open = opened % 2 if opening == closing else opened != text.count(closing)
        if is_open and (text.startswith(opening) or text.rstrip(",. ").endswith(closing)):
            return f"half of a pair of marks (“{opening}{closing}”)"
    return None


def _echo(text: str, prompt: Prompt | None, source: str, *, line: bool) -> str | None:
    """Words of the prompt in place of an answer, or among it."""
    if line and (listed := _LIST.match(text)):
        return f"a numbered or listed note (“{_shortened(listed.group())}”)"
    plain = text.strip(" \t\n\"'“”*.…!:[]()<>")
    listed_words = plain_words(text)
    if not plain or _ECHO.fullmatch(plain) or listed_words in _DESCRIPTIONS:
        return f"an echo of the form (“{_shortened(text)}”)"
    if prompt is None:
        return None
    for run in zip(*(listed_words[start:] for start in range(ECHO_WORDS)), strict=False):
        if run in prompt.runs and " ".join(run) not in " ".join(plain_words(source)):
            return f"the prompt's own words (“{' '.join(run)}”)"
    return None


def _shortened(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 60 else text[:57] + "…"
