"""The `lang` of a text for screen readers and hyphenation: from the text alone.

What differs between two passages here differs between their texts: it reveals no role.
"""

from curation.rules.language import language_of

READ_CHARACTERS = 2000
# Scripts that one language writes have its code, others are an undetermined language in a script.
OF_SCRIPT = {
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


def lang_of(text: str) -> str:
    """A language tag (BCP 47), "" if the text is too short or too mixed to recognise."""
    found = language_of(text[:READ_CHARACTERS]) or ""
    return OF_SCRIPT.get(found, "" if found.isupper() else found)
