"""A run's groups as a queue: claimed under a lease, finished once, released.

A claim increments the group's attempt. A worker's writes for a group that is no longer leased to it
under that attempt are omitted, and the groups written are returned. So a group of a slow or dead
worker is done by another, and nothing is written twice.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from sqlalchemy import ColumnElement, Integer, bindparam, false, select, update
from sqlalchemy.orm import Session

from db.clock import lease_clock, store_now
from db.corpus.datasets import text_sha256
from db.corpus.texts import text_row
from db.events import record_event
from db.question import Question
from db.review.carrying import carry_reviews
from db.run.new_items import insert_items, store_questions
from db.shape import STANDS_IN, Shape, text_name
from db.store.bulk import insert_for_ids, insert_rows
from db.tables import (
    Base,
    Group,
    GroupCall,
    Judgment,
    Pair,
    PairNegative,
    Passage,
    Run,
    SlotText,
    utc_now,
)

LEASE_SECONDS = 30.0

# executed many times a second: built once
_TABLES = Base.metadata.tables
_GROUP = _TABLES[Group.__tablename__]
_HELD = (
    select(_GROUP.c.id, _GROUP.c.attempt)
    .where(
        _GROUP.c.id.in_(bindparam("group_ids", expanding=True)),
        _GROUP.c.state == "leased",
        _GROUP.c.lease_owner == bindparam("owner"),
    )
    .with_for_update()
)
_FINISH = (
    update(_GROUP)
    .where(_GROUP.c.id == bindparam("group_id", type_=Integer))
    .values(
        state="done",
        stage=bindparam("to_stage"),
        verdict=bindparam("to_verdict"),
        drop_reason=bindparam("to_reason"),
        drop_detail=bindparam("to_detail"),
        lease_owner=None,
        lease_until=None,
        finished_at=bindparam("now"),
    )
)


@dataclass(frozen=True)
class ClaimedGroup:
    """A claimed group: its pair, and the attempt that guards every write.

    `language` is the programming language of the pair, "" if it names none. `failed_attempts` and
    `retries` are those of `db.tables.Group`. `negatives`: ids and texts of those given with the
    pair, as many as the claim wanted.
    """

    id: int
    attempt: int
    pair_id: int
    query_id: str
    query: str
    passage_id: int
    passage: str
    language: str = ""
    failed_attempts: int = 0
    retries: dict[str, int] = field(default_factory=dict)
    negatives: tuple[tuple[int, str], ...] = ()


@dataclass(frozen=True)
class DoneItem:
    """An item as judged by a model of the run: a scenario, or a check (see `db.tables.Item`).

    `candidates` is the canonical order of (label, passage id); None: the passage just written.
    `expected` is the right answer; `question` is None for the pick of a passage.
    """

    scenario: str
    instruction: str
    query: str
    candidates: tuple[tuple[str, int | None], ...]
    choice: str
    order_shown: tuple[str, ...]
    judge_id: int
    expected: str | None
    detail: dict[str, Any] = field(default_factory=dict)
    question: Question | None = None


@dataclass(frozen=True)
class DoneGroup:
    """How a group ended. `texts`, by sign: those of the scenarios that are whole; a passage that
    comes with the pair is the pair's own."""

    group: ClaimedGroup
    stage: str
    verdict: str
    drop_reason: str | None
    drop_detail: str | None
    shape: Shape
    texts: dict[str, str]
    items: tuple[DoneItem, ...]
    calls: tuple[tuple[str, int, int, str], ...]
    listed: tuple["ListedText", ...] = ()


@dataclass(frozen=True)
class ListedText:
    """A text of a list, as `text_name(slot, ordinal)`; in its group unless it was dropped.

    With the reason STANDS_IN it takes the place of another, which `DoneGroup.texts` still has.
    """

    slot: str
    ordinal: int
    text: str
    dropped_reason: str | None = None

    @property
    def name(self) -> str:
        """What it is called in its group: `N[1]`."""
        return text_name(self.slot, self.ordinal)


