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


def judges_changed(action: str, judges: int, moved: int, returned: int) -> str:
    """What a change of judges (`JudgeChange`) did, in a sentence."""
    rest = f"; {returned} went back to the queue" if returned else ""
    who, be = counted(judges, "judge"), "is" if judges == 1 else "are"
    return {
        "pause": f"{who} {be} paused in this study; their items went back to the queue.",
        "let_in": f"{who} may continue.",
        "take_back": f"{counted(returned, 'item')} went back to the queue.",
        "give": f"{counted(moved, 'item')} moved to the other judge{rest}.",
        "set": f"Set for {who}.",
        "unset": f"{who} {'has' if judges == 1 else 'have'} neither quota nor due date.",
    }[action]
