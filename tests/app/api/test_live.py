"""The routes in the real server: a stream survives a killed server without a lost event."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from api_world import API, make_api_world
from live_server import Server, free_port, serving
from sqlalchemy import select

from db.events import record_event
from db.home import home
from db.store.store import Store
from db.tables import Event

pytestmark = pytest.mark.long


def happened(store: Store, run_id: int, count: int) -> None:
    for number in range(count):
        with store.write() as session:
            record_event(session, "somebody", "run.paused", run_id, number=number)
            session.commit()


def written(store: Store) -> list[int]:
    """The ids of what `happened`: the servers write events of their own between them."""
    with store.read() as session:
        return list(
            session.scalars(select(Event.id).where(Event.actor == "somebody").order_by(Event.id))
        )


@contextmanager
def following(server: Server, token: str, last: str) -> Iterator[Iterator[str]]:
    """The lines of the stream after the last id, from when it began."""
    headers = {"Authorization": f"Bearer {token}"} | ({"Last-Event-ID": last} if last else {})
    with httpx.stream("GET", f"{server.url}{API}/events", headers=headers, timeout=60) as answer:
        assert answer.status_code == 200
        lines = answer.iter_lines()
        assert next(lines).startswith("id: ")
        yield lines


def ids(lines: Iterator[str], count: int) -> list[int]:
    """The ids of the next so many events."""
    found: list[int] = []
    number = 0
    while len(found) < count:
        line = next(lines)
        if line.startswith("id: "):
            number = int(line.removeprefix("id: "))
        elif line.startswith("data: "):
            found.append(number)
    return found


def test_a_killed_server_loses_no_event_of_a_stream(sqlite_store: Store, tmp_path: Path) -> None:
    world = make_api_world(sqlite_store)
    token, run_id, port = world.tokens["mina"], world.mine.run, free_port()
    given = {"INF_HOME": str(home()), "INF_DATABASE_URL": sqlite_store.url}
    with serving(tmp_path / "one", port=port, **given) as server:
        assert (
            httpx.get(f"{server.url}{API}/openapi.json", timeout=120).json()["openapi"] == "3.1.0"
        )
        assert httpx.get(f"{server.url}{API}/me", timeout=60).status_code == 401
        bearer = {"Authorization": f"Bearer {token}"}
        me = httpx.get(f"{server.url}{API}/me", headers=bearer, timeout=60)
        assert me.json()["person"] == "mina", me.text
        with following(server, token, "") as lines:
            happened(sqlite_store, run_id, 3)
            seen = ids(lines, 2)  # the third is on its way
            server.process.kill()
            server.process.wait()
        happened(sqlite_store, run_id, 3)
        log = server.log.read_text()
    with (
        serving(tmp_path / "two", port=port, **given) as server,
        following(server, token, str(seen[-1])) as lines,
    ):
        happened(sqlite_store, run_id, 1)
        wanted = written(sqlite_store)
        while seen[-1] < wanted[-1]:
            seen += ids(lines, 1)
    assert seen == sorted(set(seen))
    assert [one for one in seen if one in wanted] == wanted
    assert token not in log
