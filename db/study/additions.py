"""Adding sampled items to a study that is under way."""

from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from db.errors import BadInput
from db.study.studies import get_study, shuffled
from db.tables import Item, StudyItem


def add_items(
    session: Session, study_id: int, item_ids: Sequence[int], how: Mapping[str, Any]
) -> None:
    """Append items to a study, each to be judged as often as its others; `how` they were sampled
    is kept in `settings["additions"]`.

    Judges who had finished get them as their next items. Raises NotFound, BadInput where a group
    would give the study two items. Does not commit.
    """
    study = get_study(session, study_id)
    groups = [session.get_one(Item, item_id).group_id for item_id in item_ids]
    there = set(
        session.scalars(
            select(Item.group_id)
            .join(StudyItem, StudyItem.item_id == Item.id)
            .where(StudyItem.study_id == study_id)
        )
    )
    if len(set(groups)) < len(groups) or there & set(groups):
        raise BadInput(
            "a study takes at most one item of each group",
            "leave out the others",
            code="study_group_duplicate",
        )
    last = session.scalar(
        select(func.max(StudyItem.position)).where(StudyItem.study_id == study_id)
    )
    start = 0 if last is None else last + 1
    session.add_all(
        StudyItem(study_id=study_id, item_id=item_id, position=start + n, places=study.overlap)
        for n, item_id in enumerate(shuffled(item_ids))
    )
    additions = [*study.settings.get("additions", ()), dict(how)]
    study.settings = {**study.settings, "additions": additions}
    session.flush()
