"""Actions of the workbench: lists, groups and reviews; many at once; opening hidden groups.

Who may curate the dataset sees verdicts, calls and drop reasons. Others review blind unless a
curator shows the run's verdicts: nothing that is sent to their browser distinguishes kept from
dropped. A group of which a person may judge an item is shown to them neither way.
"""

import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.access.identity import SessionUser, owner
from app.access.session_user import action, notify, record_read, require_permission
from app.groups.outbox import CALLS, VALIDATE, numbers_of, store_reviews, wanted_page
from app.groups.validation_jobs import groups_in_validation, validation_jobs, why_not_validated
from app.jobs import launching
from app.jobs.kinds import KINDS
from app.jobs_page.actions import launch_job
from app.kit.outbox_card import outbox_scope
from app.operations.judging.outbox import event_of
from app.text.numbers import counted
from app.text.remedies import in_pages
from curation.recipe.rendered_call import rendered_messages
from db.assignment import hidden
from db.corpus.texts import pair_sources
from db.errors import InfError, Refused
from db.review import queue as review_queue
from db.review.queue import BulkPreview, QueueFilter
from db.review.reviews import undo_bulk
from db.run.group_detail import GroupDetail, get_group
from db.run.revalidations import WAITING, revalidation_of
from db.run.runs import RunSummary, drop_reasons
from db.store.store import Store, open_store
from db.tables import Account, Group, Pair, Review, Run

PAGE = 50
MAX_DETAILS = 8
DWELL_MS = 300
LAST_BULK = "groups.last_bulk"
AsJson = Callable[..., Any]
CallText = dict[str, str]


@dataclass(frozen=True)
class Desk:
    """The groups to list; `wanted_group` is the group that the URL names, if any."""

    wanted: QueueFilter
    wanted_group: int | None = None


@dataclass(frozen=True)
class Viewer:
    """What the session user may see and do with the groups of a run."""

    user: SessionUser
    run: Run
    curates: bool
    reviews: bool
    blind: bool


def is_blind(session: Session, user: SessionUser, run_id: int) -> bool:
    """Whether this user reviews the run without verdicts."""
    run = session.get_one(Run, run_id)
    return not user.rights.on_dataset("curate", run.dataset_id) and not run.verdicts_shown


def viewer_of(session: Session, run_id: int) -> Viewer:
    """What the session user may do with a run's groups. Raises Refused without the permission."""
    user = require_permission("groups")
    run = session.get_one(Run, run_id)
    return Viewer(
        user,
        run,
        curates=user.rights.on_dataset("curate", run.dataset_id),
        reviews=user.rights.on_dataset("review", run.dataset_id),
        blind=is_blind(session, user, run_id),
    )


def filter_options(run: RunSummary, *, blind: bool) -> tuple[list[str], list[str]]:
    """The sources of a run's pairs and its drop reasons; blind, no reasons."""
    with open_store().read() as session:
        newest = session.scalar(select(func.max(Pair.id)))
        reasons = [] if blind else drop_reasons(session, run.id)
    version = (str(open_store().engine.url), run.created_at, newest)
    return _sources(run.dataset_id, version), reasons


@st.cache_data(max_entries=32, show_spinner=False)
def _sources(dataset_id: int, version: tuple[object, ...]) -> list[str]:
    """The sources of a dataset's pairs; `version` identifies store, run and the newest pair."""
    with open_store().read() as session:
        return pair_sources(session, dataset_id)


