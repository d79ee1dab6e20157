"""Passwords: how they are stored, which are accepted, and the one-time links that replace them."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import cache

from pwdlib import PasswordHash
from sqlalchemy import select, update
from sqlalchemy.orm import Session

from db.errors import BadInput, Refused
from db.events import record_event
from db.people.sign_ins import end_sessions, token_sha256
from db.tables import Account, PasswordLink, utc_now

MIN_PASSWORD_CHARACTERS = 12
MAX_PASSWORD_CHARACTERS = 1024
MIN_GUESSES = 10**8  # zxcvbn's "safely unguessable": somewhat slower than a leaked list is tried
# zxcvbn's time doubles with every two characters of a password that is full of look-alikes.
ESTIMATED_CHARACTERS = 18
LINK_HOURS = 24


@cache
def hasher() -> PasswordHash:
    """Argon2 with the recommended parameters."""
    return PasswordHash.recommended()


@dataclass(frozen=True)
class HashedPassword:
    """The hash of an accepted password."""

    argon2: str = field(repr=False)


def hash_password(password: str | HashedPassword, *, known: Sequence[str] = ()) -> HashedPassword:
    """The argon2 hash of a password that is long and not a common one.

    It takes a quarter of a second: call it before a session that writes, which locks SQLite, and
    pass on what it returns, which is returned as it is. `known` are texts that a guesser tries
    first: the account's name, the e-mail address. Raises BadInput.
    """
    if isinstance(password, HashedPassword):
        return password
    if not MIN_PASSWORD_CHARACTERS <= len(password) <= MAX_PASSWORD_CHARACTERS:
        raise BadInput(
            f"a password has {MIN_PASSWORD_CHARACTERS} to {MAX_PASSWORD_CHARACTERS} characters",
            code="password_length",
            minimum=MIN_PASSWORD_CHARACTERS,
            maximum=MAX_PASSWORD_CHARACTERS,
        )
    from zxcvbn import zxcvbn  # its lists of common passwords take a moment to load

    first = [*known, *(one[:ESTIMATED_CHARACTERS] for one in known)]
    if zxcvbn(password[:ESTIMATED_CHARACTERS], first)["guesses"] < MIN_GUESSES:
        raise BadInput(
            "this password is among the first that are guessed (common ones, names, rows of keys)",
            "several unrelated words make a good one",
            code="password_common",
        )
    return HashedPassword(hasher().hash(password))


def known_of(account: Account) -> list[str]:
    """What a guesser of this account's password tries first."""
    return [account.name, account.email or ""]


def set_password(
    session: Session, account: Account, password: str | HashedPassword, *, actor: str
) -> None:
    """Store another password; all sessions and password links of the account end.

    Raises BadInput. Does not commit.
    """
    account.password_hash = hash_password(password, known=known_of(account)).argon2
    end_sessions(session, account.id)
    end_password_links(session, account.id)
    record_event(session, actor, "account.reset-password", account.name)


def create_password_link(session: Session, account: Account, *, actor: str) -> str:
    """A link with which a person sets their password once; returns its token, which is not stored.

    Earlier links of the account no longer work. Does not commit.
    """
    end_password_links(session, account.id)
    token = secrets.token_urlsafe(32)
    session.add(
        PasswordLink(
            token_sha256=token_sha256(token),
            account_id=account.id,
            created_by=actor,
            expires_at=utc_now() + timedelta(hours=LINK_HOURS),
        )
    )
    session.flush()
    record_event(session, actor, "account.password-link", account.name)
    return token


def end_password_links(session: Session, account_id: int) -> None:
    """Make the open password links of an account useless. Does not commit."""
    session.execute(
        update(PasswordLink)
        .where(PasswordLink.account_id == account_id, PasswordLink.used_at.is_(None))
        .values(used_at=utc_now())
    )


def account_of_link(session: Session, token: str) -> Account:
    """The account of a password link. Raises Refused if it was used, has expired or is disabled."""
    return _open_link(session, token)[1]


def use_password_link(session: Session, token: str, password: str | HashedPassword) -> Account:
    """Set the password of a link's account and end its sessions; its links are used up.

    Raises Refused as `account_of_link` does, BadInput for a bad password. Does not commit.
    """
    link, account = _open_link(session, token)
    set_password(session, account, password, actor=f"link of {link.created_by}")
    session.flush()
    return account


def _open_link(session: Session, token: str) -> tuple[PasswordLink, Account]:
    link = session.scalar(
        select(PasswordLink)
        .where(PasswordLink.token_sha256 == token_sha256(token))
        .with_for_update()
    )
    account = None if link is None else session.get_one(Account, link.account_id)
    if link is None or account is None or account.disabled:
        raise Refused("this link does not work", "ask an admin for another", code="link_broken")
    if link.used_at is not None or link.expires_at < utc_now():
        raise Refused(
            "this link was used already or has expired",
            "ask an admin for another",
            code="link_over",
        )
    return link, account
