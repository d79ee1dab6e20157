"""What Home reads of the user's own items: to judge, or judged in a study that is closed."""

from typing import NamedTuple

from app.access.identity import SessionUser
from app.access.permissions import NEEDS
from app.access.scope import scope_kept
from app.access.session_user import current_user, require_permission
from app.judge.actions import judge_of
from db.answers.finishing import OwnChoice, own_choices
from db.assignment.progress import own_progress
from db.store.store import open_store
from db.study.rules import rules_of
from db.study.studies import get_study, list_studies


class OwnItems(NamedTuple):
    """A study that closes with its last answer, and the user's part in it."""

    study_id: int
    name: str
    left: int
    done: int
    choices: list[OwnChoice]


def read_own_items() -> OwnItems | None:
    """The newest such study in which the user has something to do or to see; None if none."""
    user = current_user()
    if user is None or not NEEDS["judge"].is_met(user):
        return None
    with scope_kept():
        require_permission("judge")
        return _newest(user)


def _newest(user: SessionUser) -> OwnItems | None:
    with open_store().write() as session:
        judge_id = judge_of(session, user).id
        session.commit()
        for study in list_studies(session, statuses=("open", "closed")):
            if not rules_of(get_study(session, study.id)).closes_when_done:
                continue
            progress = own_progress(session, study.id, judge_id)
            left = progress.left if study.status == "open" else 0
            choices = own_choices(session, study.id, judge_id)
            if left or choices:
                return OwnItems(study.id, study.name, left, progress.done, choices)
    return None
