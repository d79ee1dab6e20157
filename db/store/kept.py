"""What takes a second to count, kept in this process while what it depends on is unchanged."""

from collections.abc import Callable
from typing import Any, Final, TypeVar

from sqlalchemy.orm import Session

from db.store.scope import INFO

T = TypeVar("T")
MAX_KEPT: Final = 16
_kept: dict[tuple[object, ...], tuple[object, Any]] = {}


def kept(session: Session, name: str, number: int, state: object, count: Callable[[], T]) -> T:
    """What `count` returns for this name and number, counted again once `state` is another.

    Kept by store and by what the session sees. Callers do not change what they get.
    """
    key = (str(session.get_bind().engine.url), session.info.get(INFO), name, number)
    found = _kept.get(key)
    if found is None or found[0] != state:
        if len(_kept) >= MAX_KEPT:
            _kept.clear()
        found = _kept[key] = (state, count())
    value: T = found[1]
    return value