def claim_groups(
    session: Session, run_id: int, owner: str, limit: int, *, negatives: int = 0
) -> list[ClaimedGroup]:
    """Lease up to `limit` waiting groups, or groups with an expired lease. Does not commit.

    Groups that the server has failed on come last: what ended the run before must not keep the
    others from being done. negatives: how many of those given with its pair a group comes with.
    """
    now, may_expire = lease_clock(session, LEASE_SECONDS)
    # BETWEEN, not `=`: with stale statistics PostgreSQL would otherwise walk the primary key over
    # all groups that are done, instead of using the index of states
    free = Group.state.between("waiting", "waiting")
    leased = Group.state.between("leased", "leased")
    expired = leased & (Group.lease_until < now) if may_expire else false()
    ids: list[int] = []
    for state in (
        free & (Group.failed_attempts == 0),
        free & (Group.failed_attempts > 0),
        expired,
    ):
        if len(ids) < limit:
            ids += session.scalars(
                select(Group.id)
                .where(Group.run_id == run_id, state)
                .order_by(Group.state, Group.id)
                .limit(limit - len(ids))
                .with_for_update(skip_locked=True)  # workers never wait for each other here
            )
    if not ids:
        return []
    session.execute(
        update(Group)
        .where(Group.id.in_(ids))
        .values(
            state="leased",
            lease_owner=owner,
            lease_until=now + timedelta(seconds=LEASE_SECONDS),
            attempt=Group.attempt + 1,
        )
    )
    return _with_pairs(session, Group.id.in_(ids), negatives)


def unfinished_groups(
    session: Session, run_id: int, limit: int, *, negatives: int = 0
) -> list[ClaimedGroup]:
    """The first groups of a run without a verdict, not claimed: for reading only."""
    open_ = select(Group.id).where(Group.run_id == run_id, Group.state != "done")
    first = open_.order_by(Group.id).limit(limit)
    return _with_pairs(session, Group.id.in_(first), negatives)


def _given_negatives(
    session: Session, which: ColumnElement[bool], most: int
) -> dict[int, tuple[tuple[int, str], ...]]:
    """The negatives of the groups' pairs, the first `most` of each; with 0 nothing is read."""
    if not most:
        return {}
    found: dict[int, tuple[tuple[int, str], ...]] = {}
    rows = session.execute(
        select(Group.id, Passage.id, Passage.text)
        .join(PairNegative, PairNegative.pair_id == Group.pair_id)
        .join(Passage, Passage.id == PairNegative.passage_id)
        .where(which)
        .order_by(Group.id, PairNegative.id)
    )
    for group_id, passage_id, text in rows:
        found[group_id] = (*found.get(group_id, ()), (passage_id, text))
    return {group_id: of[:most] for group_id, of in found.items()}


def _with_pairs(
    session: Session, which: ColumnElement[bool], most_negatives: int
) -> list[ClaimedGroup]:
    negatives = _given_negatives(session, which, most_negatives)
    rows = session.execute(
        select(
            Group.id,
            Group.attempt,
            Pair.id,
            Pair.external_id,
            Pair.query,
            Passage.id,
            Passage.text,
            Pair.meta,
            Group.failed_attempts,
            Group.retries,
        )
        .join(Pair, Pair.id == Group.pair_id)
        .join(Passage, Passage.id == Pair.passage_id)
        .where(which)
        .order_by(Group.id)
    )
    return [
        ClaimedGroup(
            id=key,
            attempt=attempt,
            pair_id=pair_id,
            query_id=query_id,
            query=query,
            passage_id=passage_id,
            passage=passage,
            language=str(meta.get("language") or ""),
            failed_attempts=failed_attempts,
            retries=retries,
            negatives=negatives.get(key, ()),
        )
        for (
            key,
            attempt,
            pair_id,
            query_id,
            query,
            passage_id,
            passage,
            meta,
            failed_attempts,
            retries,
        ) in rows
    ]


