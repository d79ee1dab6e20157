"""E-mail addresses of accounts, by which an OpenID provider identifies people.

Addresses are stored in lower case and are unique. Note: nothing is ever sent to them; an account
without a password can sign in by its address alone, through the provider.
"""

import re

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.errors import BadInput, Refused
from db.events import record_event
from db.tables import Account

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
