"""The rule filter: which texts are dropped before validation, with the drop reason. Pure."""

import re
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass

from analysis.text.words import shared_run, words
from curation.recipe.settings import Filters
from curation.rules.language import changed_language
from curation.rules.personal_data import find_personal_data
from db.shape import GroupText, Shape


@dataclass(frozen=True)
class Drop:
    """Why a group is dropped: a counted reason, and the detail for a reader."""

    reason: str
    detail: str


def check_text(
    shape: Shape,
    text: GroupText,
    written: str,
    rules: Filters,
    texts: Mapping[str, str],
    *,
    language: str = "",
) -> Drop | None:
    """A text of a group by its field; `texts`: what it must differ from and was written for.

    `texts` is by sign and holds at least the pair's two and the instruction of a passage.
    """
    if rules.in_pair_language and (drop := _language(text.column, written, texts[_pair(shape)])):
        return drop
    first = shape.counterpart(text)
    positive = None if first is None else texts[first.sign]
    if text.field == "instruction":
        return check_instruction(
            written, rules, positive=positive, language=language, what=text.column
        )
    if text.field == "query":
        return check_query(written, rules, positive=positive or "", what=text.column)
    instruction = texts[shape.scenarios[text.introduced_by].instruction.sign]
    return check_passage(
        text.sign, written, rules, positive=positive or "", instruction=instruction
    )


def _pair(shape: Shape) -> str:
    """The sign of the pair's passage."""
    return shape.first.passage.sign


def check_instruction(
    text: str,
    rules: Filters,
    *,
    positive: str | None = None,
    language: str = "",
    what: str = "instruction",
) -> Drop | None:
    """Check an instruction; the poisoned one must differ from the positive one.

    With the recipe's `same_language`, both must name the pair's programming language.
    """
    return (
        _length(what, text, rules.max_instruction_words)
        or _changed(what, text, positive)
        or _private(what, text, positive or "")
        or _language(what, text, positive or "")
        or (_named(what, text, language) if rules.same_language else None)
    )


def check_query(text: str, rules: Filters, *, positive: str, what: str = "query") -> Drop | None:
    """Check a poisoned query."""
    return (
        _length(what, text, rules.max_query_words)
        or _changed(what, text, positive)
        or _private(what, text, positive)
    )


def check_passage(
    what: str, text: str, rules: Filters, *, positive: str, instruction: str
) -> Drop | None:
    """Check a generated passage: not P+ again, not quoting the instruction it was written for."""
    drop = (
        _length(what, text, rules.max_passage_words)
        or _changed(what, text, positive)
        or _private(what, text, positive)
        or _language(what, text, positive)
    )
    if drop is not None:
        return drop
    quoted = shared_run(instruction, text, rules.quoted_words)
    if quoted is not None:
        return Drop("quotes_instruction", f"{what} repeats “{quoted}” from the instruction")
    return None


def _length(what: str, text: str, maximum: int) -> Drop | None:
    count = len(words(text))
    if count == 0:
        return Drop("empty", f"{what} has no words")
    if count > maximum:
        return Drop("too_long", f"{what} has {count} words, the maximum is {maximum}")
    return None


def _changed(what: str, text: str, positive: str | None) -> Drop | None:
    if positive is not None and _plain(text) == _plain(positive):
        return Drop("unchanged", f"{what} is the same as the positive one")
    return None


def _private(what: str, text: str, positive: str) -> Drop | None:
    """Personal data that is not in the positive text itself."""
    for found in find_personal_data(text):
        if found.text not in positive:
            return Drop("personal_data", f"{what} holds what looks like: {found.kind}")
    return None


def _language(what: str, text: str, positive: str) -> Drop | None:
    changed = changed_language(positive, text)
    if changed is None:
        return None
    return Drop("language_changed", f"{what} is in {changed[1]}, the positive one in {changed[0]}")


def _named(what: str, text: str, language: str) -> Drop | None:
    if not language:
        return Drop("no_language", "the pair does not name its programming language")
    pattern = rf"(?<![\w+#]){re.escape(language)}(?![\w+#])"
    if re.search(pattern, text, re.IGNORECASE) is None:
        return Drop("language_not_named", f"{what} does not name {language}")
    return None


def repeats(text: str, other: str) -> bool:
    """Whether two texts have the same words."""
    return _plain(text) == _plain(other)


def _plain(text: str) -> list[str]:
    return words(unicodedata.normalize("NFKC", text))
