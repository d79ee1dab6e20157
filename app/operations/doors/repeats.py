"""Requests that are sent once more with their `Idempotency-Key`: answered again, not done again."""

from datetime import timedelta

from sqlalchemy import delete, select, update
from sqlalchemy.exc import IntegrityError

from app.access.identity import TokenHolder
from db.errors import BadInput, Refused
from db.store.scope import unscoped
from db.store.store import open_store
from db.tables import ApiAnswer, utc_now

KEPT = timedelta(hours=24)
MAX_KEY = 255


def begin(holder: TokenHolder, key: str, request_sha256: str) -> ApiAnswer | None:
    """The answer to the first request of this key; None for the first, which is noted.

    Raises Refused while the first is worked on (or was cut off: whether it was done is not known),
    and BadInput for another request under the same key.
    """
    if not (0 < len(key) <= MAX_KEY and key.isprintable()):
        raise BadInput(
            f"an idempotency key has 1 to {MAX_KEY} visible characters",
            "make one such as a UUID",
            code="idempotency_key",
        )
    with unscoped():
        with open_store().write() as session:
            session.execute(delete(ApiAnswer).where(ApiAnswer.created_at < utc_now() - KEPT))
            session.add(
                ApiAnswer(token_id=holder.token_id, request_key=key, request_sha256=request_sha256)
            )
            try:
                session.commit()
                return None
            except IntegrityError:
                session.rollback()
        with open_store().read() as session:
            own = (ApiAnswer.token_id == holder.token_id, ApiAnswer.request_key == key)
            found = session.scalar(select(ApiAnswer).where(*own))
    if found is not None and found.request_sha256 != request_sha256:
        raise BadInput(
            "this idempotency key was another request's",
            "make a new key for each request",
            code="idempotency_key_reused",
        )
    if found is None or found.status is None:
        raise Refused(
            "the first request with this idempotency key is not answered yet",
            "ask again in a moment, or look whether it was done",
            code="idempotency_pending",
        )
    return found


def finish(holder: TokenHolder, key: str, status: int, body: str) -> None:
    """Keep the answer for a day; that of a failure is not: the request may be sent again."""
    own = (ApiAnswer.token_id == holder.token_id, ApiAnswer.request_key == key)
    with unscoped(), open_store().write() as session:
        if status < 400:
            session.execute(update(ApiAnswer).where(*own).values(status=status, body=body))
        else:
            session.execute(delete(ApiAnswer).where(*own))
        session.commit()
