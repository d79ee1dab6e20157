"""The journal of calls: searched by content key before a request, written before parsing.

If two processes get an answer for the same key at the same moment, the first one is kept and both
use it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Text, any_, bindparam, func, select, update
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.orm import Session

from db.store.bulk import insert_new
from db.tables import Base, Call, Group, GroupCall, Run

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


def are_stored(session: Session, rows: Sequence[dict[str, Any]]) -> bool:
    """Whether a transaction that added these rows was committed: one of them is here as it was.

    A row whose key was stored before is not; each has its own moment.
    """
    stored = session.execute(
        select(_CALL.c.key, _CALL.c.created_at).where(_CALL.c.key.in_([row["key"] for row in rows]))
    )
    return not {(row["key"], row["created_at"]) for row in rows}.isdisjoint(map(tuple, stored))


def add_recovered_calls(session: Session, run_id: int, rows: Sequence[dict[str, Any]]) -> int:
    """Store answers that a killed worker of a run left in its file, unless stored already.

    Returns how many were new; their cost is added to the run. Does not commit.
    """
    # a line of a file written before servers were recorded names none
    new = _insert(session, [{"server_group": None} | row for row in rows])
    add_spending(session, run_id, sum(row["cost_usd"] for _, row in new))
    return len(new)


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


def add_spending(session: Session, run_id: int, usd: float) -> None:
    """Add to what a run has spent. Does not commit."""
    if usd:
        session.execute(update(Run).where(Run.id == run_id).values(spent_usd=Run.spent_usd + usd))


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
