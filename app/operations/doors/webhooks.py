"""Webhooks: endpoints of other servers that are sent events (Standard Webhooks 1.0).

They are the installation's, as connections are: admins manage them, at pages and commands only.
"""

import threading
import uuid
from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from pydantic import AfterValidator, computed_field

from app.access.identity import Actor
from app.access.permissions import require
from app.operations.acting import reading, writing
from app.operations.connections import may_be_private
from app.operations.doors import courier, events
from app.operations.doors.events import EventRow
from curation.servers.addresses import checked_url
from db.errors import BadInput, InfError
from db.events import record_event
from db.requests import Request, meant, option
from db.rows import Listed, Row
from db.servers import webhooks
from db.tables import Event, Webhook

RIGHT, READ = "webhooks", "audit"
MAX_URL = 500


def _are_events(given: Sequence[str]) -> Sequence[str]:
    for name in given:
        if name not in events.NAMES:
            near = meant(name, events.NAMES)
            question = f"did you mean {near}? " if near else ""
            raise BadInput(
                f"no event {name!r}: {question}Events are {', '.join(events.NAMES)}",
                "leave it out to send all",
                code="request_invalid",
            )
    return given


class WebhookAdd(Request):
    """An endpoint of another server that is sent events, signed with a secret of its own."""

    url: str = option(..., "Where events are posted.", names=(), metavar="URL")
    events: Annotated[tuple[str, ...], AfterValidator(_are_events)] = option(
        (),
        "Send this event, as run.finished; repeatable. Default: all but judgment.stored.",
        names=("--event",),
    )
    private: bool = option(
        False, "It may be in a private network; on a server with accounts its owner's command only."
    )


class WebhookEnable(Request):
    """An endpoint is switched on again: it is sent what waited and failed, or `skip`."""

    id: int = option(..., "Its id.", names=(), metavar="ID")
    skip: bool = option(False, "Skip what waited, failed or happened while it was off.")


class WebhookRow(Row):
    """An endpoint, without its secret. `events` without any: all but `judgment.stored`.

    `status` on or off, with the `reason` that it was switched off for; `waiting`: deliveries that
    are not over; `problem`: why nothing can be sent from here.
    """

    id: int
    url: str
    events: tuple[str, ...]
    private: bool
    status: str
    reason: str
    waiting: int
    problem: str | None
    created_by: str
    created_at: datetime

    @computed_field  # type: ignore[prop-decorator]
    @property
    def name(self) -> str:
        """Its address."""
        return self.url


class WebhookSecret(WebhookRow):
    """An endpoint with a new `secret`, shown this once; None where it keeps the one it has."""

    secret: str | None


class DeliveryRow(Row):
    """An event sent to an endpoint, under one `message_id` however often.

    `status`: pending, delivered, failed (given up) or skipped; `answer`: what the last of the
    `attempts` came to; `next_attempt_at` of a pending one.
    """

    id: int
    event_id: int
    event: str
    message_id: str
    status: str
    attempts: int
    attempted_at: datetime | None
    next_attempt_at: datetime | None
    answer: str

    @computed_field  # type: ignore[prop-decorator]
    @property
    def name(self) -> str:
        """What was sent."""
        return self.event


class WebhookTested(Row):
    """What an endpoint answered to a test, which is sent once and is not in its log."""

    id: int
    url: str
    message_id: str
    ok: bool
    answer: str


def add(actor: Actor, wanted: WebhookAdd) -> WebhookSecret:
    """Add an endpoint and print its secret, this once. It is sent what happens from now on.

    Raises Refused, BadInput, and ProviderError for an address that it may not have.
    """
    require(actor, RIGHT)
    url = checked_url(wanted.url, what="https://HOST/PATH alone")
    url += "/" * wanted.url.strip().endswith("/")  # frameworks redirect, or refuse, without it
    private = may_be_private(
        actor, url, wanted.private, by="webhooks add URL private=yes", server="an endpoint"
    )
    if len(url) > MAX_URL or not (url.startswith("https:") or private):
        raise BadInput(
            f"an endpoint in the internet has an address of https and {MAX_URL} characters at most",
            "give `url=https://…`",
            code="webhook_url",
        )
    newest, secret = events.newest(actor), webhooks.new_secret()
    with writing(actor, RIGHT) as session:
        found = webhooks.add_webhook(
            session,
            url=url,
            events=sorted(set(wanted.events)),
            private=private,
            secret=secret,
            after_event=newest,
            created_by=actor.name,
        )
        facts = {"url": url, "events": found.events, "private": private}
        record_event(session, actor.name, "webhook.add", found.id, **facts)
        return WebhookSecret.of(found, **_more(found, 0), secret=secret)


