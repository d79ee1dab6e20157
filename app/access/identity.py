"""Who acts: the account whose session a cookie names, or whoever owns the store's process.

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
from db.store.scope import unscoped
from db.store.store import Store
from db.tables import utc_now
from db.values import LOCAL_ADMIN

log = logging.getLogger("inf.app")
COOKIE = "inf_session"
COOKIE_SECONDS = sign_ins.SESSION_DAYS * 24 * 3600
DEVICE_COOKIE = "inf_device"  # the same token, which outlives its session (`db.people.attempts`)
DEVICE_SECONDS = KNOWN_FOR.days * 24 * 3600


@dataclass(frozen=True)
class Actor:
    """Who does something, with which rights, and through which door.

    `via`: page, command, token or python; a job's process acts for who launched it.
    """

    name: str
    rights: Rights = field(default_factory=Rights, compare=False, kw_only=True)
    via: str = field(default="page", compare=False, kw_only=True)

    @property
    def is_admin(self) -> bool:
        """Whether the actor has every right."""
        return self.rights.is_admin

    def now(self, session: Session) -> "Actor | None":
        """The actor with the rights of now, in the transaction that writes; None if signed out.

        Whoever owns the store's process keeps every right.
        """
        return self


def owner(name: str, via: str = "command") -> Actor:
    """Whoever owns the store's process, or the program itself for a person: every right."""
    return Actor(name, rights=ALL_RIGHTS, via=via)


@dataclass(frozen=True)
class SessionUser(Actor):
    """The user of a session; `account_id` is None for the local admin."""

    role: str = ""
    account_id: int | None = None
    session_id: int | None = None
    seen_at: datetime | None = None

    def now(self, session: Session) -> "SessionUser | None":
        """As `Actor.now`: who signed out, or whose account is disabled, is nobody."""
        if self.session_id is None:  # the local admin, until there is an account
            return None if accounts.has_accounts(session) else self
        return _user_of(sign_ins.still_open(session, self.session_id))


@dataclass(frozen=True)
class CookieHolder(Actor):
    """Whoever the cookies name, read only in the transaction that does the work.

    For an action that may not cost one more read: where the rights are needed before, it has none.
    """

    cookies: Mapping[str, str] = field(default_factory=dict, compare=False, kw_only=True)

    def now(self, session: Session) -> SessionUser | None:
        """The user of the cookies, as `user_in`."""
        return user_in(session, self.cookies)


def user_of_cookies(store: Store, cookies: Mapping[str, str]) -> SessionUser | None:
    """The user of the cookie's session, the local admin if the store has no accounts, else None."""
    with unscoped(), store.read() as session:
        return user_in(session, cookies)


def user_in(session: Session, cookies: Mapping[str, str]) -> SessionUser | None:
    """The user of the cookie's session, as `user_of_cookies`."""
    token = cookies.get(COOKIE)
    # AppTest's cookies are mocks
    found = _user_of(sign_ins.open_session(session, token) if isinstance(token, str) else None)
    if found is None and not accounts.has_accounts(session):
        return SessionUser(LOCAL_ADMIN, "admin", rights=ALL_RIGHTS)
    return found


def _user_of(found: sign_ins.SignedIn | None) -> SessionUser | None:
    if found is None:
        return None
    row, account, rights = found
    return SessionUser(account.name, account.role, account.id, row.id, row.seen_at, rights=rights)


def note_seen(store: Store, user: SessionUser) -> None:
    """Record that the user's session is in use, unless it was recorded a moment ago."""
    if user.session_id is None or user.seen_at is None:
        return
    if utc_now() - user.seen_at > sign_ins.SEEN_EVERY:
        try:
            with unscoped(), store.write() as session:
                sign_ins.note_seen(session, user.session_id)
                session.commit()
        # a store that is locked, or moved on, must not refuse who only reads
        except (OperationalError, StoreBehind) as error:
            log.warning("the use of a session was not recorded: %s", error)
