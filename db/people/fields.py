"""The optional fields of an account: one row each, which page, commands and `--json` read.

A new field is a column of `Account` (`db/tables/people.py`) with its migration, and a row here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.errors import BadInput, NotFound, Refused
from db.events import record_event
from db.people.accounts import get_account
from db.people.emails import checked_email
from db.tables import Account

MAX_FIELD_CHARACTERS = 200


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
