"""The files a card in the browser is made of, in the order in which they build on each other."""

from pathlib import Path

APP = Path(__file__).parents[1]


def card_js(*names: str) -> str:
    """One module of what every card begins with and these files."""
    return _joined("kit/card.js", *names)


def card_css(*names: str) -> str:
    """One style sheet of these files."""
    return _joined(*names)


def nothing() -> None:
    """Streamlit keeps a card's state only where a callback is named; what came is read where the
    card is drawn."""


def _joined(*names: str) -> str:
    return "".join((APP / name).read_text(encoding="utf-8") for name in names)
