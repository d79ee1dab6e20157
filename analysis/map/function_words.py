"""Function words of 58 languages (stopwordsiso), and the language of a text by them.

The lists are long: number words, auxiliaries and what questions begin with are in them. They load
when they are first needed: for naming clusters only.
"""

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Final

ENGLISH: Final = "en"
MIN_WORDS, MIN_SHARE = 2, 0.2  # of a text's words, to recognise its language
LANGUAGE_NAMES: Final = {
    "da": "Danish",
    "de": "German",
    "en": "English",
    "es": "Spanish",
    "fr": "French",
    "it": "Italian",
    "nl": "Dutch",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ru": "Russian",
    "sv": "Swedish",
    "tr": "Turkish",
}


def languages_of(words: Sequence[str]) -> tuple[str, ...]:
    """The codes (ISO 639-1) of the languages of most function words among a text's lower-case
    words, in order; English alone where it is one of several. Empty if there are too few."""
    hits = Counter[str]()
    for word in words:
        hits.update(_languages_by_word().get(word, ()))
    most = max(hits.values(), default=0)
    if most < max(MIN_WORDS, MIN_SHARE * len(words)):
        return ()
    found = tuple(sorted(code for code, count in hits.items() if count == most))
    return (ENGLISH,) if ENGLISH in found else found


@cache
def function_words(languages: tuple[str, ...]) -> frozenset[str]:
    """The function words of these languages; none for English, of which the caller has a list."""
    import stopwordsiso

    return frozenset(stopwordsiso.stopwords([code for code in languages if code != ENGLISH]))


@cache
def _languages_by_word() -> dict[str, tuple[str, ...]]:
    import stopwordsiso

    found: dict[str, list[str]] = {}
    for code in sorted(stopwordsiso.langs()):
        for word in stopwordsiso.stopwords(code):
            found.setdefault(word, []).append(code)
    return {word: tuple(codes) for word, codes in found.items()}
