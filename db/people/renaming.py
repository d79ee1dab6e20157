"""Another name for an account, and its deletion. A name is stored wherever a person did something.

The rules of blindness go by it (who reviewed, opened or adjudicated what), so all of them change in
the transaction that changes the account. The audit log keeps the names of the time; its entry of
the rename or deletion leads from one to the other. What exists as a file (releases, exports,
backups) stays as it is.
"""

import secrets

from sqlalchemy import (
    ColumnElement,
    String,
    and_,
    delete,
    exists,
    func,
    literal,
    or_,
    select,
    update,
)
from sqlalchemy.orm import InstrumentedAttribute, Session

from db.assignment.places import return_leases
from db.errors import Refused
from db.events import NOT_AUDITED, record_event
from db.names import DELETED, PERSON_SUFFIX, name_key
from db.people.accounts import free_name, get_account, require_another_admin, taking_name
from db.study.judgments import ADJUDICATOR
from db.tables import (
    Account,
    AdjudicationView,
    Analysis,
    Announcement,
    Assignment,
    Connection,
    Event,
    Guideline,
    Invitation,
    ItemMessage,
    Job,
    Judge,
    Member,
    OpenedGroup,
    PasswordLink,
    ProgramLease,
    RecipeVersion,
    Release,
    Review,
    Run,
    Study,
    StudyJudge,
    Tour,
    VerdictVersion,
    Webhook,
    utc_now,
)

# Every column that names a person, but for the audit log's; a test compares it with the tables.
NAMING: tuple[InstrumentedAttribute[str], ...] = (
    *(Review.reviewed_by, OpenedGroup.opened_by, AdjudicationView.seen_by, ProgramLease.person),
    Announcement.written_by,
    *(ItemMessage.written_by, Member.granted_by, Invitation.created_by, PasswordLink.created_by),
    *(Study.created_by, Guideline.created_by, Run.created_by, Release.created_by),
    *(
        Job.started_by,
        Tour.person,
        Connection.created_by,
        VerdictVersion.created_by,
        RecipeVersion.created_by,
    ),
    Webhook.created_by,
)
# How the ids of events begin: of a bulk review (`db.review.queue`), of the workbench's card.
EVENTS = ("bulk:{name}/", "card:{name}/")


def rename_account(session: Session, name: str, new_name: str, *, actor: str) -> Account:
    """Give an account another name, everywhere. Its sessions, password and rights stay.

    Raises NotFound, and as `db.people.accounts.free_name` does; Refused where a judge without an
    account has the name, or it stands already for what another person did. Does not commit.
    """
    account = get_account(session, name)
    new_name = free_name(session, new_name, but=account.id)
    if new_name != name:
        _require_unused(session, account, new_name)
        with taking_name(session, new_name):
            account.name, account.name_key = new_name, name_key(new_name)
        _replace(session, account, name, new_name)
        record_event(session, actor, "account.rename", name, after=new_name)
        session.flush()
    return account


def delete_account(session: Session, name: str, *, actor: str) -> str:
    """Delete an account; returns the pseudonym under which what the person did stays.

    Sessions, rights, links and a platform's ids of the person end, leases go back to the queue, and
    an invitation that made the account stays used up. Raises NotFound, and Refused for the last
    admin. Does not commit.
    """
    account = get_account(session, name)
    if account.role == "admin":
        require_another_admin(session, account)
    for judge_id, study_id in session.execute(
        select(Assignment.judge_id, Assignment.study_id)
        .join(Judge, Judge.id == Assignment.judge_id)
        .where(Judge.account_id == account.id, Assignment.state == "leased")
        .distinct()
        .order_by(Assignment.study_id)
    ).all():
        return_leases(session, study_id, judge_id)
    pseudonym = f"{DELETED} {secrets.token_hex(4)}"
    _replace(session, account, name, pseudonym)
    own = select(Judge.id).where(Judge.account_id == account.id).scalar_subquery()
    recruited = update(StudyJudge).where(StudyJudge.judge_id == own)
    session.execute(recruited.values(worker=None, submission=None))
    session.execute(update(Judge).where(Judge.account_id == account.id).values(account_id=None))
    used = update(Invitation).where(Invitation.account_id == account.id)
    session.execute(used.values(account_id=None, expires_at=utc_now()))
    session.delete(account)
    record_event(session, actor, "account.delete", name, pseudonym=pseudonym)
    session.flush()
    return pseudonym


def _require_unused(session: Session, account: Account, new_name: str) -> None:
    """Raise Refused where the name would put the work of two people under one name."""
    wanted = (new_name, new_name + PERSON_SUFFIX, ADJUDICATOR + new_name)
    own = func.coalesce(Judge.account_id == account.id, False)
    theirs = or_(own, _adjudicating(account.name))
    judges = select(Judge.name).where(Judge.name.in_(wanted), ~theirs).limit(1)
    taken = [f"a judge named {one!r} has answered here already" for one in session.scalars(judges)]
    taken += [
        f"{column.class_.__tablename__}.{column.key} names another person so"
        for column in NAMING
        if session.scalar(select(exists().where(column == new_name)))
    ]
    if taken:
        raise Refused(
            f"account name {new_name!r}: {taken[0]}",
            "choose another",
            code="account_alike",
            name=new_name,
        )


def _adjudicating(name: str) -> ColumnElement[bool]:
    return and_(Judge.kind == "adjudicator", Judge.name == ADJUDICATOR + name)


def _replace(session: Session, account: Account, old: str, new_name: str) -> None:
    """Write the new name over the old one, in every row that names the person."""
    own, adjudicating = Judge.account_id == account.id, _adjudicating(old)
    session.execute(update(Judge).where(own).values(name=new_name))
    session.execute(update(Judge).where(adjudicating).values(name=ADJUDICATOR + new_name))
    for column in NAMING:
        session.execute(update(column.class_).where(column == old).values({column: new_name}))
    judged = update(Event).where(Event.name.in_(NOT_AUDITED), Event.actor == old)
    session.execute(judged.values(actor=new_name))  # the audit log keeps the name of the time
    theirs = Analysis.config["reader"].as_string() == old  # kept figures, made again when opened
    session.execute(delete(Analysis).where(Analysis.kind == "agreement", theirs))
    for prefix in EVENTS:  # a card's undo names the review by its event
        before = prefix.format(name=old)
        session.execute(
            update(Review)
            .where(Review.event_id.startswith(before, autoescape=True))
            .values(
                event_id=literal(prefix.format(name=new_name), String)
                + func.substr(Review.event_id, len(before) + 1)
            )
        )
