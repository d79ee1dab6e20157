"""Invitations: links with which a person makes an account, or joins a study with the one they have.

A link works once and until it expires; its token is shown once and stored only as sha256. What
would surprise: an invitation into a study is used up by whoever joins first, new or known.
"""

import hashlib
import secrets
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.errors import BadInput, Refused
from db.people.accounts import add_account, are_there_accounts, check_role, record_audit
from db.study.assignments import add_member
from db.study.judgments import get_or_create_judge
from db.study.studies import get_study
from db.tables import Account, Invitation, utc_now

MOST_DAYS = 60


def invite(
    session: Session, *, role: str, days: int, actor: str, study_id: int | None = None
) -> str:
    """A new invitation; returns the token of its link, which is not stored. Does not commit.

    Raises BadInput for a bad role or number of days, NotFound for an unknown study, Refused for a
    closed one and where nobody has an account yet: the first one must be an admin's.
    """
    check_role(role)
    if not 1 <= days <= MOST_DAYS:
        raise BadInput(f"an invitation of {days} days: 1 to {MOST_DAYS}")
    if not are_there_accounts(session):
        raise Refused(
            "nobody has an account here yet, and whoever took the invitation would lock you out: "
            "make an admin's account first with `inf users add NAME --role admin`"
        )
    if study_id is not None and get_study(session, study_id).status == "closed":
        raise Refused(f"study {study_id} is closed: open it before you invite people into it")
    token = secrets.token_urlsafe(32)
    invitation = Invitation(
        token_sha256=_sha256(token),
        role=role,
        created_by=actor,
        expires_at=utc_now() + timedelta(days=days),
        study_id=study_id,
    )
    session.add(invitation)
    session.flush()
    where = {} if study_id is None else {"study": study_id}
    record_audit(
        session, actor, "account.invite", str(invitation.id), role=role, days=days, **where
    )
    return token


def open_invitation(session: Session, token: str) -> Invitation:
    """The invitation of a link. Raises Refused once it was used or has expired."""
    found = session.scalar(
        select(Invitation).where(Invitation.token_sha256 == _sha256(token)).with_for_update()
    )
    if found is None or found.account_id is not None or found.expires_at < utc_now():
        raise Refused("this invitation was used already or has expired: ask for another")
    return found


def accept_invitation(session: Session, token: str, name: str, password: str) -> Account:
    """Make the account of an invitation, a member of its study; the link is used up by it.

    Raises as `add_account` and `open_invitation` do. Does not commit.
    """
    invitation = open_invitation(session, token)
    actor = f"invitation of {invitation.created_by}"
    account = add_account(session, name, password, role=invitation.role, actor=actor)
    _use_up(session, invitation, account)
    return account


def join_by_invitation(session: Session, token: str, account_id: int) -> Account:
    """Make a person who has an account a member of the invitation's study.

    Raises Refused where the invitation is into no study: it is for somebody new then. Does not
    commit.
    """
    invitation = open_invitation(session, token)
    if invitation.study_id is None:
        raise Refused("this invitation makes a new account, and you have one: sign out to use it")
    account = session.get_one(Account, account_id)
    _use_up(session, invitation, account)
    return account


def join_study(session: Session, study_id: int, account: Account) -> None:
    """Make a person a member of a study, which they may be already. Does not commit."""
    judge = get_or_create_judge(session, account.name, kind="person", account_id=account.id)
    add_member(session, study_id, judge.id)


def _use_up(session: Session, invitation: Invitation, account: Account) -> None:
    invitation.account_id = account.id
    session.flush()
    if invitation.study_id is not None:
        join_study(session, invitation.study_id, account)
        record_audit(session, account.name, "study.join", str(invitation.study_id))


def _sha256(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()
