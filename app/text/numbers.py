"""Numbers, counts and durations as pages and commands show them."""

from datetime import timedelta


def counted(number: int, noun: str, plural: str = "") -> str:
    """A count with its noun: `1 group`, `1,200 groups`, `2 studies` (irregular plural given)."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def money(usd: float) -> str:
    """An amount: cents below 1 USD (`3.27 cents`), else `12.34 USD`."""
    return f"{100 * usd:.2f} cents" if usd < 1 else f"{usd:,.2f} USD"


def score(value: float | None) -> str:
    """A measure with four digits, "undefined" for None."""
    return "undefined" if value is None else f"{value:.4f}"


def duration(span: timedelta) -> str:
    """A span in at most two units: `45 s`, `3 min 20 s`, `2 h 5 min`."""
    seconds = max(0, round(span.total_seconds()))
    if seconds < 60:
        return f"{seconds} s"
    minutes, seconds = divmod(seconds, 60)
    if minutes < 60:
        return f"{minutes} min {seconds} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min"
