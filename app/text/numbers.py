"""Numbers, counts and durations as pages and commands show them."""

from analysis.figures.numbers import counted, duration, score

__all__ = ["counted", "duration", "money", "score"]


def money(usd: float) -> str:
    """An amount: cents below 1 USD (`3.27 cents`), else `12.34 USD`."""
    return f"{100 * usd:.2f} cents" if usd < 1 else f"{usd:,.2f} USD"
