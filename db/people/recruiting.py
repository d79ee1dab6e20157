"""Recruits: people of a crowdsourcing platform, who judge in one study, without a password.

A study has one link, the same for all that the platform sends; its token is shown once and stored
only as sha256, in `study.settings`. A person is known by the platform's id of them, once in a study
(a key of the store), and proves to be that person by the id of their submission, which the platform
gives to them alone. Nothing here asks the platform whether an id is one of its own: who is paid is
decided there, by the ids that `studies work` lists.
"""

import hmac
import re
import secrets
from collections.abc import Mapping
from typing import Any, Final, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.assignment.members import AUTOMATIC_REASONS, not_open, set_share
from db.assignment.places import lock_study
from db.assignment.progress import own_progress
from db.errors import BadInput, Refused
from db.events import record_event
from db.people.accounts import add_account, has_accounts
from db.people.attempts import MAX_BY_ADDRESS, TOO_MANY, WINDOW, limit_attempts, record_failure
from db.people.invitations import join_study
from db.people.sign_ins import token_sha256
from db.tables import Account, Event, Judge, Study, StudyJudge, utc_now

ID = re.compile(r"[A-Za-z0-9_-]{4,64}")
JOINED = "study.recruit"
MAX_ID = 2**31
SETTING = "recruiting"


class Platform(NamedTuple):
    """What a platform appends to a link: the person's id, their submission's, and others.

    `blank`: the submission of who only looks at the task. `returns_to`: where a code is handed in;
    without it people copy their code, which then is one for each.
    """

    person: str
    submission: str
    query: str
    blank: str = ""
    returns_to: str = ""


PLATFORMS: Final[Mapping[str, Platform]] = {
    "prolific": Platform(
        "PROLIFIC_PID",
        "SESSION_ID",
        "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}",
        returns_to="https://app.prolific.com/submissions/complete?cc=",
    ),
    "mturk": Platform("workerId", "assignmentId", "", blank="ASSIGNMENT_ID_NOT_AVAILABLE"),
}


def open_recruiting(
    session: Session,
    study_id: int,
    *,
    platform: str,
    complete: str,
    screened_out: str,
    people: int,
    quota: int | None,
    actor: str,
) -> str:
    """The token of a study's new link, which ends the one before. Does not commit.

    Raises NotFound, Refused for a closed study and while there are no accounts.
    """
    study = lock_study(session, study_id)
    if study.status == "closed":
        raise not_open(study)
    if not has_accounts(session):
        raise Refused(
            "there are no accounts yet, and whoever came by the link would lock you out",
            "create an admin account first with `people add NAME role=admin`",
            code="invitation_needs_accounts",
        )
    before = study.settings.get(SETTING, {}).get("platform", platform)
    if before != platform:
        raise Refused(
            f"study {study_id} recruits from {before}: who came from there has codes of it",
            "create another study",
            code="recruiting_elsewhere",
        )
    token = secrets.token_urlsafe(32)
    made: dict[str, Any] = {"platform": platform, "complete": complete}
    made |= {"screened_out": screened_out, "people": people, "quota": quota}
    made["token_sha256"] = token_sha256(token)
    study.settings = {**study.settings, SETTING: made}
    record_event(session, actor, "study.recruiting", study_id, platform=platform, people=people)
    session.flush()
    return token


def study_of_link(session: Session, study_id: int, token: str, *, place: str) -> Study:
    """The study of a link. Raises Refused, the same for every wrong one, and after too many.

    The caller commits also then: the attempt is recorded. Does not commit.
    """
    study = session.get(Study, study_id) if study_id < MAX_ID else None
    known = {} if study is None else study.settings.get(SETTING, {})
    if study and hmac.compare_digest(known.get("token_sha256", ""), token_sha256(token)):
        return study
    door = f"link of study {study_id}"  # wrong ones alone are limited: nobody locks others out
    limit_attempts(session, door, place)
    record_failure(session, door, place)
    raise Refused(
        "there is no such study, or its link has changed",
        "open it from the platform again",
        code="link_unknown",
    )


def platform_of(study: Study) -> Platform:
    """The platform that a study recruits from."""
    return PLATFORMS[study.settings[SETTING]["platform"]]


