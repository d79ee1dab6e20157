"""A release's dataset card as a page shows it: rendered, its prompts and metadata on request."""

import html
import re
from collections.abc import Iterator

import streamlit as st

from app.kit.figure import draw_picture
from curation.release.plan import PICTURE

HEIGHT = 560
PROMPT = re.compile(
    r"<details><summary>Prompt <code>(.*?)</code></summary>\n\n"
    r"(`{3,})text\n(.*?)\n\2\n\n</details>\n*",
    re.DOTALL,
)
DRAWN = re.compile(rf"^!\[([^\]\n]*)\]\({re.escape(PICTURE)}\)$", re.MULTILINE)
CODE = r"^(?P<fence>`{3,}).*?^(?P=fence)$|`[^`\n]+`"
# What the Hub takes as it stands and a page of Streamlit does not.
OTHERWISE = re.compile(
    rf"(?P<code>{CODE})|(?P<sign>\$|:(?=\w))|^# [^\n]*\n|^(?P<head>##+) "
    r"|^> \[!\w+\]\n|^!\[[^\n]*\]\([^\n]*\)$",
    re.DOTALL | re.MULTILINE,
)


def parts_of(card: str) -> Iterator[tuple[str, str]]:
    """The card's body in its order: ("", Markdown), (name of a prompt, its text), or (PICTURE, what
    the release's picture shows)."""
    _, _, body = card.partition("\n---\n")
    names = iter(PROMPT.split(body))
    yield from _texts_of(next(names))
    for name, _, text, then in zip(names, names, names, names, strict=True):
        yield html.unescape(name), text
        yield from _texts_of(then)


def _texts_of(body: str) -> Iterator[tuple[str, str]]:
    before, *rest = DRAWN.split(body, maxsplit=1)
    yield "", as_markdown(before)
    for about, after in zip(rest[::2], rest[1::2], strict=True):
        yield PICTURE, about
        yield "", as_markdown(after)


def as_markdown(text: str) -> str:
    """The card's Markdown for Streamlit: no formulas, icons or emoji, no title, lower headings."""

    def shown(found: re.Match[str]) -> str:
        if found["code"]:
            return found["code"]
        if found["sign"]:
            return f"\\{found['sign']}"
        return f"#{found['head']} " if found["head"] else ""

    return OTHERWISE.sub(shown, text).strip()


def draw_card(card: str, *, key: str, picture: bytes | None = None) -> None:
    """Draw it, under a key of the page's own, with the release's picture in its place; the front
    matter lies behind a click."""
    with st.container(border=True, height=HEIGHT, key=f"release-card-{key}"):
        for prompt, text in parts_of(card):
            if prompt == PICTURE:
                if picture is not None:
                    draw_picture(picture, text)
            elif prompt:
                with st.popover(f"Prompt `{prompt.replace('`', ' ')}`"):
                    st.code(text, language=None, wrap_lines=True)
            elif text:
                st.markdown(text)
    with st.popover("The file as it is, with its metadata (YAML)", type="tertiary"):
        st.code(card, language="markdown", height=420, wrap_lines=True)
