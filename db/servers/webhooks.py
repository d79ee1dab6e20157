"""Webhooks: endpoints of other servers that are sent events, and the log of what was sent.

An event becomes one row for each endpoint that wants it, with the id of its message, before
anything leaves; each attempt is counted and committed before its request. So whatever is killed in
between, the event is sent again under the same id, and none is skipped. By that id an endpoint
knows what it got already.
"""

import base64
import random
import secrets
import uuid
from collections.abc import Collection, Sequence
from datetime import timedelta
from typing import Final

from sqlalchemy import ColumnElement, func, select, update
from sqlalchemy.orm import Session

from db.clock import store_now
from db.errors import InfError, NotFound
from db.events import record_event
from db.servers.sealing import seal, unseal
from db.store.bulk import insert_new
from db.store.secrets import redact_from_now_on
from db.tables import Event, Webhook, WebhookDelivery

# After each failed attempt; the eighth is the last, two days after the first.
DELAYS: Final = (*(timedelta(minutes=4**n) for n in range(6)), timedelta(days=1))
MAX_ATTEMPTS: Final = len(DELAYS) + 1
JITTER: Final = 0.1  # a share of the delay: what failed together is not sent again together
CUT_OFF_AFTER: Final = timedelta(seconds=60)  # an attempt whose process ended; one takes 15 s
OVER: Final = ("delivered", "failed", "skipped")
SECRET_BYTES: Final = 32  # of the 24 to 64 that the specification allows
MAX_ANSWER: Final = 200


def new_secret() -> str:
    """The secret of an endpoint, as the specification writes it."""
    return "whsec_" + base64.b64encode(secrets.token_bytes(SECRET_BYTES)).decode()


def add_webhook(
    session: Session,
    *,
    url: str,
    events: Sequence[str],
    private: bool,
    secret: str,
    after_event: int,
    created_by: str,
) -> Webhook:
    """Add an endpoint, its `url` checked before; the secret is encrypted here. Does not commit."""
    found = Webhook(
        url=url,
        events=list(events),
        private=private,
        sealed_secret=seal(secret),
        after_event=after_event,
        created_by=created_by,
    )
    session.add(found)
    session.flush()
    return found


def get_webhook(session: Session, webhook_id: int) -> Webhook:
    """An endpoint as it is now. Raises NotFound."""
    found = session.get(Webhook, webhook_id, populate_existing=True)
    if found is None:
        raise NotFound(f"no webhook {webhook_id}", "`webhooks list` has all", code="not_there")
    return found


def list_webhooks(session: Session, *, only_on: bool = False) -> list[Webhook]:
    """All endpoints by id, or those that are switched on."""
    query = select(Webhook).order_by(Webhook.id)
    return list(session.scalars(query.where(Webhook.status == "on") if only_on else query))


def secret_of(webhook: Webhook) -> str:
    """Its secret. Raises InfError where it is not on this machine."""
    if webhook.sealed_secret is None:
        raise InfError(
            "its secret is not here: no backup and no copy of a store has it, so that two stores "
            "do not send the same events",
            f"make another with `webhooks enable {webhook.id}`",
            code="webhook_secret_missing",
        )
    return redact_from_now_on(unseal(webhook.sealed_secret), f"the secret of webhook {webhook.id}")


def queue_events(session: Session, webhook: Webhook, event_ids: Collection[int], last: int) -> bool:
    """Add a delivery of each event, all events up to `last` having been looked at.

    False, and nothing is added, where another process was first. Does not commit.
    """
    own = (Webhook.id == webhook.id, Webhook.after_event == webhook.after_event)
    moved = update(Webhook).where(*own).values(after_event=last).returning(Webhook.id)
    if session.execute(moved).first() is None:
        return False
    now = store_now(session)
    rows = [
        {
            "webhook_id": webhook.id,
            "event_id": event_id,
            "message_id": f"msg_{uuid.uuid4().hex}",
            "status": "pending",
            "attempts": 0,
            "next_attempt_at": now,
            "answer": "",
            "created_at": now,
        }
        for event_id in sorted(event_ids)
    ]
    insert_new(session, WebhookDelivery, rows, ("id",))  # after a restore an event may be there
    return True


def due_webhooks(session: Session) -> list[int]:
    """The ids of endpoints that are on and have a delivery that is due."""
    query = select(WebhookDelivery.webhook_id).join(Webhook).where(*_due(session)).distinct()
    return list(session.scalars(query.order_by(WebhookDelivery.webhook_id)))