def renew_leases(session: Session, run_id: int, owner: str) -> int:
    """Extend every lease of this worker; returns how many it still holds. Does not commit."""
    until = store_now(session) + timedelta(seconds=LEASE_SECONDS)
    done = session.execute(
        update(Group)
        .where(Group.run_id == run_id, Group.state == "leased", Group.lease_owner == owner)
        .values(lease_until=until)
        .returning(Group.id)
    )
    return len(done.all())


def release_groups(session: Session, run_id: int, owners: Sequence[str]) -> int:
    """Release all groups of these workers; returns how many. Does not commit."""
    done = session.execute(
        update(Group)
        .where(Group.run_id == run_id, Group.state == "leased", Group.lease_owner.in_(owners))
        .values(state="waiting", lease_owner=None, lease_until=None)
        .returning(Group.id)
    )
    return len(done.all())


def lease_owners(session: Session, run_id: int) -> list[str]:
    """The owners that hold groups of the run."""
    return [
        owner
        for owner in session.scalars(
            select(Group.lease_owner)
            .where(Group.run_id == run_id, Group.state == "leased")
            .distinct()
        )
        if owner is not None
    ]


def open_states(session: Session, run_id: int) -> tuple[bool, bool]:
    """Whether any group waits, and whether any is leased."""

    def any_in(state: str) -> bool:
        query = select(Group.id).where(Group.run_id == run_id, Group.state == state).limit(1)
        return session.scalar(query) is not None

    return any_in("waiting"), any_in("leased")


def finish_groups(
    session: Session, run_id: int, owner: str, done: Sequence[DoneGroup]
) -> list[DoneGroup]:
    """Store the results of groups: verdict, texts, passages, items, judgments, calls.

    A group of a pair whose texts were reviewed in another run gets that review.

    Only groups still leased to this worker under their attempt are written; they are returned. The
    answers of its judges are one event of the run, by who started it. Does not commit.
    """
    rows = session.connection().execute(
        _HELD, {"group_ids": [one.group.id for one in done], "owner": owner}
    )
    held = {(key, attempt) for key, attempt in rows}
    ours = [one for one in done if (one.group.id, one.group.attempt) in held]
    if not ours:
        return []
    about = session.execute(select(Run.dataset_id, Run.created_by).where(Run.id == run_id)).one()
    dataset_id, started_by = about
    passages = _add_passages(session, run_id, dataset_id, ours)
    _add_texts(session, ours, passages)
    _add_judgments(session, run_id, ours, passages)
    if judgments := sum(len(one.items) for one in ours):
        record_event(session, started_by, "judgment.stored", ("run", run_id), judgments=judgments)
    _add_group_calls(session, ours)
    now = utc_now()
    session.connection().execute(
        _FINISH,
        [
            {
                "group_id": one.group.id,
                "to_stage": one.stage,
                "to_verdict": one.verdict,
                "to_reason": one.drop_reason,
                "to_detail": one.drop_detail,
                "now": now,
            }
            for one in ours
        ],
    )
    carry_reviews(session, [one.group.id for one in ours])
    return ours


