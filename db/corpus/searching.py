"""The texts of runs and of pairs that contain some words: where they stand."""

from collections.abc import Collection, Mapping
from itertools import product

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.corpus.browsing import contains
from db.shape import Shape
from db.tables import Group, Pair, Passage, Triplet

Found = set[tuple[int, str, str]]


def texts_with(session: Session, shapes: Mapping[int, Shape], text: str) -> Found:
    """(group, role, field) of every text of the runs, given with the shape of their groups, that
    contains `text`, case-insensitive, listed under the role of the triplet that introduced it."""
    columns = {
        "instruction": contains(Triplet.instruction, text),
        "query": contains(Triplet.query, text),
        "passage": contains(Passage.text, text),
    }
    found: Found = set()
    runs_of: dict[Shape, list[int]] = {}
    for run_id, of_run in shapes.items():
        runs_of.setdefault(of_run, []).append(run_id)
    for (shape, runs), (field, holds) in product(runs_of.items(), columns.items()):
        roles = [text.introduced_by for text in shape.all_texts if text.field == field]
        query = (
            select(Triplet.group_id, Triplet.role)
            .join(Group, Group.id == Triplet.group_id)
            .where(Group.run_id.in_(runs), Triplet.role.in_(roles), holds)
        )
        if field == "passage":
            query = query.join(Passage, Passage.id == Triplet.passage_id)
        found |= {(group_id, role, field) for group_id, role in session.execute(query)}
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
