"""Facts to sample a study's items by: the source of a run's groups, and models' answers."""

from collections.abc import Iterator

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.corpus.texts import pair_source
from db.run.new_items import is_pick
from db.tables import Dataset, Group, Item, Judge, Judgment, Pair, Passage


def group_facts(session: Session, run_id: int) -> dict[int, dict[str, str]]:
    """Of every group of the run: the source of its pair and its verdict."""
    query = (
        select(Group.id, pair_source(), func.coalesce(Group.verdict, "undecided"))
        .join(Pair, Pair.id == Group.pair_id)
        .join(Dataset, Dataset.id == Pair.dataset_id)
        .where(Group.run_id == run_id)
    )
    return {
        group_id: {"source": source, "verdict": verdict}
        for group_id, source, verdict in session.execute(query)
    }


def pair_texts(session: Session, run_id: int) -> Iterator[tuple[int, str, str]]:
    """(group, query, passage) of every group of the run, of its pair."""
    query = (
        select(Group.id, Pair.query, Passage.text)
        .join(Pair, Pair.id == Group.pair_id)
        .join(Passage, Passage.id == Pair.passage_id)
        .where(Group.run_id == run_id)
    )
    for row in session.execute(query).yield_per(1000):
        yield row.id, row.query, row.text


def model_answers(session: Session, run_id: int) -> list[tuple[int, str, str]]:
    """(item, judge, choice) of every current judgment by a model on the run's items: the run's
    validator and models that judged in studies."""
    query = (
        select(Judgment.item_id, Judge.name, Judgment.choice)
        .join(Judge, Judge.id == Judgment.judge_id)
        .join(Item, Item.id == Judgment.item_id)
        .join(Group, Group.id == Item.group_id)
        .where(Group.run_id == run_id, Judgment.is_current, Judge.kind == "model", is_pick())
        .order_by(Judgment.item_id, Judge.name)
    )
    return [(item_id, judge, choice) for item_id, judge, choice in session.execute(query)]


def sampled_judges(session: Session, run_id: int, of_study: int | None) -> list[str]:
    """The judges whose disagreement a study can be sampled by: models that judged the run's items,
    or those of an earlier study."""
    query = (
        select(Judge.name)
        .join(Judgment, Judgment.judge_id == Judge.id)
        .where(Judgment.is_current)
        .distinct()
        .order_by(Judge.name)
    )
    if of_study is not None:
        query = query.where(Judgment.study_id == of_study, Judge.kind != "adjudicator")
    else:
        query = (
            query.join(Item, Item.id == Judgment.item_id)
            .join(Group, Group.id == Item.group_id)
            .where(Group.run_id == run_id, Judge.kind == "model", is_pick())
        )
    return list(session.scalars(query))
