"""The JavaScript and CSS files of a card, concatenated in dependency order."""

from pathlib import Path

APP = Path(__file__).parents[1]


def card_js(*names: str) -> str:
    """One module: the code shared by all cards, then these files."""
    return _joined("kit/card.js", *names)


def card_css(*names: str) -> str:
    """These files as one style sheet."""
    return _joined(*names)


def nothing() -> None:
    """Do nothing: Streamlit keeps a card's state only if a callback is given.

    The state is read where the card is drawn.
    """


def _joined(*names: str) -> str:
    return "".join((APP / name).read_text(encoding="utf-8") for name in names)
