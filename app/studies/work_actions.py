"""Reading of the time and work report."""

from dataclasses import replace
from datetime import date

from app.access.session_user import require_permission
from db.store.store import open_store
from db.study.judgments import own_judge_id
from db.study.studies import list_studies
from db.study.work import PersonsWork, work_report


def read_work(study_id: int | None, since: date | None, until: date | None) -> list[PersonsWork]:
    """The report; without the user's own gold answers of studies that are not closed.

    A count of right gold answers that changes with one's own answer says whether it was right.
    """
    user = require_permission("studies")
    with open_store().read() as session:
        closed = {each.id for each in list_studies(session, statuses=("closed",))}
        own = own_judge_id(session, user.name, user.account_id)
        rows = work_report(session, study_id=study_id, since=since, until=until)
    return [
        each
        if each.judge_id != own or each.study_id in closed
        else replace(each, gold_right=0, gold_seen=0)
        for each in rows
    ]
