"""Whether two texts are in the same language, by script and function words.

No model: the script decides first; within the Latin script the function words of eight languages
are counted. A text too short to decide counts as in the same language.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import chain
from typing import Literal

LEAST_LETTERS = 20
LEAST_HITS = 3
LOOKED_AT = 500  # texts of a collection
READ_CHARACTERS = 2000  # of a text, for its tag
_SMALL_WORDS = {
    "en": "the of and to in is that for it was on are with as be this by from at which "
    "i do not or you a an",
    "de": "der die und das ist den von mit nicht ein eine des im auf für sich dem zu als auch "
    "in ich",
    "fr": "le la les des et est une dans que qui pour pas sur au avec ce il par sont du de en un à",
    "es": "el los las que una por con para es del se no su al como más pero lo este son "
    "de en y a la un",
    "it": "il di che è la per un una con non sono del della gli nel anche dei si più come "
    "e a da in le",
    "pt": "o os que uma para com não do da em no na por mais dos como foi ao das seu",
    "nl": "de het een van en is dat op te in niet zijn voor met aan ook door maar bij wordt",
    "pl": "i w na z do że się nie jest to od przez po dla są jak oraz ale był za",
}
# by code or script; of Cyrillic, letters decide
_NAMES = {
    "en": "English",
    "de": "German",
    "fr": "French",
    "es": "Spanish",
    "it": "Italian",
    "pt": "Portuguese",
    "nl": "Dutch",
    "pl": "Polish",
    "ru": "Russian",
    "uk": "Ukrainian",
    "GREEK": "Greek",
    "HEBREW": "Hebrew",
    "HANGUL": "Korean",
    "THAI": "Thai",
}
# Scripts that one language writes have its code, others are an undetermined language in a script.
_TAGS = {
    "GREEK": "el",
    "HEBREW": "he",
    "HANGUL": "ko",
    "THAI": "th",
    "ARMENIAN": "hy",
    "GEORGIAN": "ka",
    "ARABIC": "und-Arab",
    "CYRILLIC": "und-Cyrl",
    "DEVANAGARI": "und-Deva",
    "CJK": "und-Hani",
}
UNCLEAR = "the language of the document"
Language = Literal["en", "de", "fr", "es", "it", "pt", "nl", "pl"]  # those with small words
_RUSSIAN, _UKRAINIAN = frozenset("ыэёъ"), frozenset("іїєґ")
_LANGUAGES: dict[str, list[str]] = {}  # by small word
for _language, _listed in _SMALL_WORDS.items():
    for _small in set(_listed.split()):
        _LANGUAGES.setdefault(_small, []).append(_language)
_WORD, _ASCII_WORD = re.compile(r"[^\W\d_]+"), re.compile("[a-z]+")


def language_of(text: str) -> str | None:
    """A script's name, or a language's code within the Latin script; None if unclear."""
    lower = text.lower()
    words = (_ASCII_WORD if lower.isascii() else _WORD).findall(lower)  # the same, twice as fast
    letters = "".join(words)
    if len(letters) < LEAST_LETTERS:
        return None
    if not letters.isascii():
        scripts = Counter[str]()
        for letter, times in Counter(letters).items():
            scripts[_script(letter)] += times
        script, count = scripts.most_common(1)[0]
        if count < 0.6 * len(letters):
            return None
        if script != "LATIN":
            return script
    hits = Counter(dict.fromkeys(_SMALL_WORDS, 0))
    hits.update(chain.from_iterable(filter(None, map(_LANGUAGES.get, words))))
    (best, most), (_, second) = hits.most_common(2)
    return best if most >= LEAST_HITS and most >= 1.5 * second else None


def language_of_pair(query: str, passage: str) -> str | None:
    """The language of a pair's passage, which its query helps to recognise where it is a list of
    names or numbers; None if it stays unclear."""
    return language_of(passage) or language_of(f"{query} {passage}")


def language_name(query: str, passage: str) -> str:
    """The language of a pair in English, as a prompt names it ("German"); UNCLEAR where it is not
    among those that are recognised."""
    code = _with_cyrillic(language_of_pair(query, passage), passage)
    return _NAMES.get(code or "", UNCLEAR)


def name_of(code: str) -> str:
    """A language in English: "German" for `de`."""
    return _NAMES.get(code, code)


def language_of_texts(texts: Sequence[str]) -> str | None:
    """The code or script of most of the texts whose language is clear, of the first LOOKED_AT;
    None where it is of none of them."""
    found = Counter[str]()
    for text in texts[:LOOKED_AT]:
        if code := _with_cyrillic(language_of(text), text):
            found[code] += 1
    return found.most_common(1)[0][0] if found else None


def _with_cyrillic(code: str | None, text: str) -> str | None:
    """Russian and Ukrainian by the letters that the other does not have."""
    if code != "CYRILLIC":
        return code
    letters = set(text.lower())
    is_russian, is_ukrainian = not _RUSSIAN.isdisjoint(letters), not _UKRAINIAN.isdisjoint(letters)
    if is_russian == is_ukrainian:
        return code
    return "ru" if is_russian else "uk"


def is_small_word(word: str, language: str | None) -> bool:
    """Whether a word is one of the function words by which this language is recognised."""
    return language in _LANGUAGES.get(word, ())


def changed_language(before: str, after: str) -> tuple[str, str] | None:
    """The two languages, if both are known and differ."""
    one, other = language_of(before), language_of(after)
    if one is None or other is None or one == other:
        return None
    return one, other


def lang_of(text: str) -> str:
    """The `lang` of a text for screen readers and hyphenation, a language tag (BCP 47).

    "" for one that is too short or too mixed to recognise. What differs between two passages here
    differs between their texts: it reveals no role.
    """
    found = language_of(text[:READ_CHARACTERS]) or ""
    return _TAGS.get(found, "" if found.isupper() else found)


def _script(letter: str) -> str:
    if letter.isascii():
        return "LATIN"
    name = unicodedata.name(letter, "")
    first = name.split(" ", 1)[0]
    return "CJK" if first in ("CJK", "HIRAGANA", "KATAKANA") else first
