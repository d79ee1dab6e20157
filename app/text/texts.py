"""Texts of the data, verbatim: escaped, never Markdown or HTML; words that changed are marked."""

import re
from difflib import SequenceMatcher
from html import escape

import streamlit as st

PIECE = re.compile(r"\w+|\s+|[^\w\s]")
MOST_PIECES = 4000


def draw_text(
    text: str, *, label: str = "", unlike: str | None = None, whole: bool = False
) -> None:
    """The text as it is; with `unlike`, what that other text has not is marked.

    A long text scrolls in its place, unless it is to be seen whole.
    """
    body = escape(text) if unlike is None else marked(text, unlike)
    above = f'<p class="inf-label">{escape(label)}</p>' if label else ""
    height = ' style="max-height: none"' if whole else ""
    st.html(f'{above}<p class="inf-text" dir="auto"{height}>{body}</p>')


def marked(text: str, other: str) -> str:
    """The text as HTML with what `other` does not have in <mark>; plain where it is too long."""
    return "".join(
        f"<mark>{escape(piece)}</mark>" if is_new else escape(piece)
        for piece, is_new in differences(text, other)
    )


def differences(text: str, other: str) -> list[tuple[str, bool]]:
    """The text in pieces, each with whether `other` lacks it there; the pieces make the text.

    Texts of more than MOST_PIECES words are given back whole: the comparison is quadratic.
    """
    new, old = PIECE.findall(text), PIECE.findall(other)
    if text == other or len(new) > MOST_PIECES or len(old) > MOST_PIECES:
        return [(text, False)]
    matcher = SequenceMatcher(None, [p.lower() for p in old], [p.lower() for p in new], False)
    pieces: list[tuple[str, bool]] = []
    for tag, _, _, start, end in matcher.get_opcodes():
        if end > start:
            piece = "".join(new[start:end])
            pieces.append((piece, tag != "equal" and not piece.isspace()))
    return pieces
