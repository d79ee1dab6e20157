"""Accounts, their roles, and the audit log.

Roles are ordered: annotator < curator < admin. What would surprise: a cookie carries the account's
`epoch`; changing a password, disabling, or signing out everywhere raises it, which ends every
session. A wrong name and a wrong password cost the same time and get the same words.
"""

from collections.abc import Sequence
from datetime import timedelta
from functools import cache
from typing import Any

from pwdlib import PasswordHash
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.errors import BadInput, NotFound, Refused
from db.tables import Account, Audit, utc_now
from db.words import ACCOUNT_ROLES

SHORTEST_PASSWORD = 10
LONGEST_PASSWORD = 1024
LONGEST_NAME = 80
GUESSES_WITHIN = timedelta(minutes=15)
MOST_GUESSES_OF_A_NAME_HERE = 5
MOST_GUESSES_HERE = 30
MOST_GUESSES_OF_A_NAME = 100


@cache
def _hasher() -> PasswordHash:
    return PasswordHash.recommended()


@cache
def _nobodys_hash() -> str:
    return _hasher().hash("nobody has this password")


def are_there_accounts(session: Session) -> bool:
    """Whether anybody signs in here; without accounts the app is a local admin's own."""
    return session.scalar(select(Account.id).limit(1)) is not None


def add_account(
    session: Session, name: str, password: str | None, *, role: str, actor: str
) -> Account:
    """Add an account; without a password it is let in by an OpenID provider only.

    Raises BadInput for a bad name, role or password, Refused for a taken name. Does not commit.
    """
    name = name.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise BadInput(f"account name {name!r}: 1 to {LONGEST_NAME} printable characters")
    check_role(role)
    if session.scalar(select(Account.id).where(Account.name == name)) is not None:
        raise Refused(f"there is an account {name!r} already: choose another name")
    stored = None if password is None else hash_password(password)
    account = Account(name=name, role=role, password_hash=stored)
    session.add(account)
    session.flush()
    record_audit(session, actor, "account.add", name, role=role)
    return account


def get_account(session: Session, name: str) -> Account:
    """The account of this name. Raises NotFound."""
    account = session.scalar(select(Account).where(Account.name == name))
    if account is None:
        raise NotFound(f"no account {name!r}: `inf users list` shows all")
    return account


def list_accounts(session: Session) -> list[Account]:
    """All accounts by name."""
    return list(session.scalars(select(Account).order_by(Account.name)))


def check_password(
    session: Session, name: str, password: str, *, address: str = ""
) -> Account | None:
    """The account when name and password match and it is not disabled, else None.

    Notes the attempt in the audit log. Raises Refused after too many wrong ones, before the
    password is looked at. Does not commit.
    """
    name = name.strip()[:LONGEST_NAME]
    _refuse_a_guesser(session, name, address)
    account = session.scalar(select(Account).where(Account.name == name))
    stored = account.password_hash if account and account.password_hash else None
    matches = _hasher().verify(password[:LONGEST_PASSWORD], stored or _nobodys_hash())
    if account is None or stored is None or not matches or account.disabled:
        record_audit(session, name, "sign-in.refused", address=address)
        return None
    record_audit(session, account.name, "sign-in", address=address)
    return account


def _refuse_a_guesser(session: Session, name: str, address: str) -> None:
    """Wrong attempts of the last quarter of an hour, by name and address, address, and name."""
    since = utc_now() - GUESSES_WITHIN
    wrong = session.scalars(
        select(Audit)
        .where(Audit.action == "sign-in.refused", Audit.created_at > since)
        .order_by(Audit.id.desc())
        .limit(10 * MOST_GUESSES_OF_A_NAME)
    ).all()
    here = [row for row in wrong if row.detail.get("address") == address]
    if (
        sum(row.actor == name for row in here) >= MOST_GUESSES_OF_A_NAME_HERE
        or len(here) >= MOST_GUESSES_HERE
        or sum(row.actor == name for row in wrong) >= MOST_GUESSES_OF_A_NAME
    ):
        raise Refused("too many wrong attempts: wait a quarter of an hour and try again")


def account_of_cookie(session: Session, account_id: int, epoch: int) -> Account | None:
    """The account a cookie speaks of; None once it was disabled or signed out everywhere."""
    account = session.get(Account, account_id)
    if account is None or account.disabled or account.epoch != epoch:
        return None
    return account


def reset_password(session: Session, name: str, password: str, *, actor: str) -> Account:
    """Set another password and end the account's sessions. Does not commit."""
    account = get_account(session, name)
    account.password_hash = hash_password(password)
    account.epoch += 1
    record_audit(session, actor, "account.reset-password", name)
    return account


def set_role(session: Session, name: str, role: str, *, actor: str) -> Account:
    """Give an account another role. Raises Refused for the last admin. Does not commit."""
    check_role(role)
    account = get_account(session, name)
    if role != "admin":
        _keep_an_admin(session, account)
    record_audit(session, actor, "account.role", name, before=account.role, after=role)
    account.role = role
    return account


def set_disabled(session: Session, name: str, disabled: bool, *, actor: str) -> Account:
    """Shut an account out at once, or let it in again. Raises Refused for the last admin.

    Does not commit.
    """
    account = get_account(session, name)
    if disabled:
        _keep_an_admin(session, account)
        account.epoch += 1
    account.disabled = disabled
    record_audit(session, actor, "account.disable" if disabled else "account.enable", name)
    return account


def sign_out_everywhere(session: Session, name: str, *, actor: str) -> Account:
    """End all sessions of an account. Does not commit."""
    account = get_account(session, name)
    account.epoch += 1
    record_audit(session, actor, "sign-out.everywhere", name)
    return account


def record_audit(
    session: Session, actor: str, action: str, subject: str = "", **detail: Any
) -> None:
    """Note who did what. Does not commit."""
    session.add(Audit(actor=actor, action=action, subject=subject, detail=detail))


def list_audit(
    session: Session, *, actions: Sequence[str] = (), offset: int = 0, limit: int = 50
) -> tuple[list[Audit], int]:
    """A page of the audit log, newest first, and how many rows there are in all."""
    query = select(Audit)
    if actions:
        query = query.where(Audit.action.in_(actions))
    total = session.scalar(select(func.count()).select_from(query.subquery())) or 0
    rows = session.scalars(query.order_by(Audit.id.desc()).offset(offset).limit(limit))
    return list(rows), total


def audit_actions(session: Session) -> list[str]:
    """The actions that occur in the audit log."""
    return list(session.scalars(select(Audit.action).distinct().order_by(Audit.action)))


def hash_password(password: str) -> str:
    """The argon2 hash. Raises BadInput for a password that is too short or too long."""
    if not SHORTEST_PASSWORD <= len(password) <= LONGEST_PASSWORD:
        raise BadInput(f"a password has {SHORTEST_PASSWORD} to {LONGEST_PASSWORD} characters")
    return _hasher().hash(password)


def check_role(role: str) -> None:
    """Raise BadInput for a role that there is not."""
    if role not in ACCOUNT_ROLES:
        raise BadInput(f"no role {role!r}: one of {', '.join(ACCOUNT_ROLES)}")


def _keep_an_admin(session: Session, account: Account) -> None:
    if account.role != "admin" or account.disabled:
        return
    others = select(func.count()).where(
        Account.role == "admin", Account.disabled.is_(False), Account.id != account.id
    )
    if not session.scalar(others):
        raise Refused(f"{account.name!r} is the last admin: make another account admin first")
