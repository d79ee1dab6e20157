"""Texts of the store in the Markdown of a card: shown as they are, never as Markdown."""


def inline(text: str) -> str:
    """Text inside a line or table cell: one line, no Markdown of its own."""
    plain = " ".join(str(text).split())
    for sign in "\\`*_|<>[]":
        plain = plain.replace(sign, "\\" + sign if sign not in "<>" else f"&#{ord(sign)};")
    return plain


def code(text: str) -> str:
    """Text as code inside a line."""
    return f"`{' '.join(text.replace('`', ' ').split())}`"


def html(text: str) -> str:
    """Text inside HTML, shown as it is."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def fenced(text: str) -> str:
    """Text as a block of code, whatever fences it holds itself."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}text\n{text.rstrip()}\n{fence}"
