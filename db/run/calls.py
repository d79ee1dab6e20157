"""The journal of calls: searched by content key before a request, written before parsing.

If two processes get an answer for the same key at the same moment, the first one is kept and both
use it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Text, any_, bindparam, case, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Session

from db.store.bulk import insert_new
from db.tables import Base, Call, Group, GroupCall, Run, RunWorker

KEYS_PER_QUERY = 500
_CALL = Base.metadata.tables[Call.__tablename__]
_ANSWERS = select(_CALL.c.id, _CALL.c.key, _CALL.c.answer, _CALL.c.finish_reason)
_FIND = {  # PostgreSQL gets the keys as one array: one statement text, prepared once
    "sqlite": _ANSWERS.where(_CALL.c.key.in_(bindparam("keys", expanding=True))),
    "postgresql": _ANSWERS.where(_CALL.c.key == any_(bindparam("keys", type_=ARRAY(Text)))),
}


@dataclass(frozen=True)
class StoredCall:
    """The stored answer of a key."""

    id: int
    key: str
    answer: str
    finish_reason: str


@dataclass(frozen=True)
class CallTotals:
    """Totals of the calls that serve a run's finished groups, by task and model."""

    task: str
    model: str
    calls: int
    input_tokens: int
    output_tokens: int
    reasoning_tokens: int
    cost_usd: float
    parsed: int


def find_calls(session: Session, keys: Sequence[str]) -> dict[str, StoredCall]:
    """The stored answers among these keys, by key."""
    found: dict[str, StoredCall] = {}
    connection = session.connection()
    query = _FIND[connection.dialect.name]
    for start in range(0, len(keys), KEYS_PER_QUERY):
        rows = connection.execute(query, {"keys": list(keys[start : start + KEYS_PER_QUERY])})
        found.update((row.key, StoredCall(*row)) for row in rows)
    return found


def add_calls(session: Session, rows: Sequence[dict[str, Any]]) -> dict[str, StoredCall]:
    """Store answered calls; returns the stored answer of each key. Does not commit."""
    if not rows:
        return {}
    kept = {
        row["key"]: StoredCall(id_, row["key"], row["answer"], row["finish_reason"])
        for id_, row in _insert(session, rows)
    }
    others = {str(row["key"]) for row in rows} - kept.keys()
    return kept | find_calls(session, sorted(others))


@dataclass(frozen=True)
class RecoveredCall:
    """An answer that a killed worker left in its file; `max_usd` was reserved for it."""

    row: dict[str, Any]
    max_usd: float = 0.0


def add_recovered_calls(
    session: Session, run_id: int, owner: str, answers: Sequence[RecoveredCall]
) -> int:
    """Store answers that a killed worker of a run left in its file, unless stored already.

    Returns how many were new; their cost takes the place of what was reserved for them. An answer
    that another worker requested again in the meantime was billed twice: its reservation stays.
    Does not commit.
    """
    max_usd = {str(each.row["key"]): each.max_usd for each in answers}
    # a line of a file written before servers were recorded names none
    new = _insert(session, [{"server_group": None} | each.row for each in answers])
    usd = sum(row["cost_usd"] for _, row in new)
    freed = sum(max_usd[row["key"]] for _, row in new)
    if not usd and not freed:
        return len(new)
    worker, is_dead = RunWorker, RunWorker.ended_at.is_not(None)
    counted = session.execute(
        update(worker)
        .where(worker.owner == owner, worker.run_id == run_id)
        .values(
            spent_usd=worker.spent_usd + usd,
            reserved_usd=case(
                (is_dead, worker.reserved_usd), else_=_less(worker.reserved_usd, freed)
            ),
            unanswered_usd=case(
                (is_dead, _less(worker.unanswered_usd, freed)), else_=worker.unanswered_usd
            ),
        )
        .returning(worker.id)
    )
    if counted.first() is None:  # of a store that was restored to a time before it
        more = Run.other_usd + usd
        session.execute(update(Run).where(Run.id == run_id).values(other_usd=more))
    return len(new)


def _less(usd: Any, freed: float) -> ColumnElement[float]:
    return case((usd > freed, usd - freed), else_=0.0)


def count_unknown_servers(session: Session, run_id: int) -> int:
    """Answers of a run that records its server and that were given before servers were recorded."""
    return (
        session.scalar(
            select(func.count())
            .select_from(GroupCall)
            .join(Call, Call.id == GroupCall.call_id)
            .join(Group, Group.id == GroupCall.group_id)
            .join(Run, Run.id == Group.run_id)
            .where(Group.run_id == run_id, Run.server_group != "", Call.server_group.is_(None))
        )
        or 0
    )


def _insert(session: Session, rows: Sequence[dict[str, Any]]) -> list[tuple[int, dict[str, Any]]]:
    """(id, row) of the rows whose key was not stored yet, the first of each key."""
    by_key = {str(row["key"]): row for row in reversed(rows)}
    ordered = [by_key[key] for key in sorted(by_key)]  # one order for all: no deadlock of workers
    new = insert_new(session, Call, ordered, ("id", "key"))
    return [(each["id"], by_key[each["key"]]) for each in new]


def call_totals(session: Session, run_id: int) -> list[CallTotals]:
    """Calls, tokens, cost and acceptance by task and model, over the run's finished groups.

    `parsed` counts the answers that passed the parser and the rule filter. A call that serves
    several groups is counted for each.
    """
    rows = session.execute(
        select(
            GroupCall.task,
            Call.model,
            func.count(),
            func.sum(Call.input_tokens),
            func.sum(Call.output_tokens),
            func.sum(Call.reasoning_tokens),
            func.sum(Call.cost_usd),
            func.count().filter(GroupCall.outcome == "ok"),
        )
        .join(Call, Call.id == GroupCall.call_id)
        .join(Group, Group.id == GroupCall.group_id)
        .where(Group.run_id == run_id)
        .group_by(GroupCall.task, Call.model)
        .order_by(GroupCall.task, Call.model)
    )
    return [CallTotals(*row) for row in rows]