def join_as_recruit(
    session: Session, study_id: int, token: str, person: str, submission: str, *, place: str
) -> Account:
    """The account of who comes by a link: a new one, or theirs if they come back.

    Raises as `study_of_link`; BadInput for what is no id; Refused for another submission of the
    same person, for a new one where the study is not open or has all its people, and after too many
    from one address. Does not commit.
    """
    study_of_link(session, study_id, token, place=place)
    study = lock_study(session, study_id)
    if not ID.fullmatch(person) or not ID.fullmatch(submission):
        raise BadInput(
            "the link names nobody",
            "open it from the platform, which appends your id",
            code="recruit_unnamed",
        )
    found = session.execute(
        select(StudyJudge.submission, Account)
        .join(Judge, Judge.id == StudyJudge.judge_id)
        .join(Account, Account.id == Judge.account_id)
        .where(StudyJudge.study_id == study_id, StudyJudge.worker == person)
    ).one_or_none()
    if found is None:
        return _new_recruit(session, study, person, submission, place)
    earlier, account = found
    is_same = hmac.compare_digest(earlier or "", submission)
    if not is_same or account.disabled or account.role != "annotator":
        raise Refused(
            "you have taken part in this study before",
            "return the submission on the platform",
            code="recruited_once",
        )
    return account


def _new_recruit(
    session: Session, study: Study, person: str, submission: str, place: str
) -> Account:
    wanted = study.settings[SETTING]
    if study.status != "open":
        raise not_open(study)
    recruits = select(func.count()).where(
        StudyJudge.study_id == study.id, StudyJudge.worker.is_not(None)
    )
    if session.scalars(recruits).one() >= wanted["people"]:
        raise Refused(
            "this study has all the people that it needs",
            "return the submission on the platform",
            code="recruiting_full",
        )
    from_here = (
        select(func.count())
        .select_from(Event)
        .where(
            Event.name == JOINED,
            Event.at > utc_now() - WINDOW,
            Event.data["address"].as_string() == place,
        )
    )
    if session.scalars(from_here).one() >= MAX_BY_ADDRESS:
        raise Refused(TOO_MANY, "wait a quarter of an hour and try again", code="too_many")
    # not the platform's id, which would be in every file of answers
    name = f"{wanted['platform']}-{secrets.token_hex(4)}"
    account = add_account(
        session, name, None, role="annotator", actor=f"link of study {study.id}", dataset_ids=()
    )
    join_study(session, study.id, account)
    member = _membership(session, study.id, account.id)
    if wanted["quota"] is not None:
        set_share(session, study.id, member.judge_id, quota=wanted["quota"], due_on=None)
    member.worker, member.submission = person, submission
    record_event(session, name, JOINED, study.id, address=place)
    session.flush()
    return account


def recruited_into(session: Session, account_id: int) -> int | None:
    """The study that this account was made for by a link of a platform, if it was."""
    return session.scalar(
        select(StudyJudge.study_id)
        .join(Judge, Judge.id == StudyJudge.judge_id)
        .where(Judge.account_id == account_id, StudyJudge.worker.is_not(None))
    )


def code_earned(session: Session, study_id: int, account_id: int) -> tuple[str, str]:
    """The code that a recruit has earned, theirs from then on ("": none yet), and where it goes.

    Complete: their quota is answered, or nothing is left for them and they answered at least as
    many items as they skipped. Screened out: the qualification or the gold items paused them, no
    curator. Raises Refused for who is no recruit of the study. Does not commit.
    """
    if recruited_into(session, account_id) != study_id:
        raise Refused(
            "you are signed out, or came here for another study",
            "open the link on the platform again",
            code="recruit_unknown",
        )
    study, member = lock_study(session, study_id), _membership(session, study_id, account_id)
    wanted, returns_to = study.settings[SETTING], platform_of(study).returns_to
    if member.code is not None:
        return member.code, returns_to
    if member.state == "paused":
        is_rule = any(each.fullmatch(member.reason) for each in AUTOMATIC_REASONS.values())
        earned = "screened_out" if is_rule else ""
    else:
        had = own_progress(session, study_id, member.judge_id)
        is_over = study.status == "closed" or not had.left
        has_worked = 0 < had.done >= min(had.skipped, member.quota or had.skipped)
        earned = "complete" if is_over and has_worked else ""
    if not earned:
        return "", returns_to
    own = "" if returns_to else f"-{secrets.token_hex(4)}"  # a copied code could be passed on
    code = member.code = wanted[earned] + own
    record_event(session, session.get_one(Account, account_id).name, f"study.{earned}", study_id)
    session.flush()
    return code, returns_to


def _membership(session: Session, study_id: int, account_id: int) -> StudyJudge:
    return session.scalars(
        select(StudyJudge)
        .join(Judge, Judge.id == StudyJudge.judge_id)
        .where(StudyJudge.study_id == study_id, Judge.account_id == account_id)
        .execution_options(populate_existing=True)
    ).one()