def _add_passages(
    session: Session, run_id: int, dataset_id: int, done: Sequence[DoneGroup]
) -> dict[tuple[int, str], int]:
    """Insert the written passages; ids by (group, role), with the pair's own where it is right, and
    of lists' texts by (group, name)."""
    found: dict[tuple[int, str], int] = {}
    places, rows = [], []
    for one in done:
        for listed in one.listed:
            slot = one.shape.slots[listed.slot]
            if slot.from_source:
                found[one.group.id, listed.name] = one.group.negatives[listed.ordinal][0]
                continue
            column = slot.column
            places.append((one.group.id, listed.name))
            rows.append(
                _passage_row(run_id, dataset_id, one, listed.text, f"{column}-{listed.ordinal}")
                | {"meta": {"run_id": run_id, "group_id": one.group.id, "slot": listed.name}}
            )
        for number, (role, scenario) in enumerate(one.shape.scenarios.items()):
            if scenario.passage.sign not in one.texts:
                continue
            if scenario.passage.from_source:
                found[one.group.id, role] = one.group.passage_id
                continue
            text = one.texts[scenario.passage.sign]
            places.append((one.group.id, role))
            rows.append(
                _passage_row(run_id, dataset_id, one, text, f"p{number}")
                | {"meta": {"run_id": run_id, "group_id": one.group.id, "role": role}}
            )
    if rows:
        found.update(zip(places, insert_for_ids(session, Passage, rows), strict=True))
    return found


def _passage_row(
    run_id: int, dataset_id: int, done: DoneGroup, text: str, name: str
) -> dict[str, Any]:
    return {
        "dataset_id": dataset_id,
        "external_id": f"run{run_id}-{done.group.query_id}-{name}",
        "title": "",
        "text": text,
        "sha256": text_sha256(text),
        "origin": "generated",
    }


def _add_texts(
    session: Session, done: Sequence[DoneGroup], passages: dict[tuple[int, str], int]
) -> None:
    rows = []
    for one in done:
        stand_ins = {
            text.stands_in_for: text.sign
            for text in one.shape.lists
            for listed in one.listed
            if listed.slot == text.sign and listed.dropped_reason == STANDS_IN
        }
        for sign, text in one.texts.items():
            of = one.shape.texts[sign]
            whose = stand_ins.get(sign, of.introduced_by)
            passage_id = passages[one.group.id, whose] if of.is_passage else None
            rows.append(text_row(one.group.id, sign, text, passage_id))
        for listed in one.listed:
            row = text_row(one.group.id, listed.slot, "", passages[one.group.id, listed.name])
            rows.append(row | {"ordinal": listed.ordinal, "dropped_reason": listed.dropped_reason})
    if rows:
        insert_rows(session, SlotText, rows)


def _add_judgments(
    session: Session,
    run_id: int,
    done: Sequence[DoneGroup],
    passages: dict[tuple[int, str], int],
) -> None:
    judged = [(one, item) for one in done for item in one.items]
    if not judged:
        return
    questions = store_questions(session, [item.question for _, item in judged if item.question])
    ids = insert_items(
        session,
        [
            {
                "group_id": one.group.id,
                "scenario": item.scenario,
                "expected": item.expected,
                "question_id": item.question and questions[item.question.key],
                "revision": 1,
                "instruction": item.instruction,
                "query": item.query,
                "candidates": [
                    {
                        "passage_id": passage_id or passages[one.group.id, label],
                        "label": label,
                    }
                    for label, passage_id in item.candidates
                ],
                "created_at": utc_now(),
            }
            for one, item in judged
        ],
    )
    insert_rows(
        session,
        Judgment,
        [
            {
                "event_id": f"run-{run_id}-group-{one.group.id}-{item.scenario}",
                "judge_id": item.judge_id,
                "item_id": item_id,
                "run_id": run_id,
                "choice": item.choice,
                "order_shown": list(item.order_shown),
                "decided_at": utc_now(),
                "is_current": True,
                "flagged": False,
                "note": "",
                "detail": item.detail,
            }
            for (one, item), item_id in zip(judged, ids, strict=True)
        ],
    )


def _add_group_calls(session: Session, done: Sequence[DoneGroup]) -> None:
    rows = [
        {
            "group_id": one.group.id,
            "task": task,
            "sample": sample,
            "call_id": call_id,
            "outcome": outcome,
        }
        for one in done
        for task, sample, call_id, outcome in one.calls
    ]
    if rows:
        insert_rows(session, GroupCall, rows)
