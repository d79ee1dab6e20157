"""Actions of the Review page: the user's queue, storing reviews, reviewing in bulk.

Annotators review blind unless a curator shows the run's verdicts: nothing that is sent to their
browser distinguishes kept from dropped. Button keys contain the group id, so that a click always
applies to the group that was shown.
"""

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import streamlit as st
from sqlalchemy import select
from sqlalchemy.orm import Session

from app.access.identity import SessionUser
from app.access.session_user import action, notify, record_read, require_permission
from app.groups.outbox import answered_groups, put_off, store_reviews
from app.jobs import launching
from app.jobs.actions import launch_job
from app.text.numbers import counted
from curation.judging.revalidation import check_edit
from curation.recipe.rendered_call import rendered_messages
from db.assignment import hidden
from db.assignment.hidden import require_visible
from db.errors import BadInput, Refused
from db.jobs.jobs import list_jobs
from db.review import queue as review_queue
from db.review.queue import QueueFilter
from db.review.reviews import approve_group, edit_group, reject_group
from db.review.texts import FIELDS
from db.run.group_detail import GroupDetail, get_group
from db.run.groups import GroupPage, list_groups
from db.run.revalidations import revalidation_of
from db.store.store import Store, open_store
from db.tables import Group, Run

AHEAD = 6
DWELL_MS = 300
LATER = "review.later"
ANSWERED = "review.answered"
AsJson = Callable[..., Any]


@dataclass(frozen=True)
class Desk:
    """A review queue; `wanted_group` is the group that the URL names, if any."""

    wanted: QueueFilter
    wanted_group: int | None = None


def is_blind(session: Session, user: SessionUser, run_id: int) -> bool:
    """Whether this user reviews the run without verdicts."""
    run = session.get_one(Run, run_id)
    return not user.rights.on_dataset("curate", run.dataset_id) and not run.verdicts_shown


def card_data(desk: Desk, outbox: Mapping[str, Any], *, as_json: AsJson) -> dict[str, Any]:
    """Store the card's reviews and return the next groups, in one transaction.

    `scope` separates the outboxes of different users and stores in the same browser.
    """
    user = require_permission("review")
    store, run_id = open_store(), desk.wanted.run_id
    events = outbox.get("events")
    with store.write() as session:
        blind = is_blind(session, user, run_id)
        acknowledged, edited = store_reviews(
            session,
            user.name,
            events if isinstance(events, list) else [],
            blind=blind,
            run_id=run_id,
        )
        st.session_state.setdefault(ANSWERED, []).extend(answered_groups(events, acknowledged))
        groups, total = _next_groups(session, desk, user, blind, put_off(outbox))
        hidden.record_read(session, [group.id for group in groups], user.name)
        shown = [
            as_json(group, revalidation_of(session, group.id), blind=blind) for group in groups
        ]
        run = session.get_one(Run, run_id)
        offline, born = run.offline, run.created_at
        session.commit()
    if edited and offline:
        _revalidate_soon(store, run_id, user.name)
    scope = hashlib.sha256(f"{user.name} {run_id} {born}".encode())
    return {
        "scope": scope.hexdigest()[:16],
        "run": run_id,
        "queue": str(desk),
        "groups": shown,
        "acknowledged": acknowledged,
        "total": total,
        "dwell_ms": DWELL_MS,
    }


def next_group(desk: Desk) -> tuple[GroupDetail | None, int, bool]:
    """For the page without the card: the group to review, the queue length, whether blind."""
    user = require_permission("review")
    with open_store().read() as session:
        blind = is_blind(session, user, desk.wanted.run_id)
        later = st.session_state.get(LATER, [])
        groups, total = _next_groups(session, desk, user, blind, later, ahead=1)
    record_read([group.id for group in groups], user)
    return (groups[0] if groups else None), total, blind


def _next_groups(
    session: Session,
    desk: Desk,
    user: SessionUser,
    blind: bool,
    passed_over: list[int],
    ahead: int = AHEAD,
) -> tuple[list[GroupDetail], int]:
    ids, total = review_queue.queued_groups(
        session,
        desk.wanted,
        reviewer=user.name,
        blind=blind,
        limit=ahead,
        passed_over=passed_over,
    )
    if desk.wanted_group is not None and desk.wanted_group not in [
        *passed_over,
        *st.session_state.get(ANSWERED, []),
    ]:
        run = session.get_one(Run, desk.wanted.run_id)
        if user.rights.on_dataset("curate", run.dataset_id):
            # who opens groups at all may open this one, on its own page
            require_visible(session, desk.wanted_group, user.name)
        of_run = session.scalar(select(Group.run_id).where(Group.id == desk.wanted_group))
        if of_run is not None and is_blind(session, user, of_run) and not blind:
            raise Refused(f"group {desk.wanted_group} is of run {of_run}: choose that run")
        if not review_queue.can_review(session, desk.wanted_group, reviewer=user.name, blind=blind):
            raise Refused(f"group {desk.wanted_group} is not in your queue")
        ids = [desk.wanted_group, *(each for each in ids if each != desk.wanted_group)]
    return [get_group(session, group_id, viewer=user.name) for group_id in ids], total


