"""Draw texts of the data verbatim (escaped, never Markdown or HTML), with differences marked."""

import re
from collections.abc import Sequence
from difflib import SequenceMatcher, unified_diff
from html import escape

import streamlit as st

PIECE = re.compile(r"\w+|\s+|[^\w\s]")
MOSTLY = 0.6  # of a text's characters
MAX_PIECES = 4000


def draw_text(
    text: str,
    *,
    label: str = "",
    meaning: str = "",
    unlike: str | None = None,
    whole: bool = False,
    lang: str = "",
) -> None:
    """Draw the text verbatim; with `unlike`, mark what that other text does not contain.

    A long text scrolls, unless `whole`. `lang` is its language tag, if known. The label has its
    `meaning` on hover: that of a group's text (`db.shape.GroupText.meaning`).
    """
    body = escape(text) if unlike is None else marked(text, unlike)
    name = escape(label)
    name = f'<abbr title="{escape(meaning)}">{name}</abbr>' if meaning else name
    above = f'<p class="inf-label">{name}</p>' if label else ""
    height = ' style="max-height: none"' if whole else ""
    language = f' lang="{escape(lang)}"' if lang else ""
    # tabindex: a text that scrolls has to be reached by keyboard, too
    st.html(f'{above}<p class="inf-text" dir="auto" tabindex="0"{language}{height}>{body}</p>')


def changed_lines(before: str, now: str) -> list[str]:
    """The lines that were taken out, after `-`, and those that were put in, after `+`, in order."""
    found = unified_diff(before.splitlines(), now.splitlines(), n=0, lineterm="")
    return [line for line in list(found)[2:] if not line.startswith("@@")]


def marked(text: str, other: str) -> str:
    """The text as HTML with <mark> around what `other` does not contain; unmarked if too long."""
    return "".join(
        f"<mark>{escape(piece)}</mark>" if is_new else escape(piece)
        for piece, is_new in differences(text, other)
    )


def differs_throughout(pieces: Sequence[tuple[str, bool]]) -> bool:
    """Whether most of a compared text is new: marking it would mark nothing."""
    marked = sum(len(piece) for piece, is_new in pieces if is_new)
    return marked > MOSTLY * sum(len(piece) for piece, _ in pieces)


def differences(text: str, other: str) -> list[tuple[str, bool]]:
    """The text split into pieces, each with whether it is missing from `other` at that position.

    The pieces concatenate to the text. Texts of more than MAX_PIECES words are one piece:
    the comparison is quadratic.
    """
    new, old = PIECE.findall(text), PIECE.findall(other)
    if text == other or len(new) > MAX_PIECES or len(old) > MAX_PIECES:
        return [(text, False)]
    matcher = SequenceMatcher(None, [p.lower() for p in old], [p.lower() for p in new], False)
    pieces: list[tuple[str, bool]] = []
    for tag, _, _, start, end in matcher.get_opcodes():
        if end > start:
            piece = "".join(new[start:end])
            pieces.append((piece, tag != "equal" and not piece.isspace()))
    return pieces
