"""Names that people go by: which are refused, and what two names share that look alike. Pure.

A judge is found by its kind and its account, never by its name alone; these rules keep what is
*shown* unambiguous. Names with a colon belong to machines (`openai:MODEL`, `simulated:1`,
`adjudicator:NAME`, `cli:USER`, and people of imported files: `argilla:USER`).
"""

import unicodedata
from functools import cache
from typing import Final

from db.values import LOCAL_ADMIN

MAX_NAME_CHARACTERS: Final = 80
DELETED: Final = "deleted person"
# Added to the name of a person's judge where a machine has the name (stores made before 0019).
PERSON_SUFFIX: Final = " (person)"
# Printable by Unicode, yet nothing is seen: fillers, the joiner of graphemes, variation selectors.
INVISIBLE: Final = frozenset(
    map(
        chr,
        (
            *(0x034F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2800, 0x3164, 0xFFA0),
            *range(0x180B, 0x1810),
            *range(0xFE00, 0xFE10),
            *range(0xE0100, 0xE01F0),
        ),
    )
)
# "Highly restrictive" of Unicode's UTS 39, 5.2: one script, or Latin with these.
TOGETHER: Final = (
    frozenset(("LATIN", "HAN", "HIRAGANA", "KATAKANA")),
    frozenset(("LATIN", "HAN", "BOPOMOFO")),
    frozenset(("LATIN", "HAN", "HANGUL")),
)


def tidy_name(name: str) -> str:
    """The name in Unicode's form NFC, without spaces around it or several in a row."""
    return " ".join(filter(None, unicodedata.normalize("NFC", name).strip().split(" ")))


def name_key(name: str) -> str:
    """What the store keeps unique: the name without case, width and look-alike characters.

    `ann1`, `ANN1`, `annl` and one with a Cyrillic "а" have the same key.
    """
    folded = unicodedata.normalize("NFKC", name).casefold()
    return skeleton(unicodedata.normalize("NFKC", folded))


def skeleton(name: str) -> str:
    """The name with each character replaced by the one it looks like (UTS 39), case kept."""
    alike = "".join(_prototype(each) for each in unicodedata.normalize("NFKC", name))
    return alike.replace("rn", "m")


def look_alike(one: str, other: str) -> bool:
    """Whether two names can be taken for each other: by key, or as they are written."""
    return name_key(one) == name_key(other) or skeleton(one) == skeleton(other)


def name_problem(name: str) -> str | None:
    """Why a person cannot have this name, as a code of `refused.account_name…`; None if they can.

    `length`: empty or over MAX_NAME_CHARACTERS. `characters`: some cannot be printed or seen.
    `reserved`: a machine's, the local admin's or a deleted person's. `scripts`: letters of several
    scripts, as in a Latin name with a Cyrillic "а".
    """
    if not name or len(name) > MAX_NAME_CHARACTERS:
        return "length"
    if not name.isprintable() or INVISIBLE & set(name) or name != tidy_name(name):
        return "characters"
    seen = unicodedata.normalize("NFKC", name).casefold()
    if any(_prototype(each) == ":" for each in seen):
        return "reserved"
    letters = _letters(name)
    if letters == _letters(LOCAL_ADMIN) or letters.startswith(_letters(DELETED)):
        return "reserved"
    written = (LOCAL_ADMIN, LOCAL_ADMIN.title(), LOCAL_ADMIN.upper())
    if seen.endswith(PERSON_SUFFIX) or any(look_alike(name, one) for one in written):
        return "reserved"
    scripts = _scripts(name)
    if len(scripts) > 1 and not any(scripts <= each for each in TOGETHER):
        return "scripts"
    return None


def _letters(name: str) -> str:
    """The letters and digits of a name's key: "local-admin" has those of "local admin"."""
    return "".join(filter(str.isalnum, name_key(name)))


def _scripts(name: str) -> frozenset[str]:
    from confusable_homoglyphs.categories import unique_aliases

    return frozenset(unique_aliases(name)) - {"COMMON", "INHERITED"}


@cache
def _prototype(character: str) -> str:
    """The character that stands for all that look like this one: "1" for "l", "I" and "|".

    Of those within two steps of the table, the ASCII letter or digit with the lowest code point;
    in one step "I" is like "l" and not yet like "1".
    """
    alike = _alike(character)
    alike = alike.union(*map(_alike, alike))
    plain = sorted(one for one in alike if one.isascii() and one.isprintable())
    letters = [one for one in plain if one.isalnum()]
    return (letters or plain or [character])[0]


def _alike(character: str) -> frozenset[str]:
    from confusable_homoglyphs.confusables import confusables_data

    listed = (each["c"] for each in confusables_data.get(character, ()))
    return frozenset((character, *(one for one in listed if len(one) == 1)))