def _revalidate_soon(store: Store, run_id: int, name: str) -> None:
    """Queue the validator for edited groups, unless such a job is queued already."""
    with store.read() as session:
        queued = list_jobs(session, kind="judge", statuses=("queued",))
    if not any(job.config.get("run_id") == run_id for job in queued):
        launching.launch(store, "judge", {"run_id": run_id}, started_by=name)


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
    with open_store().write() as session:
        done = review_queue.review_in_bulk(
            session, wanted, action, expected=expected, reviewed_by=user.name, reason=reason
        )
        session.commit()
    notify(f"{counted(done, 'group')} {'approved' if action == 'approve' else 'rejected'}.")


def count_matching(wanted: QueueFilter) -> int:
    """The number of groups that match the filter and are not hidden from the user."""
    user = require_permission("review_many")
    with open_store().read() as session:
        return review_queue.count_matching(session, wanted, reviewer=user.name)


def prompts_of(group: GroupDetail) -> dict[int, list[dict[str, str]]]:
    """The messages sent in each call of the group, by call id."""
    with open_store().read() as session:
        return {call.id: list(rendered_messages(session, call.id)) for call in group.calls}


def text_of(group: GroupDetail, field: str) -> str:
    """The text of a group that an editable field refers to."""
    role, column = FIELDS[field][0]
    return str(getattr(group.triplets[role], column))


@action
def approve(group_id: int) -> None:
    """Approve the group as the session user."""
    _write(group_id, lambda session, name: approve_group(session, group_id, reviewed_by=name))
    notify(f"Group {group_id} is approved.")


@action
def reject(group_id: int) -> None:
    """Reject the group with the reason of the form."""
    reason = st.session_state.get(f"review.reason-{group_id}") or ""
    _write(
        group_id,
        lambda session, name: reject_group(session, group_id, reason=reason, reviewed_by=name),
    )
    notify(f"Group {group_id} is rejected.")


@action
def edit(group_id: int, before: dict[str, str]) -> None:
    """Store the changed texts of the form; `before` are the texts it was filled with."""
    now = {name: st.session_state[f"review.{name}-{group_id}"] or "" for name in before}
    changes = {name: text for name, text in now.items() if text != before[name]}
    if not changes:
        raise BadInput("nothing was changed")

    def write(session: Session, name: str) -> None:
        check_edit(session, group_id, changes)
        edit_group(session, group_id, changes, reviewed_by=name)

    _write(group_id, write)
    for name in now:
        del st.session_state[f"review.{name}-{group_id}"]
    st.query_params["group"] = str(group_id)
    notify(f"Group {group_id} is edited. Approve it when the new text is correct.")


def _write(group_id: int, change: Callable[[Session, str], object]) -> None:
    user = require_permission("review")
    with open_store().write() as session:
        run_id = get_group(session, group_id, viewer=user.name).run_id
        blind = is_blind(session, user, run_id)
        if not review_queue.can_review(session, group_id, reviewer=user.name, blind=blind):
            raise Refused(f"group {group_id} is not in your queue")
        change(session, user.name)
        session.commit()
    st.query_params.pop("group", None)


def count_hidden(run_id: int) -> int:
    """How many groups of a run are hidden from the user, whatever the filter: by verdict or text,
    the count would be their answer."""
    user = require_permission("review")
    with open_store().read() as session:
        return hidden.count_hidden(session, run_id, user.name)


def visible_groups(
    run_id: int, filters: Mapping[str, Any], *, offset: int, limit: int
) -> GroupPage:
    """A page of the run's groups that are not hidden from the user."""
    user = require_permission("curate")
    with open_store().read() as session:
        without = hidden.hidden_pair(session, user.name, Group.pair_id)
        return list_groups(session, run_id, **filters, without=without, offset=offset, limit=limit)


def visible_group(group_id: int) -> GroupDetail | None:
    """A group in full; None if it is hidden from the user. Raises NotFound."""
    user = require_permission("curate")
    with open_store().read() as session:
        if hidden.is_hidden(session, group_id, user.name):
            return None
        found = get_group(session, group_id, viewer=user.name)
    record_read([group_id], user)
    return found


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


def later(group_id: int) -> None:
    """Skip to another group of the queue without a review."""
    st.session_state[LATER] = [*st.session_state.get(LATER, []), group_id]
    st.query_params.pop("group", None)
