"""Putting one phrase in the place of another so that article and number still agree (English)."""

import re

from analysis.text.words import phrase_pattern

_ARTICLE = re.compile(r"\b([Aa])n?(\s+)$")
_VOWEL_SOUND = re.compile(
    r"(?:[aeio](?!ne\b|nce\b|u(?:r|k|g|c))|u(?!ni(?!n|m)|s[aeiu]|t[ei]|r[aeiou]|b[io]|k)|hour|hones|"
    r"honou?r|heir|8|11(?!\d)|18(?!\d))",
    re.IGNORECASE,
)
_SPELLED = re.compile(r"[A-Z]{2,}s?\b|[A-Z]\b")
_VOWEL_LETTERS = "AEFHILMNORSX"


def article_of(phrase: str) -> str:
    """The indefinite article of a phrase by its first sound: "a" or "an"; acronyms are spelled."""
    if _SPELLED.match(phrase):
        return "an" if phrase[0] in _VOWEL_LETTERS else "a"
    return "an" if _VOWEL_SOUND.match(phrase) else "a"


def is_plural(text: str) -> bool:
    """Whether the last word looks like a plural."""
    last = text.split()[-1].lower()
    return len(last) > 2 and last.endswith("s") and not last.endswith(("ss", "us", "is"))


def plural_of(phrase: str) -> str:
    """The regular plural of a phrase; as it is where it looks like one already."""
    if is_plural(phrase) or not phrase.isascii() or not phrase[-1].isalpha():
        return phrase
    if re.search(r"[^aeiou]y$", phrase):
        return phrase[:-1] + "ies"
    return phrase + ("es" if re.search(r"(?:s|x|z|ch|sh)$", phrase) else "s")


def singular_of(phrase: str) -> str:
    """The regular singular of a phrase that looks like a plural; others as they are."""
    if not is_plural(phrase):
        return phrase
    if phrase.endswith("ies") and len(phrase) > 4:
        return phrase[:-3] + "y"
    return phrase[: -2 if re.search(r"(?:ss|x|z|ch|sh)es$", phrase) else -1]


def swapped(text: str, old: str, new: str, language: str = "en") -> str:
    """The text with `new` wherever `old` stood, in singular or plural.

    Of other languages than English only the phrase is replaced: their "a" is no article.

    A plural is replaced by a plural and a singular by a singular, `a` and `an` before it follow its
    sound, and a capital at a sentence's start is kept.
    """
    parts: list[str] = []
    end = 0
    for match in phrase_pattern(old).finditer(text):
        found, before = match.group(), text[end : match.start()]
        put, is_english = new, language == "en"
        if is_english and new.islower() and is_plural(found) != is_plural(old):
            put = plural_of(new) if is_plural(found) else singular_of(new)
        if is_english and (article := _ARTICLE.search(before)):
            before = before[: article.start()] + _like(article[1], article_of(put)) + article[2]
        so_far = ("".join(parts) + before).rstrip()
        starts = not so_far or so_far[-1] in ".!?:"
        parts += [before, put[:1].upper() + put[1:] if starts and found[0].isupper() else put]
        end = match.end()
        if is_english and is_plural(put) and text[end : end + 2] in ("'s", "’s"):
            parts.append(text[end])
            end += 2
    return "".join(parts) + text[end:]


def _like(letter: str, article: str) -> str:
    return article.capitalize() if letter.isupper() else article
