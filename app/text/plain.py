"""Escape foreign text inside Markdown, so that nothing in it becomes formatting."""

import re

URL = re.compile(r"(?:https?://|www\.)[^\s`<>\"]*[^\s`<>\".,:;!?)\]'”]", re.I)
SPECIAL = re.compile(r"([\\*_{}\[\]()#+\-.!|<>$~:&^=@])")


def plain(text: str) -> str:
    """The text escaped for Markdown; `code` between backticks stays code, a URL becomes code.

    An escaped URL is a link all the same, to wherever a foreign text leads.
    """
    parts = text.split("`")
    if len(parts) % 2 == 0:  # an unpaired backtick is an ordinary character
        parts = [text.replace("`", "'")]
    shown = [
        f"`{part}`" if number % 2 and part else _escaped(part) for number, part in enumerate(parts)
    ]
    return "".join(shown).replace("\n", "  \n")


def sentence(text: str) -> str:
    """The text with a capital first letter, unless it begins with a name or a number."""
    first = text.split(maxsplit=1)[0] if text.strip() else ""
    return text[0].upper() + text[1:] if first.isalpha() and first.islower() else text


def _escaped(text: str) -> str:
    parts, at = [], 0
    for found in URL.finditer(text):
        parts += [SPECIAL.sub(r"\\\1", text[at : found.start()]), f"`{found[0]}`"]
        at = found.end()
    return "".join([*parts, SPECIAL.sub(r"\\\1", text[at:])])
