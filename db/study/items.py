"""Origin of a study's items: group, scenario, source and recipe of each; the questions they ask."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.corpus.texts import pair_source
from db.question import PICK, Question
from db.run.new_items import question_in
from db.study.studies import get_study
from db.tables import Dataset, Group, Item, Pair, Recipe, Run, StudyItem
from db.tables import Question as QuestionRow


class ItemPlace(NamedTuple):
    """The origin of an item; `source` is its pair's, `recipe` that of the run that generated it."""

    group_id: int
    scenario: str
    instruction: str
    query: str
    source: str = ""
    recipe: str = ""
    run_id: int = 0
    expected: str | None = None
    question: str = PICK.name


def study_item_places(session: Session, study_id: int) -> dict[int, ItemPlace]:
    """The items of a study: their group, scenario, instruction, query, source and recipe."""
    rows: Sequence[Any] = session.execute(
        select(
            Item.id,
            Item.group_id,
            Item.scenario,
            Item.instruction,
            Item.query,
            func.coalesce(pair_source(), ""),
            Recipe.name,
            Run.id,
            Item.expected,
            func.coalesce(QuestionRow.name, PICK.name),
        )
        .join(StudyItem, StudyItem.item_id == Item.id)
        .join(Group, Group.id == Item.group_id)
        .join(Pair, Pair.id == Group.pair_id)
        .join(Dataset, Dataset.id == Pair.dataset_id)
        .join(Run, Run.id == Group.run_id)
        .join(Recipe, Recipe.id == Run.recipe_id)
        .outerjoin(QuestionRow, QuestionRow.id == Item.question_id)
        .where(StudyItem.study_id == study_id)
    ).all()
    return {item_id: ItemPlace(*place) for item_id, *place in rows}


def shared_records(session: Session, study_id: int) -> dict[int, int]:
    """The group of each item of a study that is about the same group as another of its items."""
    of_study = select(Item.id, Item.group_id).join(StudyItem, StudyItem.item_id == Item.id)
    of_study = of_study.where(StudyItem.study_id == study_id)
    rows = of_study.subquery()
    groups = select(rows.c.group_id).group_by(rows.c.group_id)
    several = of_study.where(Item.group_id.in_(groups.having(func.count() > 1)))
    found: Sequence[Any] = session.execute(several).all()
    return dict(found)


def questions_of_study(session: Session, study_id: int) -> list[Question]:
    """The questions that a study asks besides InF-IR's pick, in their order. Raises NotFound."""
    order = get_study(session, study_id).settings.get("questions")
    if not order:
        return []
    ids = select(Item.question_id).join(StudyItem, StudyItem.item_id == Item.id)
    rows = session.scalars(
        select(QuestionRow).where(QuestionRow.id.in_(ids.where(StudyItem.study_id == study_id)))
    )
    found = {row.name: question_in(row) for row in rows}
    return [found[name] for name in order if name in found]
