"""A store that is away again and again, at first for each second transaction."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import pytest
from sqlalchemy.orm import Session

from db.errors import InfError
from db.store.store import Store


@contextmanager
def comes_and_goes(store: Store, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The transactions, of which the first, third, sixth, tenth … meets a store that is away: what
    takes several of them succeeds at last."""
    met: list[str] = []
    away = {number * (number + 1) // 2 for number in range(1, 200)}
    with monkeypatch.context() as patch:
        for name in ("read", "write"):
            opened = getattr(store, name)

            def flaky(opened: Any = opened, name: str = name) -> AbstractContextManager[Session]:
                met.append(name)
                if len(met) in away:
                    raise InfError("the store cannot be reached", code="store_unreachable")
                found: AbstractContextManager[Session] = opened()
                return found

            patch.setattr(store, name, flaky)
        yield met
