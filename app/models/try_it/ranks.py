"""Rank changes after a changed instruction."""

from collections.abc import Sequence


def moves(now: Sequence[str], before: Sequence[str] | None) -> list[str]:
    """A label per passage: ▲3 up, ▼2 down, new, or "". `before` is None without a ranking."""
    if before is None:
        return ["" for _ in now]
    places = {name: place for place, name in enumerate(before)}
    return [_move(places.get(name), place) for place, name in enumerate(now)]


def _move(before: int | None, now: int) -> str:
    if before is None:
        return "new"
    if before == now:
        return ""
    return f"▲{before - now}" if before > now else f"▼{now - before}"
