"""Accounts, their roles, and the audit log.

Roles are ordered: annotator < curator < admin. Note: a cookie carries the account's `epoch`;
changing a password, disabling, or signing out everywhere increments it, which ends every session.
A wrong name and a wrong password take the same time and give the same message.
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
from db.values import ACCOUNT_ROLES

MIN_PASSWORD_CHARACTERS = 10
MAX_PASSWORD_CHARACTERS = 1024
MAX_NAME_CHARACTERS = 80
ATTEMPTS_WINDOW = timedelta(minutes=15)
MAX_ATTEMPTS_BY_NAME_AND_ADDRESS = 5
MAX_ATTEMPTS_BY_ADDRESS = 30
MAX_ATTEMPTS_BY_NAME = 100


@cache
def _hasher() -> PasswordHash:
    return PasswordHash.recommended()


@cache
def _dummy_hash() -> str:
    return _hasher().hash("no account has this password")


def has_accounts(session: Session) -> bool:
    """Whether anyone signs in here; without accounts the app runs as its local admin."""
    return session.scalar(select(Account.id).limit(1)) is not None


def add_account(
    session: Session, name: str, password: str | None, *, role: str, actor: str
) -> Account:
    """Add an account; without a password it can sign in by an OpenID provider only.

    Raises BadInput for a bad name, role or password, Refused for a taken name. Does not commit.
    """
    name = name.strip()
    if not name or len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        raise BadInput(f"account name {name!r}: 1 to {MAX_NAME_CHARACTERS} printable characters")
    check_role(role)
    if session.scalar(select(Account.id).where(Account.name == name)) is not None:
        raise Refused(f"account {name!r} exists already: choose another name")
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

    Records the attempt in the audit log. Raises Refused after too many failed ones, before the
    password is checked. Does not commit.
    """
    name = name.strip()[:MAX_NAME_CHARACTERS]
    _limit_attempts(session, name, address)
    account = session.scalar(select(Account).where(Account.name == name))
    stored = account.password_hash if account and account.password_hash else None
    matches = _hasher().verify(password[:MAX_PASSWORD_CHARACTERS], stored or _dummy_hash())
    if account is None or stored is None or not matches or account.disabled:
        record_audit(session, name, "sign-in.refused", address=address)
        return None
    record_audit(session, account.name, "sign-in", address=address)
    return account


def _limit_attempts(session: Session, name: str, address: str) -> None:
    """Raise Refused after too many failed attempts, by name and address, address, or name."""
    since = utc_now() - ATTEMPTS_WINDOW
    wrong = session.scalars(
        select(Audit)
        .where(Audit.action == "sign-in.refused", Audit.created_at > since)
        .order_by(Audit.id.desc())
        .limit(10 * MAX_ATTEMPTS_BY_NAME)
    ).all()
    here = [row for row in wrong if row.detail.get("address") == address]
    if (
        sum(row.actor == name for row in here) >= MAX_ATTEMPTS_BY_NAME_AND_ADDRESS
        or len(here) >= MAX_ATTEMPTS_BY_ADDRESS
        or sum(row.actor == name for row in wrong) >= MAX_ATTEMPTS_BY_NAME
    ):
        raise Refused("too many failed attempts: wait a quarter of an hour and try again")


def account_of_cookie(session: Session, account_id: int, epoch: int) -> Account | None:
    """The account of a cookie; None once it was disabled or signed out everywhere."""
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
        _require_another_admin(session, account)
    record_audit(session, actor, "account.role", name, before=account.role, after=role)
    account.role = role
    return account


def set_disabled(session: Session, name: str, disabled: bool, *, actor: str) -> Account:
    """Disable or enable an account, at once. Raises Refused for the last admin.

    Does not commit.
    """
    account = get_account(session, name)
    if disabled:
        _require_another_admin(session, account)
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
    """Add a row to the audit log. Does not commit."""
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
    if not MIN_PASSWORD_CHARACTERS <= len(password) <= MAX_PASSWORD_CHARACTERS:
        raise BadInput(
            f"a password has {MIN_PASSWORD_CHARACTERS} to {MAX_PASSWORD_CHARACTERS} characters"
        )
    return _hasher().hash(password)


def check_role(role: str) -> None:
    """Raise BadInput for an unknown role."""
    if role not in ACCOUNT_ROLES:
        raise BadInput(f"no role {role!r}: one of {', '.join(ACCOUNT_ROLES)}")


def _require_another_admin(session: Session, account: Account) -> None:
    if account.role != "admin" or account.disabled:
        return
    others = select(func.count()).where(
        Account.role == "admin", Account.disabled.is_(False), Account.id != account.id
    )
    if not session.scalar(others):
        raise Refused(f"{account.name!r} is the last admin: make another account an admin first")
