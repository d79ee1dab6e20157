"""Which groups a release takes by their reviews, in words; `inf export` has the codes."""

from collections.abc import Mapping
from typing import Final

REVIEWS_WORDS: Final[Mapping[str, str]] = {
    "not-rejected": "all but rejected",
    "approved": "approved only",
}


def reviews_words(code: str) -> str:
    """A code of `db.release.choice.REVIEWS` in words, any other as it is."""
    return REVIEWS_WORDS.get(code, code)
