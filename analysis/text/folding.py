"""Texts as overlaps compare them: without case, accents, invisible marks and look-alike letters.

NFKC (full-width and mathematical letters), then the letters that Unicode's table of confusables
(UTS 39, from the package `confusable-homoglyphs`) calls alike are one: a Cyrillic "а" is a Latin
"a". Both sides are folded the same way, so that a Cyrillic text still equals itself. ASCII
characters are left alone: "1" and "l" are different in honest texts.
"""

import re
import unicodedata
from functools import lru_cache

WORD = re.compile(r"\w+")
SEPARATORS = re.compile(r"[\W_]+")  # everything but letters and digits


def folded(text: str) -> str:
    """The text in NFKC, case-folded, without marks, look-alikes as ASCII letters."""
    if text.isascii():
        return text.casefold()
    apart = unicodedata.normalize("NFKD", text).casefold()
    kept = [each for each in apart if unicodedata.category(each) not in ("Mn", "Cf")]
    return "".join(kept).translate(_look_alikes())


def words(text: str) -> list[str]:
    """The words of a text, folded."""
    return WORD.findall(folded(text))


def letters(text: str) -> str:
    """The letters and digits of a text, folded; a text without any: itself, stripped."""
    return SEPARATORS.sub("", folded(text)) or text.strip()


@lru_cache(maxsize=1)
def _look_alikes() -> dict[int, str]:
    """ASCII letters and digits by the code of a lower-case character that looks like one.

    A letter whose capital alone looks like one (the Cyrillic capital "В") goes by its capital, so
    that both cases of it stay one letter.
    """
    from confusable_homoglyphs.confusables import confusables_data

    small: dict[int, str] = {}
    capital: dict[int, str] = {}
    for character, alike in confusables_data.items():
        if len(character) == 1 and not character.isascii() and character.isalnum():
            plain = [each["c"] for each in alike if each["c"].isascii() and each["c"].isalnum()]
            lower = character.casefold()
            if plain and len(plain[0]) == 1 and len(lower) == 1 and not lower.isascii():
                table = small if lower == character else capital
                table[ord(lower)] = plain[0].casefold()
    return capital | small
