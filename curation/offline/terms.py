"""Terms of a text by kind: names, places, years, plain terms; and the key term of a query.

A kind is recognised from the letters alone (capitals inside a sentence, the word before, digits):
it is a rule, not knowledge, and sometimes wrong.
"""

import re
from collections.abc import Collection, Mapping
from typing import NamedTuple

from analysis.text.words import FUNCTION_WORDS, WORD, phrase_pattern, sentences
from curation.offline.grammar import article_of, is_plural
from curation.rules.language import is_small_word, language_of

NAME = "name"
PLACE = "place"
YEAR = "year"
TERM = "term"
KINDS = (NAME, PLACE, YEAR, TERM)

_CAPITAL = r"[A-ZÀ-ÖØ-Þ][\w'’]+"
_NAME = re.compile(rf"{_CAPITAL}(?:(?:\s+(?:of|de|the|and|von|van)\s+|\s+|-){_CAPITAL}){{0,3}}")
_YEAR = re.compile(r"(?<![\d,.\-–])(1[0-9]{3}|20[0-4][0-9])(?![\d,]*\d|-)")
_PLACE_BEFORE = re.compile(r"\b(?:in|at|near|from|across|of|to|through|throughout)\s+(?:the\s+)?$")
_THE_BEFORE = re.compile(r"\bthe\s+$")
_DATES = """
january february march april may june july august september october november december
monday tuesday wednesday thursday friday saturday sunday
"""
_MONTHS = frozenset(_DATES.split())
_NOUN = re.compile(
    r"\b(the|an?|of|with|by|from|into|for|in|on|and|or|its|their|his|her|this|as|under)"
    r"(?:\s+[a-z]+)?\s+([a-z]+)"
    r"(?=\s*[,.;:)]|\s+(?:of|in|on|at|by|for|from|with|and|or|is|are|was|were|that|which|who|to|as"
    r"|has|have|had|can|may|into|than|when|while|but|until|under)\b)"
)
_BARE_AFTER = frozenset(["of", "with", "by", "from", "into", "for", "in", "on", "as", "under"])
_NOT_NOUNS = ("ly", "ing", "ed", "ous", "ful", "ive", "able", "ible", "est", "less", "ical", "ish")
MAX_TERM_WORDS = 4


class Term(NamedTuple):
    """A phrase, its kind, and the article it has in a sentence ("", "a", "an" or "the")."""

    kind: str
    text: str
    article: str = ""


def terms_of(text: str) -> list[Term]:
    """Names, places and years of a text, each once, in order."""
    found: dict[str, Term] = {}
    for sentence in sentences(text):
        for match in _NAME.finditer(sentence):
            value = match.group().strip("'’ ")
            if match.start() == 0 or (value.isupper() and len(value) < 3):
                continue  # the first word of a sentence has a capital anyway
            plain = value.lower().split()
            if all(word in FUNCTION_WORDS or word in _MONTHS for word in plain):
                continue
            if len(value) < 4:
                continue
            kind = PLACE if _PLACE_BEFORE.search(sentence[: match.start()]) else NAME
            article = "the" if _THE_BEFORE.search(sentence[: match.start()]) else ""
            found.setdefault(value.lower(), Term(kind, value, article))
        for match in _YEAR.finditer(sentence):
            found.setdefault(match.group(), Term(YEAR, match.group()))
    return list(found.values())


def plain_terms_of(text: str, frequencies: Mapping[str, int], rare_below: int) -> list[Term]:
    """Lower-case nouns that are rare in the dataset, each once, in order.

    A noun is a word after an article, a preposition or the like and before a small word or a stop:
    a rule for English, which finds none in a text of another language.
    """
    if language_of(text) not in ("en", None):
        return []
    found: dict[str, Term] = {}
    for sentence in sentences(text):
        for match in _NOUN.finditer(sentence):
            before, word = match.groups()
            if len(word) < 5 or word in FUNCTION_WORDS or word.endswith(_NOT_NOUNS):
                continue
            if frequencies.get(word, 0) <= rare_below:
                found.setdefault(word, Term(TERM, word, _article(before, word)))
    return list(found.values())


def subject_in(text: str, key: Term) -> str:
    """The key term where the text uses it as a noun or name, else "": no other could replace it."""
    last = key.text.split()[-1].lower()
    nouns = {match.group(2) for match in _NOUN.finditer(text)}
    return key.text if key.kind == NAME or last in nouns else ""


def written_in(text: str, phrase: str) -> str:
    """The phrase as the text writes it inside a sentence: queries are typed without capitals."""
    for match in phrase_pattern(phrase).finditer(text):
        before = text[: match.start()].rstrip()
        if before and before[-1] not in ".!?:" and match.group().lower() == phrase.lower():
            return match.group()
    return phrase


def _article(before: str, word: str) -> str:
    """The article of a noun after this word: none for a plural or where the text has none."""
    if is_plural(word) or before in _BARE_AFTER:
        return ""
    return article_of(word) if before in ("a", "an") else "the"


def key_term(query: str, passage: str, frequencies: Mapping[str, int]) -> Term | None:
    """The phrase of the query that its passage is about: the longest, then the rarest one in both.

    None where they share no content word. The text is as the query writes it.
    """
    tokens, language = list(WORD.finditer(query)), language_of(passage)
    best: tuple[float, Term] | None = None
    for length in range(MAX_TERM_WORDS, 0, -1):
        for start in range(len(tokens) - length + 1):
            part = [token.group().lower() for token in tokens[start : start + length]]
            if part[0] in FUNCTION_WORDS or part[-1] in FUNCTION_WORDS:
                continue
            if len(part) == 1 and len(part[0]) < 3:
                continue
            if language != "en" and is_small_word(part[0], language):
                continue
            if language != "en" and is_small_word(part[-1], language):
                continue
            phrase = query[tokens[start].start() : tokens[start + length - 1].end()]
            if phrase_pattern(phrase).search(passage) is None:
                continue
            rarity = sum(1.0 / (1 + frequencies.get(word, 0)) for word in part)
            score = len([word for word in part if word not in FUNCTION_WORDS]) + rarity
            if best is None or score > best[0]:
                best = (score, Term(_kind_in(passage, phrase), phrase))
    return None if best is None else best[1]


def _kind_in(passage: str, phrase: str) -> str:
    if _YEAR.fullmatch(phrase):
        return YEAR
    for match in phrase_pattern(phrase).finditer(passage):
        before = passage[: match.start()].rstrip()
        inside = bool(before) and before[-1] not in ".!?"
        if inside and match.group()[0].isupper():
            return NAME
    return TERM


def overlap(one: Collection[str], other: Collection[str]) -> float:
    """Jaccard similarity of two sets of words; 0 for two empty ones."""
    left, right = set(one), set(other)
    union = len(left | right)
    return len(left & right) / union if union else 0.0
