"""Invitations: links to create an account, or to join a study with an existing one.

A link works once and until it expires; its token is shown once and stored only as sha256. Note: an
invitation into a study is used up by whoever joins first, with a new or an existing account.
"""

import secrets
from datetime import timedelta

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.assignment.members import add_member
from db.errors import BadInput, Refused
from db.events import record_event
from db.people.accounts import add_account, check_role, has_accounts
from db.people.passwords import HashedPassword
from db.people.rights import add_rights
from db.people.sign_ins import token_sha256
from db.study.judgments import get_or_create_judge
from db.study.studies import get_study
from db.tables import Account, Invitation, utc_now

MAX_DAYS = 60


def invite(
    session: Session, *, role: str, days: int, actor: str, study_id: int | None = None
) -> str:
    """A new invitation; returns the token of its link, which is not stored. Does not commit.

    Raises BadInput for a bad role or number of days, NotFound for an unknown study, Refused for a
    closed one and while there are no accounts: the first one must be an admin's.
    """
    check_role(role)
    if not 1 <= days <= MAX_DAYS:
        raise BadInput(
            f"an invitation cannot be valid for {days} days",
            f"choose 1 to {MAX_DAYS} days",
            code="invitation_days_invalid",
        )
    if not has_accounts(session):
        raise Refused(
            "there are no accounts yet, and whoever accepted the invitation would lock you out",
            "create an admin account first with `people add NAME role=admin`",
            code="invitation_needs_accounts",
        )
    if study_id is not None and get_study(session, study_id).status == "closed":
        raise Refused(
            f"study {study_id} is closed",
            "open it before you invite people into it",
            code="study_not_open",
        )
    token = secrets.token_urlsafe(32)
    invitation = Invitation(
        token_sha256=token_sha256(token),
        role=role,
        created_by=actor,
        expires_at=utc_now() + timedelta(days=days),
        study_id=study_id,
    )
    session.add(invitation)
    session.flush()
    where = {} if study_id is None else {"study": study_id}
    record_event(session, actor, "account.invite", invitation.id, role=role, days=days, **where)
    return token


def open_invitation(session: Session, token: str) -> Invitation:
    """The invitation of a link. Raises Refused if it was used or has expired."""
    found = session.scalar(
        select(Invitation).where(Invitation.token_sha256 == token_sha256(token)).with_for_update()
    )
    if found is None or found.account_id is not None or found.expires_at < utc_now():
        raise Refused(
            "this invitation was used already or has expired",
            "ask for another",
            code="invitation_over",
        )
    return found


def accept_invitation(
    session: Session, token: str, name: str, password: str | HashedPassword
) -> Account:
    """Create the account of an invitation, a member of its study; the link is used up.

    Raises as `add_account` and `open_invitation` do. Does not commit.
    """
    invitation = open_invitation(session, token)
    actor = f"invitation of {invitation.created_by}"
    # who is invited into a study, to annotate, sees that study and nothing else
    only_study = invitation.study_id is not None and invitation.role == "annotator"
    account = add_account(
        session,
        name,
        password,
        role=invitation.role,
        actor=actor,
        dataset_ids=() if only_study else None,
    )
    _mark_used(session, invitation, account)
    return account


def join_by_invitation(session: Session, token: str, account_id: int) -> Account:
    """Make a person with an account a member of the invitation's study.

    Raises Refused if the invitation is not into a study: it is for a new account. Does not commit.
    """
    invitation = open_invitation(session, token)
    if invitation.study_id is None:
        raise Refused(
            "this invitation makes a new account, and you have one",
            "sign out to use it",
            code="invitation_of_account",
        )
    account = session.get_one(Account, account_id)
    _mark_used(session, invitation, account)
    return account


def join_study(session: Session, study_id: int, account: Account) -> None:
    """Make a person a member of a study; no change if they are one. Does not commit."""
    judge = get_or_create_judge(session, account.name, kind="person", account_id=account.id)
    add_member(session, study_id, judge.id)
    if account.role != "admin":
        add_rights(session, account, ["judge"], actor=account.name, study_id=study_id)


def _mark_used(session: Session, invitation: Invitation, account: Account) -> None:
    invitation.account_id = account.id
    session.flush()
    if invitation.study_id is not None:
        join_study(session, invitation.study_id, account)
        record_event(session, account.name, "study.join", invitation.study_id)
