"""The optional fields of an account: one row each, which page, commands and `--json` read.

A new field is a column of `Account` (`db/tables/people.py`) with its migration, and a row here.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.errors import BadInput, NotFound, Refused
from db.events import record_event
from db.people.accounts import get_account
from db.tables import Account

MAX_FIELD_CHARACTERS = 200


# E-mail addresses of accounts, by which an OpenID provider identifies people.
#
# Addresses are stored in lower case and are unique. Note: nothing is ever sent to them; an account
# without a password can sign in by its address alone, through the provider.
ADDRESS = re.compile(r"[^@\s]+@[^@\s]+")
MAX_EMAIL_CHARACTERS = 254


def checked_email(text: str) -> str:
    """An address in lower case, or "". Raises BadInput for an invalid one."""
    email = text.strip().lower()
    if email and (len(email) > MAX_EMAIL_CHARACTERS or not ADDRESS.fullmatch(email)):
        raise BadInput(
            f"{email[:60]!r} is not an e-mail address",
            "use a form like name@example.org",
            code="email_invalid",
        )
    return email


def checked_line(text: str) -> str:
    """A line of printable text without spaces around it. Raises BadInput for any other."""
    text = text.strip()
    if len(text) > MAX_FIELD_CHARACTERS or not text.isprintable():
        raise BadInput(
            f"{text[:60]!r}: at most {MAX_FIELD_CHARACTERS} printable characters",
            "shorten it",
            code="account_field_invalid",
        )
    return text


@dataclass(frozen=True)
class AccountField:
    """A text that an account may have; `column` is also its option, command and JSON key."""

    column: str
    label: str
    help: str
    check: Callable[[str], str] = checked_line  # the text to store; raises BadInput
    is_unique: bool = False
    needs_openid: bool = False  # the page shows it only where an OpenID provider is configured


FIELDS = (
    AccountField(
        "email",
        "E-mail",
        "An e-mail address, which identifies the person to the OpenID provider.",
        check=checked_email,
        is_unique=True,
        needs_openid=True,
    ),
)


def account_field(column: str) -> AccountField:
    """The field of this column. Raises NotFound."""
    for field in FIELDS:
        if field.column == column:
            return field
    raise NotFound(
        f"no account field {column!r}: {', '.join(field.column for field in FIELDS)}",
        "name one of these",
        code="account_field_unknown",
    )


def field_values(account: Account) -> dict[str, str | None]:
    """The optional fields of an account by column; None where it has no value."""
    return {field.column: getattr(account, field.column) for field in FIELDS}


def set_field(session: Session, name: str, column: str, text: str, *, actor: str) -> Account:
    """Set a field of an account, or remove its value with "". Does not commit.

    Raises NotFound for an unknown account or field, BadInput for an invalid text, Refused for a
    unique one that another account has.
    """
    account, field = get_account(session, name), account_field(column)
    text = field.check(text)
    if field.is_unique and text:
        holder = session.scalar(select(Account).where(getattr(Account, column) == text))
        if holder is not None and holder.id != account.id:
            raise Refused(
                f"{field.label} {text}: the account {holder.name!r} has it already",
                "correct it, or remove it there first",
                code="account_field_taken",
            )
    setattr(account, column, text or None)
    session.flush()
    record_event(session, actor, f"account.{column}", name, **{column: text})
    return account


def set_fields(session: Session, name: str, texts: Mapping[str, str], *, actor: str) -> None:
    """Set the fields of a new account whose text is not empty. Raises as `set_field` does."""
    for column, text in texts.items():
        if text:
            set_field(session, name, column, text, actor=actor)


def sign_in_by_email(session: Session, email: str, *, address: str = "") -> Account:
    """The account of an address that the OpenID provider vouches for; recorded in the audit log.

    Raises Refused if no account has it, or a disabled one; the refusal is recorded too, so commit
    in either case. Does not commit.
    """
    email = email.strip().lower()
    account = session.scalar(select(Account).where(Account.email == email)) if email else None
    if account is None or account.disabled:
        record_event(session, email, "openid.refused", address=address)
        raise Refused(
            f"no account here has the address {email}",
            "ask an admin for one",
            code="email_unknown",
            email=email,
        )
    record_event(session, account.name, "sign-in", address=address, via="openid")
    return account
