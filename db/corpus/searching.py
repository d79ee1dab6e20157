"""The texts of runs and of pairs that contain some words: where they stand."""

from collections.abc import Collection, Mapping

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.corpus.browsing import contains
from db.shape import Shape
from db.tables import Group, Pair, Passage, SlotText

Found = set[tuple[int, str, str]]


def texts_with(session: Session, shapes: Mapping[int, Shape], text: str) -> Found:
    """(group, role, field) of every text of the runs, given with the shape of their groups, that
    contains `text`, case-insensitive, listed under the role of the scenario that introduced it."""
    query = select(SlotText.group_id, SlotText.slot).join(Group, Group.id == SlotText.group_id)
    query = query.where(SlotText.dropped_reason.is_(None))
    written = query.where(contains(SlotText.text, text))
    passages = query.join(Passage, Passage.id == SlotText.passage_id)
    passages = passages.where(contains(Passage.text, text))
    found: Found = set()
    runs_of: dict[Shape, list[int]] = {}
    for run_id, of_run in shapes.items():
        runs_of.setdefault(of_run, []).append(run_id)
    for shape, runs in runs_of.items():
        for holding in (written, passages):
            for group_id, slot in session.execute(holding.where(Group.run_id.in_(runs))):
                of = shape.slots[slot]
                found.add((group_id, of.introduced_by, of.field))
    return found


def pairs_with(session: Session, dataset_ids: Collection[int], text: str) -> set[tuple[int, str]]:
    """(pair, field) of every pair whose query or passage contains `text`, case-insensitive."""
    found: set[tuple[int, str]] = set()
    for field, column in (("query", Pair.query), ("passage", Passage.text)):
        query = select(Pair.id).where(Pair.dataset_id.in_(dataset_ids), contains(column, text))
        if field == "passage":
            query = query.join(Passage, Passage.id == Pair.passage_id)
        found |= {(pair_id, field) for pair_id in session.scalars(query)}
    return found
