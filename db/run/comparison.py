"""Two runs side by side: how each ended, and the outcome of the pairs that both had."""

from dataclasses import dataclass

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session, aliased

from db.tables import Group, Pair


@dataclass(frozen=True)
class SharedPair:
    """A pair with different outcomes in two runs; a drop is given by its reason."""

    query: str
    first_group: int
    second_group: int
    first: str
    second: str


def count_shared(session: Session, first_run: int, second_run: int) -> dict[tuple[str, str], int]:
    """Pairs that both runs finished, by their verdict in the first and in the second."""
    first, second = aliased(Group), aliased(Group)
    query = (
        select(first.verdict, second.verdict, func.count())
        .join(second, second.pair_id == first.pair_id)
        .where(
            first.run_id == first_run,
            second.run_id == second_run,
            first.verdict.is_not(None),
            second.verdict.is_not(None),
        )
        .group_by(first.verdict, second.verdict)
    )
    return {(str(row[0]), str(row[1])): row[2] for row in session.execute(query)}


def changed_pairs(
    session: Session,
    first_run: int,
    second_run: int,
    *,
    without: ColumnElement[bool] | None = None,
    offset: int = 0,
    limit: int = 20,
) -> list[SharedPair]:
    """Pairs that one run kept and the other dropped, in the order of the first run.

    `without`: a condition on `Pair.id`, pairs to leave out: those hidden from who reads them
    (`db.assignment.hidden.hidden_pair`).
    """
    first, second = aliased(Group), aliased(Group)
    query: Select[str, int, int, str, str] = (
        select(
            Pair.query,
            first.id,
            second.id,
            func.coalesce(first.drop_reason, first.verdict),
            func.coalesce(second.drop_reason, second.verdict),
        )
        .select_from(first)
        .join(second, second.pair_id == first.pair_id)
        .join(Pair, Pair.id == first.pair_id)
        .where(
            first.run_id == first_run,
            second.run_id == second_run,
            first.verdict != second.verdict,
        )
        .order_by(first.id)
        .offset(offset)
        .limit(limit)
    )
    if without is not None:
        query = query.where(~without)
    return [SharedPair(*row) for row in session.execute(query)]