def list_all(actor: Actor) -> Listed[WebhookRow]:
    """List endpoints, without their secrets."""
    with reading(actor, READ) as session:
        waiting = webhooks.count_waiting(session)
        found = webhooks.list_webhooks(session)
        rows = [WebhookRow.of(one, **_more(one, waiting.get(one.id, 0))) for one in found]
    return Listed[WebhookRow].all(rows)


def show(actor: Actor, webhook_id: int) -> WebhookRow:
    """Show one endpoint. Raises NotFound."""
    with reading(actor, READ) as session:
        found = webhooks.get_webhook(session, webhook_id)
        waiting = webhooks.count_waiting(session).get(webhook_id, 0)
        return WebhookRow.of(found, **_more(found, waiting))


def deliveries(
    actor: Actor, webhook_id: int, *, limit: int = 50, offset: int = 0
) -> Listed[DeliveryRow]:
    """List what was sent to an endpoint, and what waits, newest first. Raises NotFound."""
    with reading(actor, READ) as session:
        webhooks.get_webhook(session, webhook_id)
        found, total = webhooks.list_deliveries(session, webhook_id, limit=limit, offset=offset)
        rows = []
        for row, event in found:
            is_over = row.status in webhooks.OVER
            then = None if is_over else row.next_attempt_at
            rows.append(DeliveryRow.of(row, event=event, next_attempt_at=then))
    return Listed[DeliveryRow].page(rows, offset=offset, total=total)


def test(actor: Actor, webhook_id: int) -> WebhookTested:
    """Send an endpoint a signed event webhook.test, once, now; also one that is switched off.

    Raises NotFound, InfError where its secret is not here.
    """
    with writing(actor, RIGHT) as session:
        found = webhooks.get_webhook(session, webhook_id)
        secret = webhooks.secret_of(found)
        record_event(session, actor.name, "webhook.test", found.id, url=found.url)
        session.flush()
        query = session.query(Event).filter_by(name="webhook.test").order_by(Event.id.desc())
        event = EventRow.model_validate(query.first())
        message_id = f"msg_{uuid.uuid4().hex}"
        about: dict[str, Any] = {"url": found.url, "private": found.private, "secret": secret}
    message = courier.Message(**about, message_id=message_id, event=event)
    answer = courier.send(message, threading.Event()) or courier.Answer("")
    return WebhookTested(
        id=webhook_id,
        url=about["url"],
        message_id=message_id,
        ok=answer.ok,
        answer=answer.text,
    )


def enable(actor: Actor, wanted: WebhookEnable) -> WebhookSecret:
    """Switch an endpoint on again; it gets a new secret where the old one is not here.

    Raises NotFound.
    """
    newest = events.newest(actor)
    with writing(actor, RIGHT) as session:
        found = webhooks.get_webhook(session, wanted.id)
        secret = webhooks.switch_on(session, found, skip=wanted.skip, newest=newest)
        facts = {"skip": wanted.skip, "new_secret": secret is not None}
        record_event(session, actor.name, "webhook.enable", found.id, url=found.url, **facts)
        waiting = webhooks.count_waiting(session).get(found.id, 0)
        return WebhookSecret.of(found, **_more(found, waiting), secret=secret)


def remove(actor: Actor, webhook_id: int) -> WebhookRow:
    """Remove an endpoint and its log; it is sent nothing more. Raises NotFound."""
    with writing(actor, RIGHT) as session:
        found = webhooks.get_webhook(session, webhook_id)
        row = WebhookRow.of(found, **_more(found, 0))
        record_event(session, actor.name, "webhook.remove", found.id, url=found.url)
        session.delete(found)
        return row


def _more(found: Webhook, waiting: int) -> dict[str, Any]:
    """What an endpoint's row has besides its columns."""
    problem = None
    try:
        webhooks.secret_of(found)
    except InfError as error:
        problem = str(error)
    return {
        "events": tuple(found.events),
        "reason": found.off_reason,
        "waiting": waiting,
        "problem": problem,
    }
