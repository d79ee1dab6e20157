"""Sending webhooks, in a thread of a process that lives long: the server, the supervisor.

Several of them may send for one store: each delivery is begun by one (`db.servers.webhooks`).
Requests go to addresses that the endpoint may have, checked at the socket; a redirect is an answer
like any other that is not 2xx, and no proxy of the environment is used.
"""

import asyncio
import logging
import math
import threading
from collections.abc import Coroutine, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from typing import Any

from sqlalchemy.exc import SQLAlchemyError

from app.access.identity import owner
from app.operations.doors import events
from app.operations.doors.events import EventRow
from db.errors import InfError
from db.patience import is_away, patiently
from db.rows import as_text
from db.servers import webhooks
from db.store.scope import unscoped
from db.store.secrets import redacted
from db.store.store import open_store
from db.tables import Event, utc_now

EVERY_SECONDS = 2.0
TIMEOUT_SECONDS = 15.0
STOP_SECONDS = 0.2
AT_A_TIME = 8  # endpoints
IN_A_ROW = 50  # deliveries to one, before the others' next turn
GONE = 410
log = logging.getLogger("inf.webhooks")


@dataclass(frozen=True)
class Message:
    """What is sent to an endpoint: an event, under an id of its own."""

    url: str
    private: bool
    secret: str
    message_id: str
    event: EventRow

    def body(self) -> str:
        """The event as JSON, in the shape that the specification recommends; `data` is its row."""
        data = self.event.as_json()
        return as_text({"type": self.event.name, "timestamp": data["at"], "data": data})


@dataclass(frozen=True)
class Answer:
    """What an attempt came to, in a few words; `status` is None without an answer."""

    text: str
    status: int | None = None

    @property
    def ok(self) -> bool:
        """Whether the endpoint took the message."""
        return self.status is not None and 200 <= self.status < 300


def send(message: Message, stopping: threading.Event) -> Answer | None:
    """Sign a message as of now and post it; None where it was stopped before an answer.

    Nothing that the network does is raised.
    """
    import aiohttp  # a tenth of a second, which most processes never need
    from standardwebhooks import Webhook

    body, now = message.body(), utc_now()
    headers = {
        "Content-Type": "application/json",
        "User-Agent": f"InF-Studio/{version('inf-studio')}",
        "webhook-id": message.message_id,
        "webhook-timestamp": str(int(now.timestamp())),
        "webhook-signature": Webhook(message.secret).sign(message.message_id, now, body),
    }
    try:
        status = asyncio.run(_unless(stopping, _post(message, body.encode(), headers)))
    except TimeoutError:
        return Answer(f"no answer in {TIMEOUT_SECONDS:.0f} s")
    except (aiohttp.ClientError, OSError) as error:
        reason = getattr(error, "os_error", error)  # aiohttp shows of it what it has no text for
        return Answer(redacted(f"{type(error).__name__}: {reason}"))
    return None if status is None else Answer(f"HTTP {status}", status)


async def _unless(stopping: threading.Event, work: Coroutine[Any, Any, int]) -> int | None:
    """What the work returns; None once it is to stop."""
    task = asyncio.create_task(work)
    while not (await asyncio.wait({task}, timeout=STOP_SECONDS))[0]:
        if stopping.is_set():
            task.cancel()
            return None
    return task.result()


async def _post(message: Message, body: bytes, headers: dict[str, str]) -> int:
    from aiohttp import ClientTimeout

    from curation.servers.guard import guarded_session

    async with guarded_session(private=message.private) as client:
        sent = client.post(
            message.url,
            data=body,
            headers=headers,
            allow_redirects=False,
            timeout=ClientTimeout(total=TIMEOUT_SECONDS),
        )
        async with sent as answer:
            return answer.status


@contextmanager
def sending() -> Iterator[None]:
    """Send in a thread of its own until the block ends, what is due at its beginning at least."""
    stopping = threading.Event()
    thread = threading.Thread(target=_send_until, args=(stopping,), name="webhooks", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def _send_until(stopping: threading.Event) -> None:
    while True:
        try:  # a store that is away is noted for the pages, which try once
            patiently(partial(send_due, stopping), math.inf, stopped=stopping.is_set)
        except (InfError, SQLAlchemyError) as error:  # the next turn tries again
            if not is_away(error):
                log.exception("webhooks could not be sent")
        if stopping.wait(EVERY_SECONDS):
            return


def send_due(stopping: threading.Event | None = None) -> None:
    """Queue what happened since, and send what is due to every endpoint that is on."""
    stopping = stopping or threading.Event()
    with unscoped(), open_store().read() as session:
        found = webhooks.list_webhooks(session, only_on=True)
    usable = {one.id for one in found if _queued(one.id)}
    with unscoped(), open_store().read() as session:
        due = [one for one in webhooks.due_webhooks(session) if one in usable] if usable else []
    if due:
        with ThreadPoolExecutor(min(AT_A_TIME, len(due)), "webhook") as pool:
            list(pool.map(lambda one: _send_to(one, stopping), due))


def _queued(webhook_id: int) -> bool:
    """Queue the events that an endpoint wants; whether its secret is here."""
    while True:
        with unscoped(), open_store().read() as session:
            webhook = webhooks.get_webhook(session, webhook_id)
        try:
            webhooks.secret_of(webhook)
        except InfError:
            return False
        found = events.list_after(owner("webhooks"), webhook.after_event)
        if found.last == webhook.after_event:
            return True
        names = webhook.events or events.BY_DEFAULT
        wanted = [row.id for row in found.data if row.name in names]
        with unscoped(), open_store().write() as session:
            webhooks.queue_events(session, webhook, wanted, found.last)
            session.commit()


def _send_to(webhook_id: int, stopping: threading.Event) -> None:
    """Send what is due to one endpoint, up to the first that fails: it has its turn again."""
    for _ in range(IN_A_ROW):
        with unscoped(), open_store().write() as session:
            begun = webhooks.begin_attempt(session, webhook_id)
            if begun is None:
                return
            delivery_id, attempt = begun.id, begun.attempts
            webhook = webhooks.get_webhook(session, webhook_id)
            message = Message(
                url=webhook.url,
                private=webhook.private,
                secret=webhooks.secret_of(webhook),
                message_id=begun.message_id,
                event=EventRow.model_validate(session.get_one(Event, begun.event_id)),
            )
            session.commit()
        answer = send(message, stopping)
        if answer is None:  # as if this process was killed: it is begun again under the same id
            return
        with unscoped(), open_store().write() as session:
            is_gone = answer.status == GONE
            webhooks.end_attempt(
                session, delivery_id, attempt, answer=answer.text, ok=answer.ok, gone=is_gone
            )
            session.commit()
        if not answer.ok or stopping.is_set():
            return
