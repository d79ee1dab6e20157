"""Text of others inside Markdown: nothing in it may become formatting."""

import re

SPECIAL = re.compile(r"([\\*_{}\[\]()#+\-.!|<>$~:&^=@])")


def plain(text: str) -> str:
    """The text so that Markdown shows it as it is; `code` between backticks stays code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # an odd backtick is only a character
        parts = [text.replace("`", "'")]
    shown = [
        f"`{part}`" if number % 2 and part else SPECIAL.sub(r"\\\1", part)
        for number, part in enumerate(parts)
    ]
    return "".join(shown).replace("\n", "  \n")
