"""Numbers, counts and durations as pages and commands show them."""

from analysis.figures.numbers import duration, score

__all__ = ["counted", "duration", "money", "score"]


def counted(number: int, noun: str, plural: str = "") -> str:
    """A count with its noun: `1 group`, `1,200 groups`, `2 studies` (irregular plural given)."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def money(usd: float) -> str:
    """An amount: cents below 1 USD (`3.27 cents`), else `12.34 USD`."""
    return f"{100 * usd:.2f} cents" if usd < 1 else f"{usd:,.2f} USD"
