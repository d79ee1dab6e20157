"""Processes that send webhooks are killed in the middle of a try: no event is lost or doubled.

The supervisor, and the server itself, which sends and streams at once.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import httpx
import pytest
from api_world import API, new_token
from hook_receiver import Receiver
from live_server import free_port, serving
from restartable import Restartable
from sqlalchemy import select, update
from study_world import make_world

from app.access.identity import owner
from app.operations import people
from app.operations.doors import webhooks
from app.operations.doors.webhooks import WebhookAdd, WebhookSecret
from db.events import record_event
from db.home import home
from db.modules import run_module
from db.store.store import Store
from db.tables import Event, WebhookDelivery, utc_now

COMMAND = owner("cli:ada")
KILLS, SERVER_KILLS = 4, 2


def happened(store: Store, run_id: int, count: int) -> list[int]:
    for _ in range(count):
        with store.write() as session:
            record_event(session, "somebody", "run.finished", run_id)
            session.commit()
    with store.read() as session:
        own = select(Event.id).where(Event.actor == "somebody").order_by(Event.id)
        return list(session.scalars(own))


def due_now(store: Store) -> None:
    """As if the minutes until the next attempt had passed."""
    with store.write() as session:
        session.execute(update(WebhookDelivery).values(next_attempt_at=utc_now()))
        session.commit()


def statuses(store: Store) -> list[str]:
    with store.read() as session:
        return list(session.scalars(select(WebhookDelivery.status)))


@contextmanager
def supervisor(store: Store, log: Path) -> Iterator["subprocess.Popen[bytes]"]:
    """`inf jobs work`, killed without a word at the end."""
    with log.open("ab") as output:
        process = subprocess.Popen(
            [sys.executable, *run_module("app.cli.main"), "jobs", "work", "--idle-seconds", "300"],
            env=os.environ | {"INF_HOME": str(home()), "INF_DATABASE_URL": store.url},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
        )
    try:
        yield process
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()


@pytest.mark.long
def test_a_process_killed_in_a_try_loses_no_event_and_doubles_no_id(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """Killed while the endpoint has the request and has not answered, then while it fails."""
    run_id = make_world(sqlite_store, 2, name="mine")
    log = tmp_path / "work.log"
    with Receiver(hangs=True) as receiver:
        made = webhooks.add(COMMAND, WebhookAdd(url=receiver.url))
        for number in range(KILLS):
            happened(sqlite_store, run_id, 2)
            receiver.hangs = number % 2 == 0
            receiver.status = 500
            with supervisor(sqlite_store, log):
                receiver.wait_for(len(receiver.got) + 1)
            due_now(sqlite_store)
        receiver.hangs, receiver.status = False, 204
        wanted = happened(sqlite_store, run_id, 1)
        port, given = free_port(), {"INF_HOME": str(home()), "INF_DATABASE_URL": sqlite_store.url}
        with serving(tmp_path / "server", port=port, **given):  # the server sends, too
            until = time.monotonic() + 120
            while (states := statuses(sqlite_store)) != ["delivered"] * len(wanted):
                assert time.monotonic() < until, states
                time.sleep(0.1)
    require_each_once(receiver, made, wanted)
    assert (made.secret or "") not in log.read_text()


def require_each_once(receiver: Receiver, made: WebhookSecret, wanted: list[int]) -> None:
    """Every event came, each under one id of its own, and the log says so."""
    for got in receiver.got:
        assert got.verified(made.secret or "")["data"]["id"] in wanted
    pairs = {(got.event["id"], got.message_id) for got in receiver.got}
    assert sorted(event for event, _ in pairs) == wanted
    assert len({message for _, message in pairs}) == len(pairs)
    tries = Counter(got.event["id"] for got in receiver.got)
    assert max(tries.values()) > 1, "no try was cut off"
    found = webhooks.deliveries(COMMAND, made.id).data
    assert sorted(row.event_id for row in found) == wanted
    assert {row.status for row in found} == {"delivered"}
    assert all(tries[row.event_id] <= row.attempts for row in found)


class Follower:
    """A client that follows the events of a server, and goes on after its last id when that is
    back; `seen` are the ids of what somebody did."""

    def __init__(self, server: Restartable, token: str) -> None:
        self.server, self.token = server, token
        self.seen: list[int] = []
        self.last, self.cuts = "", 0
        self.over = threading.Event()
        self._thread = threading.Thread(target=self._follow, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self._thread.join(timeout=60)
        assert not self._thread.is_alive()

    def _follow(self) -> None:
        while not self.over.is_set():
            headers = {"Authorization": f"Bearer {self.token}"}
            headers |= {"Last-Event-ID": self.last} if self.last else {}
            url, number = f"{self.server.url}{API}/events", ""
            try:
                with httpx.stream("GET", url, headers=headers, timeout=20) as answer:
                    for line in answer.iter_lines():
                        name, _, value = line.partition(": ")
                        number = value if name == "id" else number
                        if name == "data" and json.loads(value)["actor"] == "somebody":
                            self.seen.append(int(number))
                        if not line:  # the message is whole
                            self.last = number
                        if self.over.is_set():
                            return
            except httpx.TransportError:
                self.cuts += bool(self.last)
                time.sleep(0.1)

    def wait_for(self, wanted: list[int]) -> None:
        until = time.monotonic() + 120
        while self.seen[-1:] != wanted[-1:]:
            assert time.monotonic() < until, (self.seen, wanted)
            time.sleep(0.05)


@pytest.mark.long
def test_the_server_killed_in_a_retry_and_in_a_stream_loses_and_doubles_nothing(
    store: Store, tmp_path: Path
) -> None:
    """Each time its endpoint has a request that was tried before, and a client a stream open."""
    people.add(COMMAND, people.PersonAdd(name="boss", role="admin"), "correct horse battery")
    run_id, token = make_world(store, 2, name="mine"), new_token("boss").token
    server = Restartable(tmp_path / "server", store.url, INF_HOME=str(home()))
    with Receiver() as receiver:
        made = webhooks.add(COMMAND, WebhookAdd(url=receiver.url, private=True))
        server.start()
        try:
            with Follower(server, token) as client:
                until = time.monotonic() + 60
                while not client.last:
                    assert time.monotonic() < until
                    time.sleep(0.05)
                for _ in range(SERVER_KILLS):
                    receiver.hangs, receiver.status = False, 500
                    before = len(receiver.got)
                    wanted = happened(store, run_id, 2)
                    receiver.wait_for(before + 1)  # it fails
                    receiver.hangs = True
                    due_now(store)
                    before = len(receiver.got)
                    receiver.wait_for(before + 1)  # the retry, which is not answered
                    server.kill()
                    wanted = happened(store, run_id, 1)  # while no server runs
                    due_now(store)
                    server.start()
                receiver.hangs, receiver.status = False, 204
                wanted = happened(store, run_id, 1)
                client.wait_for(wanted)
                until = time.monotonic() + 120
                while statuses(store) != ["delivered"] * len(wanted):
                    assert time.monotonic() < until, statuses(store)
                    due_now(store)  # what was cut off
                    time.sleep(2)
        finally:
            server.kill()
    assert client.seen == wanted and client.cuts >= SERVER_KILLS
    require_each_once(receiver, made, wanted)
    log = server.log.read_text()
    assert (made.secret or "") not in log and token not in log
