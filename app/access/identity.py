"""The session user: the account whose session a cookie names, or none.

Without accounts in the store the user is the local admin; `inf serve` then listens on loopback
only. A session is a row of the store (`db.people.sign_ins`): ending it ends it on every server.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from db.errors import StoreBehind
from db.people import accounts, sign_ins
from db.people.attempts import KNOWN_FOR
from db.people.rights import ALL_RIGHTS, Rights
from db.store.store import Store
from db.tables import utc_now
from db.values import LOCAL_ADMIN

log = logging.getLogger("inf.app")
COOKIE = "inf_session"
COOKIE_SECONDS = sign_ins.SESSION_DAYS * 24 * 3600
DEVICE_COOKIE = "inf_device"  # the same token, which outlives its session (`db.people.attempts`)
DEVICE_SECONDS = KNOWN_FOR.days * 24 * 3600


@dataclass(frozen=True)
class SessionUser:
    """The user of a session, with their rights; `account_id` is None for the local admin."""

    name: str
    role: str
    account_id: int | None = None
    session_id: int | None = None
    seen_at: datetime | None = None
    rights: Rights = field(default_factory=Rights, compare=False)

    @property
    def is_admin(self) -> bool:
        """Whether the user is an admin, who has every right."""
        return self.rights.is_admin


def user_of_cookies(store: Store, cookies: Mapping[str, str]) -> SessionUser | None:
    """The user of the cookie's session, the local admin if the store has no accounts, else None."""
    with store.read() as session:
        return user_in(session, cookies)


def user_in(session: Session, cookies: Mapping[str, str]) -> SessionUser | None:
    """The user of the cookie's session, as `user_of_cookies`."""
    token = cookies.get(COOKIE)
    # AppTest's cookies are mocks
    found = sign_ins.open_session(session, token) if isinstance(token, str) else None
    if found is None:
        is_local = not accounts.has_accounts(session)
        return SessionUser(LOCAL_ADMIN, "admin", rights=ALL_RIGHTS) if is_local else None
    row, account, rights = found
    return SessionUser(account.name, account.role, account.id, row.id, row.seen_at, rights)


def note_seen(store: Store, user: SessionUser) -> None:
    """Record that the user's session is in use, unless it was recorded a moment ago."""
    if user.session_id is None or user.seen_at is None:
        return
    if utc_now() - user.seen_at > sign_ins.SEEN_EVERY:
        try:
            with store.write() as session:
                sign_ins.note_seen(session, user.session_id)
                session.commit()
        # a store that is locked, or moved on, must not refuse who only reads
        except (OperationalError, StoreBehind) as error:
            log.warning("the use of a session was not recorded: %s", error)