def workbench_data(
    desk: Desk,
    outbox: Mapping[str, Any],
    *,
    row_as_json: AsJson,
    as_json: AsJson,
    calls_as_json: AsJson,
) -> dict[str, Any]:
    """Store the card's reviews; return a page of the list and the groups it requests.

    `scope` separates the outboxes of different users and stores in the same browser; `formerly` is
    what an earlier version made of the name.
    """
    run_id = desk.wanted.run_id
    with open_store().read() as session:
        viewer = viewer_of(session, run_id)
    acknowledged = _take(viewer, outbox.get("events"))
    require_permission("groups")  # the scope of what is listed: storing has a narrower one
    name, blind = viewer.user.name, viewer.blind
    queue = str(desk)
    with open_store().read() as session:
        is_same = outbox.get("queue") == queue
        offset = wanted_page(outbox, PAGE) if is_same else _offset_of(session, desk, viewer)
        page = review_queue.listed_groups(
            session, desk.wanted, viewer=name, blind=blind, offset=offset, limit=PAGE
        )
        ids = numbers_of(outbox, "want")[:MAX_DETAILS] if is_same else []
        if not is_same:
            first = [desk.wanted_group] if desk.wanted_group is not None else []
            ids = list(dict.fromkeys([*first, *(row.id for row in page.rows)]))[:3]
        shown = [each for each in ids if _may_see(session, viewer, each)]
        in_validation = groups_in_validation(session, run_id)
        groups = [
            _group_as_json(
                session,
                viewer,
                each,
                as_json,
                is_validating=not in_validation.isdisjoint({None, each}),
            )
            for each in shown
        ]
        calls = None
        for wanted in numbers_of(outbox, CALLS)[:1]:
            if viewer.curates and _may_see(session, viewer, wanted):
                calls = calls_as_json(*_with_prompts(session, wanted, name))
        run = viewer.run
        account = session.get(Account, viewer.user.account_id) if viewer.user.account_id else None
        person = (None, "") if account is None else (account.id, account.created_at)
    record_read(shown, viewer.user)
    return {
        "scope": outbox_scope(*person, run_id, run.created_at),
        "formerly": outbox_scope(name, run_id, run.created_at),
        "run": run_id,
        "queue": queue,
        "offset": offset,
        "page": PAGE,
        "total": page.total,
        "rows": [row_as_json(row, blind=blind) for row in page.rows],
        "at": desk.wanted_group if desk.wanted_group in shown else None,
        "groups": groups,
        "gone": [each for each in ids if each not in shown],
        "calls": calls,
        "acknowledged": acknowledged,
        "may_review": viewer.reviews,
        "may_validate": viewer.curates,
        "dwell_ms": DWELL_MS,
    }


def _group_as_json(
    session: Session, viewer: Viewer, group_id: int, as_json: AsJson, *, is_validating: bool
) -> Any:
    revalidation = revalidation_of(session, group_id)
    is_left = WAITING in revalidation.values() and not is_validating and viewer.curates
    return as_json(
        get_group(session, group_id, viewer=viewer.user.name),
        revalidation,
        blind=viewer.blind,
        viewer=viewer.user.name,
        carried_from_run=_run_of_original(session, group_id),
        is_validating=is_validating,
        why_not_validated=why_not_validated(session, viewer.run.id, group_id) if is_left else "",
        with_calls=viewer.curates,
    )


def _take(viewer: Viewer, sent: Any) -> dict[str, str]:
    """Store the reviews and start the validations that the card sent; the answer to each event."""
    events = sent if isinstance(sent, list) else []
    if not events:
        return {}
    if not viewer.reviews and not viewer.curates:
        raise Refused(
            "you have no right to review groups of this dataset", code="review_right_missing"
        )
    run, name = viewer.run, viewer.user.name
    answers: dict[str, str] = {}
    reviews = [each for each in events if not _is_validation(each)]
    if reviews and viewer.reviews:
        require_permission("review")  # limits the session to datasets with this right
        with open_store().write() as session:
            answers, edited = store_reviews(
                session, name, reviews, blind=viewer.blind, run_id=run.id
            )
            session.commit()
        if edited and run.offline:
            _revalidate_soon(open_store(), run.id, name)
    elif reviews:
        refusal = "you have no right to review groups of this dataset"
        answers = {event: refusal for each in reviews if (event := event_of(each)) is not None}
    for each in events:
        event = event_of(each)
        if _is_validation(each) and event is not None and each.get("run") == run.id:
            try:
                _validate(viewer, each)
                answers[event] = ""
            except InfError as error:
                answers[event] = in_pages(str(error))
    return answers


def _is_validation(entry: Any) -> bool:
    return isinstance(entry, Mapping) and entry.get("kind") == VALIDATE


def _validate(viewer: Viewer, entry: Mapping[str, Any]) -> None:
    """Queue the run's validator for one group, unless such a job is queued or running.

    Raises Refused without the right, and for texts that the validator has judged.
    """
    user = require_permission(KINDS["judge"].permission)
    (group_id,) = numbers_of(entry, "group") or [0]
    run_id = viewer.run.id
    with open_store().read() as session:
        if not viewer.curates or not _may_see(session, viewer, group_id):
            raise Refused(f"group {group_id} is not in your queue", code="group_not_in_queue")
        if WAITING not in revalidation_of(session, group_id).values():
            raise Refused(
                "the validator has judged exactly these texts",
                "edit one first",
                code="validator_judged_already",
            )
        in_validation = groups_in_validation(session, run_id)
    if not in_validation & {None, group_id}:
        config = {"run_id": run_id, "group_id": group_id}
        launching.launch(open_store(), "judge", config, actor=owner(user.name, "page"))


def _offset_of(session: Session, desk: Desk, viewer: Viewer) -> int:
    if desk.wanted_group is None:
        return 0
    place = review_queue.place_in_list(
        session, desk.wanted, desk.wanted_group, viewer=viewer.user.name, blind=viewer.blind
    )
    return 0 if place is None else place // PAGE * PAGE


