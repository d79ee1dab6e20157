"""Two runs side by side: how the pairs ended that both finished, and the settings that differ."""

from dataclasses import dataclass
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select
from sqlalchemy.orm import Session, aliased

from db.run.runs import Funnel, funnel, get_run
from db.tables import Group, Pair, Recipe, Run

NO_SETTINGS = (
    *("id", "dataset_id", "recipe_id", "status", "error", "spent_usd", "verdicts_shown"),
    *("counted", "created_by", "created_at", "finished_at", "archived_at"),
)
UNSET = "not set"


@dataclass(frozen=True)
class SharedPair:
    """A pair with different outcomes in two runs; a drop is given by its reason."""

    query: str
    first_group: int
    second_group: int
    first: str
    second: str


def shared_funnels(session: Session, first_run: int, second_run: int) -> tuple[Funnel, Funnel]:
    """The funnels of two runs over the pairs that both finished, so that they can be compared."""

    def over(run: int, other: int) -> Funnel:
        finished = select(Group.pair_id).where(Group.run_id == other, Group.verdict.is_not(None))
        return funnel(session, run, Group.verdict.is_not(None) & Group.pair_id.in_(finished))

    return over(first_run, second_run), over(second_run, first_run)


def differing_settings(
    session: Session, first_run: int, second_run: int
) -> list[tuple[str, str, str]]:
    """(setting, first run's value, second run's) of every setting that differs: the recipe's, by
    their dotted names, then the run's own."""
    values = [_settings(session, run_id) for run_id in (first_run, second_run)]
    names = dict.fromkeys([*values[0], *values[1]])
    found = [(name, *(each.get(name, UNSET) for each in values)) for name in names]
    return [(name, one, other) for name, one, other in found if one != other]


def _settings(session: Session, run_id: int) -> dict[str, str]:
    run = get_run(session, run_id)
    recipe = session.get_one(Recipe, run.recipe_id)
    columns = [column.key for column in Run.__table__.columns if column.key not in NO_SETTINGS]
    own = {f"run.{name}": getattr(run, name) for name in columns}
    return {name: _shown(value) for name, value in {**_flat(recipe.body), **_flat(own)}.items()}


def _flat(body: dict[str, Any], above: str = "") -> dict[str, Any]:
    """{dotted name: value} of a nested body."""
    found: dict[str, Any] = {}
    for name, value in body.items():
        if isinstance(value, dict) and value:
            found |= _flat(value, f"{above}{name}.")
        else:
            found[f"{above}{name}"] = value
    return found


def _shown(value: Any) -> str:
    return UNSET if value is None else str(value)


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
