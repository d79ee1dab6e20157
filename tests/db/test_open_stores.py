"""Stores at many addresses in one process: no connection is left open behind them."""

from pathlib import Path

from sqlalchemy import event

from db.store.store import ENGINES, open_store


def test_connections_of_the_address_used_longest_ago_are_closed(tmp_path: Path) -> None:
    first = open_store(f"sqlite:///{tmp_path}/first.db")
    closed: list[object] = []
    event.listen(first.engine, "close", lambda connection, _record: closed.append(connection))
    with first.engine.connect():
        pass  # now in the pool
    others = [open_store(f"sqlite:///{tmp_path}/{number}.db") for number in range(ENGINES - 1)]
    assert closed == []
    assert open_store(first.url).engine is first.engine  # used again: not the oldest now
    others.append(open_store(f"sqlite:///{tmp_path}/more.db"))
    assert closed == []
    others += [open_store(f"sqlite:///{tmp_path}/other-{number}.db") for number in range(ENGINES)]
    assert len(closed) == 1
    with first.engine.connect() as connection:  # who still holds it may go on
        assert connection.exec_driver_sql("SELECT 1").scalar() == 1
    for store in (first, *others):
        store.close()
    assert len(closed) == 2
