"""A dataset's own queries and passages, as retrieval is measured on them."""

from typing import NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from db.corpus.datasets import get_dataset
from db.tables import Pair, Passage

GENERATED = "generated"


class DatasetRetrieval(NamedTuple):
    """{query id: query} without doubles, {passage id: text with its title} without doubles, and
    {query id: ids of the passages that answer it}."""

    queries: dict[str, str]
    passages: dict[str, str]
    relevant: dict[str, list[str]]


def dataset_retrieval(session: Session, name: str) -> DatasetRetrieval:
    """Every real query against all real passages of a dataset. Raises NotFound.

    Queries of equal text are one query that all their passages answer; passages of equal title and
    text are one passage. Generated passages are left out: they were written to mislead.
    """
    dataset = get_dataset(session, name)
    first: dict[str, str] = {}  # the text's first passage
    named: dict[int, str] = {}
    rows = session.execute(
        select(Passage.id, Passage.external_id, Passage.title, Passage.text)
        .where(Passage.dataset_id == dataset.id, Passage.origin != GENERATED)
        .order_by(Passage.id)
    )
    for key, external_id, title, text in rows:
        named[key] = first.setdefault(f"{title or ''} {text}".strip(), external_id)
    queries: dict[str, str] = {}
    relevant: dict[str, list[str]] = {}
    pairs = session.execute(
        select(Pair.external_id, Pair.query, Pair.passage_id)
        .where(Pair.dataset_id == dataset.id)
        .order_by(Pair.id)
    )
    for external_id, query, passage_id in pairs:
        known = queries.setdefault(query, external_id)
        of = relevant.setdefault(known, [])
        if named[passage_id] not in of:
            of.append(named[passage_id])
    return DatasetRetrieval(
        {known: query for query, known in queries.items()},
        {external_id: text for text, external_id in first.items()},
        relevant,
    )
