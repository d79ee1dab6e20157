"""Browsing a dataset: pages of its pairs and passages, with text search."""

from collections.abc import Collection, Mapping
from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import InstrumentedAttribute

from db.rows import Row
from db.shape import Shape
from db.tables import Group, Pair, Passage, SlotText


class PairView(Row):
    """A query and the passage that answers it; `language` is a programming language or ""."""

    id: int
    query_id: str
    query: str
    passage_id: str
    passage: str
    language: str


def list_pairs(
    session: Session, dataset_id: int, *, search: str = "", offset: int = 0, limit: int = 20
) -> tuple[list[PairView], int]:
    """A page of pairs in order of import, and how many match in all.

    `search` is a part of the query, case-insensitive.
    """
    query = select(Pair, Passage.external_id, Passage.text).join(
        Passage, Passage.id == Pair.passage_id
    )
    wanted = [Pair.dataset_id == dataset_id]
    if search.strip():
        wanted.append(contains(Pair.query, search.strip()))
    # the page's ids first: else SQLite reads all the dataset's pairs with their texts to sort them
    page = select(Pair.id).where(*wanted).order_by(Pair.id).offset(offset).limit(limit)
    rows = session.execute(query.where(Pair.id.in_(page)).order_by(Pair.id))
    found = [
        PairView(
            id=pair.id,
            query_id=pair.external_id,
            query=pair.query,
            passage_id=passage_id,
            passage=passage,
            language=str(pair.meta.get("language") or ""),
        )
        for pair, passage_id, passage in rows
    ]
    return found, session.scalar(select(func.count(Pair.id)).where(*wanted)) or 0


def has_pairs(session: Session, dataset_id: int) -> bool:
    """Whether the dataset has a pair, found without counting them."""
    first = select(Pair.id).where(Pair.dataset_id == dataset_id).limit(1)
    return session.scalar(first) is not None


def has_passages(session: Session, dataset_id: int) -> bool:
    """Whether an import gave the dataset a passage."""
    first = select(Passage.id).where(
        Passage.dataset_id == dataset_id, Passage.origin != "generated"
    )
    return session.scalar(first.limit(1)) is not None


def list_passages(
    session: Session,
    dataset_id: int,
    *,
    origin: str | None = None,
    search: str = "",
    offset: int = 0,
    limit: int = 20,
) -> tuple[list[Passage], int]:
    """A page of passages in order of import, and how many match in all."""
    wanted: list[ColumnElement[bool]] = [Passage.dataset_id == dataset_id]
    if origin:
        wanted.append(Passage.origin == origin)
    if search.strip():
        wanted.append(contains(Passage.text, search.strip()))
    page = select(Passage.id).where(*wanted).order_by(Passage.id).offset(offset).limit(limit)
    query = select(Passage).where(Passage.id.in_(page)).order_by(Passage.id)
    total = session.scalar(select(func.count(Passage.id)).where(*wanted)) or 0
    return list(session.scalars(query)), total


def contains(column: InstrumentedAttribute[Any], text: str) -> ColumnElement[bool]:
    """Whether the column contains the text, case-insensitive; `%` and `_` are literal."""
    return func.lower(column).contains(text.lower(), autoescape=True)


Found = set[tuple[int, str, str]]


def texts_with(session: Session, shapes: Mapping[int, Shape], text: str) -> Found:
    """(group, role, field) of every text of the runs, given with the shape of their groups, that
    contains `text`, case-insensitive, under the role that analyses count it."""
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
                found.add((group_id, of.role, of.field))
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
