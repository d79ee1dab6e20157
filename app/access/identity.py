"""The session user: the account that a signed cookie names, or none.

Without accounts in the store the user is the local admin; `inf serve` then listens on loopback
only. The key that signs cookies is a file in INF_HOME, or INF_SECRET_KEY
where several servers share one store.
"""

import os
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from itsdangerous import BadData, URLSafeTimedSerializer

from db.people import accounts
from db.store.settings import home
from db.store.store import Store
from db.tables import Account
from db.values import ACCOUNT_ROLES

COOKIE = "inf_session"
COOKIE_SECONDS = 30 * 24 * 3600
LOCAL_ADMIN = "local admin"


@dataclass(frozen=True)
class SessionUser:
    """The user of a session: name and role; `account_id` is None for the local admin."""

    name: str
    role: str
    account_id: int | None = None

    def may(self, role: str) -> bool:
        """Whether this role is at least the given one."""
        return ACCOUNT_ROLES.index(self.role) >= ACCOUNT_ROLES.index(role)


def user_of_cookies(store: Store, cookies: Mapping[str, str]) -> SessionUser | None:
    """The user that the cookie names, the local admin if the store has no accounts, else None."""
    with store.read() as session:
        if not accounts.has_accounts(session):
            return SessionUser(LOCAL_ADMIN, "admin")
        account_id, epoch = read_cookie(cookies.get(COOKIE, ""))
        account = accounts.account_of_cookie(session, account_id, epoch)
    return None if account is None else SessionUser(account.name, account.role, account.id)


def write_cookie(account: Account) -> str:
    """The cookie's value for an account that has just signed in."""
    return _signer(_secret()).dumps([account.id, account.epoch])


def read_cookie(value: str) -> tuple[int, int]:
    """Account id and epoch of a cookie that we signed, otherwise (0, 0), which no account has."""
    try:
        account_id, epoch = _signer(_secret()).loads(value, max_age=COOKIE_SECONDS)
    except (BadData, ValueError, TypeError):
        return 0, 0
    return int(account_id), int(epoch)


@lru_cache(maxsize=4)
def _signer(secret: str) -> URLSafeTimedSerializer:
    return URLSafeTimedSerializer(secret, salt="inf-session")


def _secret() -> str:
    return os.environ.get("INF_SECRET_KEY") or _secret_of_file(home() / "secret.key")


@lru_cache(maxsize=4)
def _secret_of_file(path: Path) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        descriptor = os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
    except FileExistsError:
        return path.read_text()
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_urlsafe(48))
    return path.read_text()
