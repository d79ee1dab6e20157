"""Accounts and their roles: admin, or a preset of rights (`db.people.rights`).

A wrong name and a wrong password take the same time
and give the same message.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from sqlalchemy import and_, or_, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from db.errors import BadInput, NotFound, Refused
from db.events import record_event
from db.names import MAX_NAME_CHARACTERS, look_alike, name_problem, tidy_name
from db.people.attempts import device_of, limit_attempts, place_of, record_failure
from db.people.passwords import (
    MAX_PASSWORD_CHARACTERS,
    HashedPassword,
    end_password_links,
    hash_password,
    hasher,
    set_password,
)
from db.people.rights import PRESETS, replace_rights, set_rights
from db.people.sign_ins import end_sessions
from db.people.tours import pass_tour_on
from db.tables import Account
from db.values import ACCOUNT_ROLES, LOCAL_ADMIN

PROBLEMS = {
    "length": f"has 1 to {MAX_NAME_CHARACTERS} characters",
    "characters": "has visible characters alone",
    "reserved": "is no name with a colon, as models and simulated judges have, nor one that "
    "InF Studio uses itself",
    "scripts": "has letters of one script: some of these look like letters of another",
}


@cache
def _dummy_hash() -> str:
    return hasher().hash("no account has this password")


def has_accounts(session: Session) -> bool:
    """Whether anyone signs in here; without accounts the app runs as its local admin."""
    return session.scalar(select(Account.id).limit(1)) is not None


def add_account(
    session: Session,
    name: str,
    password: str | HashedPassword | None,
    *,
    role: str,
    actor: str,
    dataset_ids: Sequence[int] | None = None,
) -> Account:
    """Add an account; without a password it can sign in by an OpenID provider only.

    It has the rights of its role's preset on these datasets, by default everywhere. Raises BadInput
    for a bad role or password, and as `free_name` does. Does not commit.
    """
    name = free_name(session, name)
    check_role(role)
    if role == "admin" and not has_accounts(session):  # the local admin, who is the same person
        pass_tour_on(session, LOCAL_ADMIN, name)
    stored = None if password is None else hash_password(password, known=[name]).argon2
    account = Account(name=name, role=role, password_hash=stored)
    with taking_name(session, name):
        session.add(account)
    record_event(session, actor, "account.add", name, role=role)
    if dataset_ids is None:
        set_rights(session, account, PRESETS[role], actor=actor)
    for dataset_id in dataset_ids or ():
        set_rights(session, account, PRESETS[role], actor=actor, dataset_id=dataset_id)
    return account


def free_name(session: Session, name: str, *, but: int | None = None) -> str:
    """The name as an account gets it. Every door that makes or renames an account goes through it.

    Raises BadInput for a name that nobody may have (`db.names`), Refused for one that another
    account (but for that of id `but`) has, or that can be taken for one. The database refuses the
    same key (`name_key`) once more.
    """
    name = tidy_name(name)
    if problem := name_problem(name):
        raise BadInput(
            f"account name {name[:MAX_NAME_CHARACTERS]!r}: a name {PROBLEMS[problem]}",
            code=f"account_name_{problem}",
            count=MAX_NAME_CHARACTERS,
        )
    others = select(Account.name).where(Account.id != (but or 0))
    for other in session.scalars(others):
        if other == name:
            raise _exists(name)
        if look_alike(other, name):  # without the other name: the door is open to strangers
            raise Refused(
                f"account name {name!r} can be taken for that of another account",
                "choose another",
                code="account_alike",
                name=name,
            )
    return name


@contextmanager
def taking_name(session: Session, name: str) -> Iterator[None]:
    """Flush an account's free name at the end; Refused where another took it at the same moment.

    `free_name` does not see what another transaction is about to commit; the unique keys do.
    """
    try:
        with session.begin_nested():
            yield
            session.flush()
    except IntegrityError as error:
        raise _exists(name) from error


def _exists(name: str) -> Refused:
    return Refused(
        f"account {name!r} exists already", "choose another name", code="account_exists", name=name
    )


def get_account(session: Session, name: str) -> Account:
    """The account of this name. Raises NotFound."""
    account = session.scalar(select(Account).where(Account.name == name))
    if account is None:
        raise NotFound(f"no account {name!r}", "`people list` shows all", code="account_unknown")
    return account


def list_accounts(session: Session) -> list[Account]:
    """All accounts by name."""
    return list(session.scalars(select(Account).order_by(Account.name)))


def check_password(
    session: Session, name: str, password: str, *, address: str = "", device: str = ""
) -> Account | None:
    """The account when name and password match and it is not disabled, else None.

    `device`: the token of an earlier session in this browser (`db.people.attempts`).
    Records the attempt in the audit log. Raises Refused after too many failed ones, before the
    password is checked. Does not commit.
    """
    typed, place = name.strip()[:MAX_NAME_CHARACTERS], place_of(address)
    name = tidy_name(typed)
    device = device_of(session, name, device)
    limit_attempts(session, name, place, device)
    named = select(Account).where(Account.name.in_((name, typed)))
    # earlier versions stored names as they were typed
    account = session.scalar(named.order_by(Account.name != typed).limit(1))
    stored = account.password_hash if account and account.password_hash else None
    matches = hasher().verify(password[:MAX_PASSWORD_CHARACTERS], stored or _dummy_hash())
    if account is None or stored is None or not matches or account.disabled:
        record_failure(session, name, place, device)
        return None
    record_event(session, account.name, "sign-in", address=place)
    return account


def reset_password(
    session: Session, name: str, password: str | HashedPassword, *, actor: str
) -> Account:
    """Set another password and end the account's sessions. Does not commit."""
    account = get_account(session, name)
    set_password(session, account, password, actor=actor)
    return account


