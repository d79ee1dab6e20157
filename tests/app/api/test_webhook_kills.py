"""Processes that send webhooks are killed in the middle of a try: no event is lost or doubled."""

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hook_receiver import Receiver
from live_server import free_port, serving
from sqlalchemy import select, update
from study_world import make_world

from app.access.identity import owner
from app.operations.doors import webhooks
from app.operations.doors.webhooks import WebhookAdd
from db.events import record_event
from db.modules import run_module
from db.store.settings import home
from db.store.store import Store
from db.tables import Event, WebhookDelivery, utc_now

COMMAND = owner("cli:ada")
KILLS = 4


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
    assert (made.secret or "") not in log.read_text()
