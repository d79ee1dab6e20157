"""Every judge's current answers on a run's items, and the cost of the judges' calls."""

from datetime import datetime

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.run.new_items import in_order_of_roles
from db.tables import Call, Group, Item, Judge, Judgment

ON_THIS_MACHINE = ("offline", "transformers")


def run_answers(session: Session, run_id: int) -> list[tuple[str, int, str, str]]:
    """(judge, group, scenario, choice) of every current judgment of the run's newest items."""
    newest = (
        select(func.max(Item.id))
        .join(Group, Group.id == Item.group_id)
        .where(Group.run_id == run_id)
        .group_by(Item.group_id, Item.scenario)
    )
    rows = session.execute(
        select(Judge.name, Item.group_id, Item.scenario, Judgment.choice)
        .join(Judgment, Judgment.judge_id == Judge.id)
        .join(Item, Item.id == Judgment.item_id)
        .where(Item.id.in_(newest), Judgment.is_current)
        .order_by(Item.group_id, *in_order_of_roles(), Judge.name)
    )
    return [(judge, group, scenario, choice) for judge, group, scenario, choice in rows]


def run_verdicts(session: Session, run_id: int) -> dict[int, bool]:
    """Whether the run kept each of its groups that have a verdict."""
    rows = session.execute(
        select(Group.id, Group.verdict).where(Group.run_id == run_id, Group.verdict.is_not(None))
    )
    return {group: verdict == "kept" for group, verdict in rows}


def judge_models(session: Session) -> dict[str, tuple[str, bool]]:
    """The model of each model judge, and whether its calls are free.

    Free are rules, embedding models, and language models on this machine.
    """
    rows = session.execute(
        select(Judge.name, Judge.model, Judge.offline, Judge.provider).where(Judge.kind == "model")
    )
    return {
        name: (model, offline or provider in ON_THIS_MACHINE)
        for name, model, offline, provider in rows
    }


def judging_cost(session: Session, tasks: tuple[str, ...]) -> dict[str, tuple[int, float]]:
    """By model: the number of judging calls in the journal, and their total cost in USD."""
    rows = session.execute(
        select(Call.model, func.count(), func.sum(Call.cost_usd))
        .where(Call.task.in_(tasks))
        .group_by(Call.model)
    )
    return {model: (count, float(cost or 0.0)) for model, count, cost in rows}


def answers_state(session: Session, run_id: int) -> tuple[int, datetime | None]:
    """The newest current judgment of the run's items, and its time; 0 and None without any."""
    newest, last_at = session.execute(
        select(func.max(Judgment.id), func.max(Judgment.decided_at))
        .join(Item, Item.id == Judgment.item_id)
        .join(Group, Group.id == Item.group_id)
        .where(Group.run_id == run_id, Judgment.is_current)
    ).one()
    return newest or 0, last_at


def answers_version(session: Session, run_id: int) -> tuple[object, ...]:
    """What changes whenever `run_answers` or `run_verdicts` does: counts and newest numbers."""
    judged = session.execute(
        select(func.count(), func.max(Judgment.id))
        .join(Item, Item.id == Judgment.item_id)
        .join(Group, Group.id == Item.group_id)
        .where(Group.run_id == run_id, Judgment.is_current)
    ).one()
    newest_item = session.scalar(
        select(func.max(Item.id))
        .join(Group, Group.id == Item.group_id)
        .where(Group.run_id == run_id)
    )
    verdicts = session.execute(
        select(Group.verdict, func.count(), func.sum(Group.id))
        .where(Group.run_id == run_id)
        .group_by(Group.verdict)
        .order_by(Group.verdict)
    )
    return (*judged, newest_item, *(tuple(row) for row in verdicts))
