"""Who acts: the account whose session a cookie names, or whoever owns the store's process.

Without accounts in the store the user is the local admin; `inf serve` then listens on loopback
only. A session is a row of the store (`db.people.sign_ins`): ending it ends it on every server.
"""

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime

from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session

from db.errors import Refused, StoreBehind
from db.people import accounts, sign_ins, tokens
from db.people.attempts import KNOWN_FOR
from db.people.rights import ALL_RIGHTS, Rights
from db.store.scope import unscoped
from db.store.store import Store
from db.tables import utc_now
from db.values import LOCAL_ADMIN

log = logging.getLogger("inf.app")
COOKIE = "inf_session"
USER = "inf.user"  # in an ASGI scope: who makes the request, by their cookie
ACCOUNT = "inf.account"  # in an ASGI scope: the id of the account that makes the request
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
    def owns_store(self) -> bool:
        """Whether it is whoever owns the store's process, at a command or in Python."""
        return self.via in ("command", "python")

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
class TokenHolder(SessionUser):
    """A program that acts for a person by a token, with what the token leaves of their rights.

    `datasets`: what the token is limited to, None for all of its person's. `token`: its name.
    `budget_usd`: what the runs that it starts may cost together; None where none may cost anything.
    """

    token_id: int = 0
    datasets: frozenset[int] | None = None
    token: str = ""
    budget_usd: float | None = None

    def now(self, session: Session) -> "TokenHolder | None":
        """As `Actor.now`: a token that ended meanwhile, or its person's account, is nobody's."""
        try:
            return _holder(session, tokens.held_token_by_id(session, self.token_id))
        except Refused:
            return None


@dataclass(frozen=True)
class CookieHolder(Actor):
    """Whoever the cookies name, read only in the transaction that does the work.

    For an action that may not cost one more read: where the rights are needed before, it has none.
    """

    cookies: Mapping[str, str] = field(default_factory=dict, compare=False, kw_only=True)

    def now(self, session: Session) -> SessionUser | None:
        """The user of the cookies, as `user_in`."""
        return user_in(session, self.cookies)


def holder_of_token(store: Store, text: str) -> TokenHolder:
    """Who presents a token; its use is recorded. Raises Refused for one that is not valid."""
    with unscoped(), store.read() as session:
        held = tokens.held_token(session, text)
        found, used_at = _holder(session, held), held.row.used_at
    if used_at is None or utc_now() - used_at > tokens.USED_EVERY:
        _note(store, lambda session: tokens.note_used(session, found.token_id))
    return found


def still_holds(store: Store, holder: TokenHolder) -> TokenHolder | None:
    """The holder with the rights of now; None where the token ended."""
    with unscoped(), store.read() as session:
        return holder.now(session)


def _holder(session: Session, held: tokens.Held) -> TokenHolder:
    account = held.account
    return TokenHolder(
        held.person,
        "token" if account is None else account.role,
        None if account is None else account.id,
        rights=held.rights,
        via="token",
        token_id=held.row.id,
        datasets=held.datasets,
        token=held.row.name,
        budget_usd=held.row.budget_usd,
    )


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
    session_id = user.session_id
    if utc_now() - user.seen_at > sign_ins.SEEN_EVERY:
        _note(store, lambda session: sign_ins.note_seen(session, session_id))


def _note(store: Store, note: Callable[[Session], None]) -> None:
    try:
        with unscoped(), store.write() as session:
            note(session)
            session.commit()
    # a store that is locked, or moved on, must not refuse who only reads
    except (OperationalError, StoreBehind) as error:
        log.warning("the use of a session or token was not recorded: %s", error)
