"""Escape foreign text inside Markdown, so that nothing in it becomes formatting."""

import re

SPECIAL = re.compile(r"([\\*_{}\[\]()#+\-.!|<>$~:&^=@])")


def plain(text: str) -> str:
    """The text escaped for Markdown; `code` between backticks stays code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # an unpaired backtick is an ordinary character
        parts = [text.replace("`", "'")]
    shown = [
        f"`{part}`" if number % 2 and part else SPECIAL.sub(r"\\\1", part)
        for number, part in enumerate(parts)
    ]
    return "".join(shown).replace("\n", "  \n")
