"""Function words of 58 languages (stopwordsiso), and the language of a text by them.

The lists are long: number words, auxiliaries and what questions begin with are in them. They load
when they are first needed: for naming clusters only.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Final

ENGLISH: Final = "en"
MIN_WORDS, MIN_SHARE = 2, 0.2  # of a text's words, to recognise its language
_NAMES = """
    af Afrikaans ar Arabic bg Bulgarian bn Bengali br Breton ca Catalan cs Czech da Danish
    de German el Greek en English eo Esperanto es Spanish et Estonian eu Basque fa Persian
    fi Finnish fr French ga Irish gl Galician gu Gujarati ha Hausa he Hebrew hi Hindi hr Croatian
    hu Hungarian hy Armenian id Indonesian it Italian ja Japanese ko Korean ku Kurdish la Latin
    lt Lithuanian lv Latvian mr Marathi ms Malay nl Dutch no Norwegian pl Polish pt Portuguese
    ro Romanian ru Russian sk Slovak sl Slovenian so Somali st Sotho sv Swedish sw Swahili th Thai
    tl Tagalog tr Turkish uk Ukrainian ur Urdu vi Vietnamese yo Yoruba zh Chinese zu Zulu
"""
LANGUAGE_NAMES: Final = dict(re.findall(r"(\w+) (\w+)", _NAMES))
# The letters of a script, and the language of a text whose function words show none: without
# spaces there are no words to count.
_SCRIPTS: Final = {
    code: re.compile(f"[{letters}]")
    for code, letters in {
        "ja": "\u3040-\u30ff",
        "zh": "\u3400-\u4dbf\u4e00-\u9fff",
        "ko": "\u1100-\u11ff\uac00-\ud7af",
        "th": "\u0e00-\u0e7f",
        "hi": "\u0900-\u097f",
        "bn": "\u0980-\u09ff",
        "gu": "\u0a80-\u0aff",
        "he": "\u0590-\u05ff",
        "ar": "\u0600-\u06ff\u0750-\u077f",
        "hy": "\u0530-\u058f",
        "el": "\u0370-\u03ff",
        "ru": "\u0400-\u04ff",
    }.items()
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


def language_by_script(text: str) -> str:
    """The code of the language of the script of more than half of a text's letters; "" for Latin
    letters. Japanese is where a tenth of its characters are kana, else Chinese."""
    counts = {code: len(letters.findall(text)) for code, letters in _SCRIPTS.items()}
    kana, han = counts["ja"], counts["zh"]
    counts |= {"ja": 0, "zh": 0, "ja" if kana > (kana + han) / 10 else "zh": kana + han}
    code = max(counts, key=counts.__getitem__)
    return code if counts[code] > sum(map(str.isalpha, text)) / 2 else ""


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
