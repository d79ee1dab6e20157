"""Words, sentences and phrases of a text, as the offline rules see them. Pure and quick."""

import re
from collections.abc import Iterator
from functools import lru_cache

# Signs that Python's \w leaves out and no word ends at: accents of decomposed letters, points of
# Hebrew and Arabic, vowels of the scripts of India. Of other texts nothing is split otherwise.
MARKS = (
    r"\u0300-\u036f\u0591-\u05bd\u05bf\u05c1\u05c2\u05c4\u05c5\u05c7\u0610-\u061a\u064b-\u065f"
    r"\u0670\u0900-\u0963\u0970-\u0df3\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff"
)
TOKEN = rf"(?u)\b\w[\w{MARKS}]+"  # as scikit-learn's and bm25s's own pattern, with marks
_RUN = rf"[^\W_](?:[^\W_]|[{MARKS}])*"
WORD = re.compile(rf"{_RUN}(?:['’\-]{_RUN})*")
SENTENCE_END = re.compile(r"(?<=[.!?])[\"'”’)\]]*\s+(?=[\"'“‘(\[`]*[A-Z0-9])")
_LISTED = """
's a about above across actually after again against ago all almost along already also
although always am among an and another any anymore anyone anything are around as at away back
be became because become becomes been before behind being below best better between both but
by came can can't cannot cant come comes could did difference different do does doesn't doesnt
doing don't done dont down during each either else enough even ever every far few first for
found from full get gets getting give given gives go goes going gone good got had has have
having he her here hers him his how i if in instead into is isn isn't isnt it it's its itself
just keep kind know known last later least less like likely long look made make makes making
many may me mean means might more most much must my name named need needs neither never new
next no nobody none nor not now of off often old on once one only onto or other others our out
over own part per possible put rather really same say says see seen set several shall she
should since so some someone something still such take taken takes than that the their them
then there these they thing things this those though through thus to too took toward true two
type under until up upon us use used uses using usually very want was we well were what when
where whether which while who whole whom whose why will with within without would yes yet you
your yours
"""
FUNCTION_WORDS = frozenset(_LISTED.split())


def words(text: str) -> list[str]:
    """The words of a text, lower-cased."""
    return [match.group().lower() for match in WORD.finditer(text)]


def content_words(text: str, listed: frozenset[str] = FUNCTION_WORDS) -> set[str]:
    """Words that carry a subject: no function words, which are English unless others are `listed`,
    no single letters."""
    return {word for word in words(text) if len(word) > 2 and word not in listed}


def sentences(text: str) -> list[str]:
    """The sentences of a text, in order, none empty."""
    return [part.strip() for part in SENTENCE_END.split(text) if part.strip()]


@lru_cache(maxsize=16384)
def phrase_pattern(phrase: str) -> re.Pattern[str]:
    """Finds a phrase as whole words, whatever its case and spacing, in singular and plural."""
    parts = [re.escape(part) for part in phrase.split()]
    last = parts[-1] if parts else ""
    if len(last) > 3 and last.endswith("s") and not last.endswith("ss"):
        parts[-1] = last + "?"
    elif len(last) > 2 and last[-1].isalpha():
        parts[-1] = last + "s?"
    return re.compile(r"(?<![^\W_])" + r"\s+".join(parts) + r"(?![^\W_])", re.IGNORECASE)


def mentions(text: str, phrase: str) -> bool:
    """Whether the phrase stands in the text as whole words."""
    return phrase_pattern(phrase).search(text) is not None


def shared_run(one: str, other: str, length: int) -> str | None:
    """The first run of `length` words that both texts hold, None where there is none."""
    left, right = words(one), words(other)
    seen = set(_runs(left, length))
    for run in _runs(right, length):
        if run in seen:
            return " ".join(run)
    return None


def _runs(tokens: list[str], length: int) -> Iterator[tuple[str, ...]]:
    for start in range(len(tokens) - length + 1):
        yield tuple(tokens[start : start + length])
