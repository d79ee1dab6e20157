"""Every judge's current answers on a run's items, and the cost of the judges' calls."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Final

from sqlalchemy import Select, String, case, cast, exists, func, select
from sqlalchemy.orm import Session, aliased

from db.run.new_items import is_pick
from db.run.runs import shape_of
from db.shape import Shape
from db.store.kept import kept
from db.tables import Call, Group, Item, Judge, Judgment

ON_THIS_MACHINE = ("offline", "transformers")
BETWEEN: Final = (";", ":")  # judges, and the numbers of one, in the text that the store returns
Seen = tuple[str, int, int]
Pattern = tuple[bool | None, tuple[Seen, ...]]


@dataclass(frozen=True)
class RunAnswers:
    """The answers on a run's newest items, with the newest judgment's number and time.

    `patterns` counts groups by whether the run kept them (None: no verdict yet) and by what was
    answered: each judge's name, the `bits` of the run's shape that it answered, and those of them
    in which it found the passage written for the scenario.
    """

    patterns: Mapping[Pattern, int]
    newest: int
    last_at: datetime | None

    @property
    def answers(self) -> int:
        """How many answers there are."""
        return sum(
            groups * sum(answered.bit_count() for _, answered, _ in seen)
            for (_, seen), groups in self.patterns.items()
        )


def run_answers(session: Session, run_id: int) -> RunAnswers:
    """Every current judgment of the run's newest items.

    Counted by the store: of 100,000 groups a program would read 300,000 rows. That takes more than
    a second, so that they are kept while nothing they count has changed.
    """
    state = answers_version(session, run_id)
    return kept(session, "answers", run_id, state, partial(_count_answers, session, run_id))


def _count_answers(session: Session, run_id: int) -> RunAnswers:
    names = dict(session.execute(select(Judge.id, Judge.name)).all())
    found: Counter[Pattern] = Counter()
    newest, times = 0, list[datetime]()
    for verdict, texts, groups, last, last_at in session.execute(
        _counted_answers(run_id, shape_of(session, run_id))
    ):
        seen = sorted(_seen(text, names) for text in texts.split(BETWEEN[0]))
        found[_is_kept(verdict), tuple(seen)] += groups
        newest = max(newest, last)
        times.append(last_at)
    for verdict, groups, _ in _verdicts(session, run_id):
        is_kept = _is_kept(verdict)
        answered = sum(count for (kept, _), count in found.items() if kept is is_kept)
        if groups > answered:
            found[is_kept, ()] = groups - answered
    return RunAnswers(dict(found), newest, max(times, default=None))


def _counted_answers(run_id: int, shape: Shape) -> Select[str | None, str, int, int, datetime]:
    """Verdict, the judges' answers as a text, the number of groups, newest judgment, its time."""
    newer = aliased(Item)
    superseded = exists().where(
        newer.group_id == Item.group_id,
        newer.scenario == Item.scenario,
        newer.revision > Item.revision,
    )
    bit = case(shape.bits, value=Item.scenario, else_=0)
    of_judge = (
        select(
            Group.id.label("group_id"),
            Group.verdict.label("verdict"),
            Judgment.judge_id.label("judge_id"),
            func.sum(bit).label("answered"),
            func.sum(case((Judgment.choice == Item.expected, bit), else_=0)).label("passed"),
            func.max(Judgment.id).label("newest"),
            func.max(Judgment.decided_at).label("last_at"),
        )
        .join(Item, Item.group_id == Group.id)
        .join(Judgment, Judgment.item_id == Item.id)
        .where(Group.run_id == run_id, Judgment.is_current, is_pick(), ~superseded)
        .group_by(Group.id, Group.verdict, Judgment.judge_id)
        .subquery()
    )
    judges, numbers = BETWEEN
    parts = [cast(of_judge.c[name], String) for name in ("judge_id", "answered", "passed")]
    text = parts[0] + numbers + parts[1] + numbers + parts[2]
    of_group = (
        select(
            of_judge.c.verdict,
            func.aggregate_strings(text, judges).label("seen"),
            func.max(of_judge.c.newest).label("newest"),
            func.max(of_judge.c.last_at).label("last_at"),
        )
        .group_by(of_judge.c.group_id, of_judge.c.verdict)
        .subquery()
    )
    kinds = of_group.c.verdict, of_group.c.seen
    newest, last_at = func.max(of_group.c.newest), func.max(of_group.c.last_at)
    return select(*kinds, func.count(), newest, last_at).group_by(*kinds)


def _seen(text: str, names: Mapping[int, str]) -> Seen:
    judge, answered, passed = (int(number) for number in text.split(BETWEEN[1]))
    return names[judge], answered, passed


def _is_kept(verdict: str | None) -> bool | None:
    return None if verdict is None else verdict == "kept"


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
    """By model: the number of judging calls in the journal, and their total cost in USD.

    Read from `ix_call_task_price` alone.
    """
    rows = session.execute(
        select(Call.model, func.count(), func.sum(Call.cost_usd))
        .where(Call.task.in_(tasks))
        .group_by(Call.model)
    )
    return {model: (count, float(cost or 0.0)) for model, count, cost in rows}


def answers_version(session: Session, run_id: int) -> tuple[object, ...]:
    """What changes whenever `run_answers` does.

    No judgment changes but to make room for a newer one, so that of all judgments, whatever their
    run, the newest and the number of current ones will do: of the run's alone they would take the
    store as long as the answers do.
    """
    newest = session.execute(
        select(Judgment.id, Judgment.event_id, Judgment.decided_at)
        .order_by(Judgment.id.desc())
        .limit(1)
    ).first()
    current = session.scalar(select(func.count()).where(Judgment.is_current))
    newest_item = session.scalar(select(func.max(Item.id)))
    verdicts = (tuple(row) for row in _verdicts(session, run_id))
    return (*(newest or ()), current, newest_item, *verdicts)


def groups_with_items(session: Session, run_id: int) -> dict[str, int]:
    """How many of the run's groups have items, by verdict; kept while neither changes."""
    state = (session.scalar(select(func.max(Item.id))), *_verdicts(session, run_id))
    query = (
        select(Group.verdict, func.count())
        .where(Group.run_id == run_id, Group.verdict.is_not(None))
        .where(exists().where(Item.group_id == Group.id))
        .group_by(Group.verdict)
    )
    return kept(
        session,
        "judged groups",
        run_id,
        state,
        lambda: {str(verdict): number for verdict, number in session.execute(query)},
    )


def _verdicts(session: Session, run_id: int) -> list[tuple[str | None, int, int]]:
    """The number of the run's groups by verdict, and the sum of their ids."""
    rows = session.execute(
        select(Group.verdict, func.count(), func.sum(Group.id))
        .where(Group.run_id == run_id)
        .group_by(Group.verdict)
        .order_by(Group.verdict)
    )
    return [(verdict, groups, ids) for verdict, groups, ids in rows]