def set_role(session: Session, name: str, role: str, *, actor: str) -> Account:
    """Give an account another role, with the rights of its preset where it has rights now.

    Rights that are not of the preset end, on datasets and studies, too. Who was an admin has the
    preset everywhere. Raises Refused for the last admin. Does not commit.
    """
    check_role(role)
    account = get_account(session, name)
    if role != "admin":
        require_another_admin(session, account)
    record_event(session, actor, "account.role", name, before=account.role, after=role)
    was_admin, account.role = account.role == "admin", role
    replace_rights(session, account, PRESETS[role], actor=actor)
    if was_admin:
        set_rights(session, account, PRESETS[role], actor=actor)
    return account


def set_disabled(session: Session, name: str, disabled: bool, *, actor: str) -> Account:
    """Disable or enable an account, at once; disabling ends its password links.

    Raises Refused for the last admin. Does not commit.
    """
    account = get_account(session, name)
    if disabled:
        require_another_admin(session, account)
        end_sessions(session, account.id)
        end_password_links(session, account.id)
    account.disabled = disabled
    record_event(session, actor, "account.disable" if disabled else "account.enable", name)
    return account


def sign_out_everywhere(session: Session, name: str, *, actor: str) -> Account:
    """End all sessions of an account. Does not commit."""
    account = get_account(session, name)
    end_sessions(session, account.id)
    record_event(session, actor, "sign-out.everywhere", name)
    return account


def check_role(role: str) -> None:
    """Raise BadInput for an unknown role."""
    if role not in ACCOUNT_ROLES:
        raise BadInput(
            f"no role {role!r}", f"one of {', '.join(ACCOUNT_ROLES)}", code="role_unknown"
        )


def require_another_admin(session: Session, account: Account) -> None:
    """Raise Refused for the last admin, NotFound for an account that is gone by now.

    Locks the admins' rows, so that two who end each other at the same moment leave one (on SQLite a
    writing session is alone anyway).
    """
    is_admin = and_(Account.role == "admin", Account.disabled.is_(False))
    locked = session.scalars(
        select(Account)
        .where(or_(is_admin, Account.id == account.id))
        .order_by(Account.id)
        .with_for_update()
        .execution_options(populate_existing=True)
    ).all()
    if account.id not in {one.id for one in locked}:
        raise NotFound(
            f"no account {account.name!r}: it was deleted meanwhile",
            "`people list` shows those that are there",
            code="account_unknown",
        )
    if account.role == "admin" and not account.disabled and len(locked) == 1:
        raise Refused(
            f"{account.name!r} is the last admin",
            "make another account an admin first",
            code="last_admin",
        )
