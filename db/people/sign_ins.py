"""Sessions of signed-in people: a row each, so that ending one ends it on the server.

The cookie is a random token, of which only the sha256 is stored.
"""

import hashlib
import secrets
from datetime import timedelta
from functools import cache
from typing import NamedTuple

from sqlalchemy import Select, bindparam, select, update
from sqlalchemy.orm import Session

from db.errors import NotFound
from db.people.rights import ALL_RIGHTS, RIGHT_COLUMNS, Rights, rights_in
from db.tables import Account, AccountSession, ApiToken, Member, Study, utc_now

SESSION_DAYS = 30
SEEN_EVERY = timedelta(minutes=10)  # not at every request: it is a write
MAX_DEVICE_CHARACTERS = 200


class SignedIn(NamedTuple):
    """An open session, its account and the account's rights."""

    row: AccountSession
    account: Account
    rights: Rights


def start_session(
    session: Session, account: Account, *, address: str = "", device: str = ""
) -> str:
    """Begin a session of the account; returns its token, for the cookie. Does not commit."""
    token = secrets.token_urlsafe(32)
    now = utc_now()
    session.add(
        AccountSession(
            token_sha256=token_sha256(token),
            account_id=account.id,
            address=address,
            device="".join(each for each in device if each.isprintable())[:MAX_DEVICE_CHARACTERS],
            seen_at=now,
            expires_at=now + timedelta(days=SESSION_DAYS),
        )
    )
    session.flush()
    return token


def open_session(session: Session, token: str) -> SignedIn | None:
    """The session of a token; None if it ended or the account is disabled. One statement."""
    return _open(session, "token_sha256", token_sha256(token)) if token else None


def still_open(session: Session, session_id: int) -> SignedIn | None:
    """A session by its id, with the rights of now; None as `open_session`."""
    return _open(session, "id", session_id)


def _open(session: Session, column: str, value: str | int) -> SignedIn | None:
    rows = session.execute(_open_session(column), {"value": value, "now": utc_now()}).all()
    if not rows:
        return None
    row, account = rows[0][:2]
    rights = ALL_RIGHTS if account.role == "admin" else rights_in(each[2:] for each in rows)
    return SignedIn(row, account, rights)


@cache  # every rerun of every page needs it
def _open_session(column: str) -> Select[AccountSession, Account, str, int | None, int | None, int]:
    return (
        select(AccountSession, Account, *RIGHT_COLUMNS)
        .join(Account, Account.id == AccountSession.account_id)
        .outerjoin(Member, Member.account_id == Account.id)
        .outerjoin(Study, Study.id == Member.study_id)
        .where(
            getattr(AccountSession, column) == bindparam("value"),
            AccountSession.ended_at.is_(None),
            AccountSession.expires_at > bindparam("now"),
            Account.disabled.is_(False),
        )
    )


def note_seen(session: Session, session_id: int) -> None:
    """Record that a session is in use, unless it was a moment ago. Does not commit."""
    now = utc_now()
    session.execute(
        update(AccountSession)
        .where(AccountSession.id == session_id, AccountSession.seen_at < now - SEEN_EVERY)
        .values(seen_at=now)
    )


def list_sessions(session: Session, account_id: int) -> list[AccountSession]:
    """An account's open sessions, the one last seen first."""
    return list(
        session.scalars(
            _open_ones(account_id).order_by(AccountSession.seen_at.desc(), AccountSession.id.desc())
        )
    )


def end_session(session: Session, account_id: int, session_id: int) -> None:
    """End one session of an account. Raises NotFound if it has no such one. Does not commit."""
    found = session.scalar(_open_ones(account_id).where(AccountSession.id == session_id))
    if found is None:
        raise NotFound(
            "you have no such session: it may have ended already",
            "reload the page",
            code="session_unknown",
        )
    found.ended_at = utc_now()
    session.flush()


def end_sessions(session: Session, account_id: int) -> None:
    """End all sessions of an account, and revoke its tokens: whoever was in by one could have made
    another. Does not commit."""
    session.execute(
        update(AccountSession)
        .where(AccountSession.account_id == account_id, AccountSession.ended_at.is_(None))
        .values(ended_at=utc_now())
    )
    session.execute(
        update(ApiToken)
        .where(ApiToken.account_id == account_id, ApiToken.revoked_at.is_(None))
        .values(revoked_at=utc_now())
    )


def _open_ones(account_id: int) -> Select[AccountSession]:
    return select(AccountSession).where(
        AccountSession.account_id == account_id,
        AccountSession.ended_at.is_(None),
        AccountSession.expires_at > utc_now(),
    )


def token_sha256(token: str) -> str:
    """What the store has of a session's token."""
    return hashlib.sha256(token.encode("utf-8", "replace")).hexdigest()