def _may_see(session: Session, viewer: Viewer, group_id: int) -> bool:
    """Whether a group of the viewer's run may be shown to them; blind, only a complete one."""
    of_run = session.scalar(select(Group.run_id).where(Group.id == group_id))
    return of_run == viewer.run.id and review_queue.can_review(
        session, group_id, reviewer=viewer.user.name, blind=viewer.blind
    )


def _run_of_original(session: Session, group_id: int) -> int | None:
    """The run whose group was reviewed, if the current review of this one is a copy of that."""
    original = select(Review.carried_from).where(Review.group_id == group_id, Review.is_current)
    query = select(Group.run_id).join(Review, Review.group_id == Group.id)
    return session.scalar(query.where(Review.id == original.scalar_subquery()))


def _with_prompts(
    session: Session, group_id: int, viewer: str
) -> tuple[GroupDetail, dict[int, list[CallText]]]:
    group = get_group(session, group_id, viewer=viewer)
    return group, {call.id: list(rendered_messages(session, call.id)) for call in group.calls}


def _revalidate_soon(store: Store, run_id: int, name: str) -> None:
    """Queue the validator for edited groups, unless such a job is queued already."""
    with store.read() as session:
        queued = validation_jobs(session, run_id, ("queued",))
    if not queued:
        launching.launch(store, "judge", {"run_id": run_id}, actor=owner(name, "page"))


@action
def revalidate(run_id: int) -> None:
    """Queue the run's validator for its edited groups."""
    launch_job("judge", {"run_id": run_id}, what="Validation of the edits")


@action
def show_verdicts(run_id: int) -> None:
    """Show or hide the run's verdicts for annotators."""
    user = require_permission("show_verdicts")
    shown = bool(st.session_state[f"review.verdicts_{run_id}"])
    with open_store().write() as session:
        review_queue.show_verdicts(session, run_id, shown, actor=user.name)
        session.commit()


@action
def review_many(wanted: QueueFilter, action: str, expected: int, reason: str) -> None:
    """Approve or reject every group that matches the filter, if their number was confirmed."""
    user = require_permission("review_many")
    bulk = secrets.token_hex(8)
    with open_store().write() as session:
        done = review_queue.review_in_bulk(
            session,
            wanted,
            action,
            expected=expected,
            reviewed_by=user.name,
            reason=reason,
            bulk=bulk,
        )
        session.commit()
    st.session_state[LAST_BULK] = (wanted.run_id, bulk, done)
    notify(f"{counted(done, 'group')} {'approved' if action == 'approve' else 'rejected'}.")


@action
def undo_many(run_id: int, bulk: str) -> None:
    """Undo those reviews of a bulk that are still current."""
    user = require_permission("review_many")
    with open_store().write() as session:
        undone = undo_bulk(session, run_id, bulk, reviewed_by=user.name)
        session.commit()
    st.session_state.pop(LAST_BULK, None)
    notify(f"{counted(undone, 'review')} undone.")


def preview_many(wanted: QueueFilter, action: str) -> BulkPreview:
    """What a bulk review would change, without groups that are hidden from the user."""
    user = require_permission("review_many")
    with open_store().read() as session:
        return review_queue.preview_bulk(session, wanted, action, reviewer=user.name)


def prompts_of(group: GroupDetail) -> dict[int, list[CallText]]:
    """The messages sent in each call of the group, by call id."""
    with open_store().read() as session:
        return {call.id: list(rendered_messages(session, call.id)) for call in group.calls}


def count_hidden(run_id: int) -> int:
    """How many groups of a run are hidden from the user, whatever the filter: by verdict or text,
    the count would be their answer."""
    user = require_permission("groups")
    with open_store().read() as session:
        return hidden.count_hidden(session, run_id, user.name)


def is_hidden(group_id: int) -> bool:
    """Whether the group is hidden from the user."""
    user = require_permission("groups")
    with open_store().read() as session:
        return hidden.is_hidden(session, group_id, user.name)


@action
def open_group(group_id: int) -> None:
    """Open a hidden group for the user, who has read what this means."""
    user = require_permission("curate")
    with open_store().write() as session:
        opened = hidden.open_groups(session, [group_id], person=user.name)
        session.commit()
    notify(f"{counted(opened, 'group')} opened. You will not be given items of them to judge.")


@action
def open_run(run_id: int) -> None:
    """Open all groups of a run that are hidden from the user, who has read what this means."""
    user = require_permission("curate")
    with open_store().write() as session:
        opened = hidden.open_run(session, run_id, person=user.name)
        session.commit()
    notify(f"{counted(opened, 'group')} opened. You will not be given items of them to judge.")
