"""What is done to reviews and judges, in words: the same on pages and in commands."""

from collections.abc import Mapping
from typing import Final

from app.text.numbers import counted

REVIEWS_WORDS: Final[Mapping[str, str]] = {
    "not-rejected": "all but rejected",
    "approved": "approved only",
}


def reviews_words(code: str) -> str:
    """A code of `db.release.choice.REVIEWS` in words, any other as it is."""
    return REVIEWS_WORDS.get(code, code)


def judge_changed(action: str, moved: int, returned: int) -> str:
    """What a change of a judge (`JudgeChange`) did, in a sentence."""
    rest = f"; {returned} went back to the queue" if returned else ""
    return {
        "pause": "The judge is paused in this study; their items went back to the queue.",
        "let_in": "The judge may continue.",
        "take_back": f"{counted(returned, 'item')} went back to the queue.",
        "give": f"{counted(moved, 'item')} moved to the other judge{rest}.",
    }[action]
