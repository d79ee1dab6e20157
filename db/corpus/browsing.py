"""Browsing a dataset: pages of its pairs and passages, with text search."""

from typing import Any

from sqlalchemy import ColumnElement, func, select
from sqlalchemy.orm import Session
from sqlalchemy.orm.attributes import InstrumentedAttribute

from db.rows import Row
from db.tables import Pair, Passage


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