def begin_attempt(session: Session, webhook_id: int) -> WebhookDelivery | None:
    """Count an attempt at the endpoint's delivery that is due longest; None if none is.

    Nobody else begins it before CUT_OFF_AFTER. Does not commit.
    """
    query = (
        select(WebhookDelivery)
        .join(Webhook)
        .where(*_due(session), WebhookDelivery.webhook_id == webhook_id)
        .order_by(WebhookDelivery.next_attempt_at, WebhookDelivery.id)
        .limit(1)
    )
    # skip_locked: as jobs are claimed; two processes that send get two deliveries
    of = WebhookDelivery
    found = session.scalars(query.with_for_update(of=of, skip_locked=True)).first()
    if found is not None:
        now = store_now(session)
        found.attempts += 1
        found.attempted_at, found.next_attempt_at = now, now + CUT_OFF_AFTER
        session.flush()
    return found


def end_attempt(
    session: Session, delivery_id: int, attempt: int, *, answer: str, ok: bool, gone: bool = False
) -> None:
    """Store what an attempt came to: delivered, to be tried again, or failed for good.

    With the last attempt, or where the endpoint says that it is `gone`, it is switched off. Nothing
    is stored of an attempt that is no longer the current one. Does not commit.
    """
    found = session.get(WebhookDelivery, delivery_id, populate_existing=True, with_for_update=True)
    if found is None or found.attempts != attempt or found.status != "pending":
        return
    found.answer = answer[:MAX_ANSWER]
    if ok:
        found.status = "delivered"
    elif gone or attempt >= MAX_ATTEMPTS:
        found.status = "failed"
        tried = "it is gone" if gone else f"{attempt} attempts in two days failed"
        _switch_off(session, found.webhook_id, f"{tried}, event {found.event_id}: {found.answer}")
    else:
        spread = random.uniform(1 - JITTER, 1 + JITTER)
        found.next_attempt_at = store_now(session) + DELAYS[attempt - 1] * spread
    session.flush()


def switch_on(session: Session, webhook: Webhook, *, skip: bool, newest: int) -> str | None:
    """Switch an endpoint on; what waited or failed is sent from now on, or skipped.

    Returns a new secret where the old one cannot be opened here. Does not commit.
    """
    secret = None
    try:
        secret_of(webhook)
    except InfError:
        secret = new_secret()
        webhook.sealed_secret = seal(secret)
    webhook.status, webhook.off_reason = "on", ""
    waiting = update(WebhookDelivery).where(
        WebhookDelivery.webhook_id == webhook.id, WebhookDelivery.status.in_(("pending", "failed"))
    )
    if skip:
        session.execute(waiting.values(status="skipped"))
        webhook.after_event = newest
    else:
        again = {"status": "pending", "attempts": 0, "next_attempt_at": store_now(session)}
        session.execute(waiting.values(**again))
    session.flush()
    return secret


def count_waiting(session: Session) -> dict[int, int]:
    """How many deliveries of each endpoint are neither over nor given up."""
    query = select(WebhookDelivery.webhook_id, func.count()).where(
        WebhookDelivery.status == "pending"
    )
    return dict(session.execute(query.group_by(WebhookDelivery.webhook_id)).all())


def list_deliveries(
    session: Session, webhook_id: int, *, limit: int, offset: int
) -> tuple[list[tuple[WebhookDelivery, str]], int]:
    """A page of an endpoint's deliveries with the names of their events, newest first, and how
    many there are in all."""
    own = WebhookDelivery.webhook_id == webhook_id
    total = session.scalar(select(func.count()).select_from(WebhookDelivery).where(own)) or 0
    query = select(WebhookDelivery, Event.name).join(Event).where(own)
    page = query.order_by(WebhookDelivery.id.desc()).limit(limit).offset(offset)
    return [(row, name) for row, name in session.execute(page)], total


def _due(session: Session) -> tuple[ColumnElement[bool], ...]:
    is_due = WebhookDelivery.next_attempt_at <= store_now(session)
    return (Webhook.status == "on", WebhookDelivery.status == "pending", is_due)


def _switch_off(session: Session, webhook_id: int, reason: str) -> None:
    found = get_webhook(session, webhook_id)
    if found.status == "on":
        found.status, found.off_reason = "off", reason
        record_event(session, found.created_by, "webhook.off", found.id, reason=reason)
