"""Datasets, their passages and pairs: finding them, counting them, adding rows in bulk.

Note: `passages` of a summary are the imported ones (origin `seed` or `pool`); passages that a run
wrote are counted separately, as `generated`.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Select, Table, case, func, select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from db.errors import NotFound, Refused
from db.tables import Dataset, Pair, PairNegative, Passage

IDS_PER_QUERY = 1000
Row = dict[str, Any]


@dataclass(frozen=True)
class DatasetSummary:
    """A dataset with its counts."""

    id: int
    name: str
    source: str
    licence: str
    pairs: int
    passages: int
    generated: int
    created_at: datetime
    archived_at: datetime | None = None


def text_sha256(text: str) -> str:
    """The sha256 of the UTF-8 text, in hexadecimal: the identity of a text everywhere."""
    return hashlib.sha256(text.encode()).hexdigest()


def find_dataset(session: Session, name: str) -> Dataset | None:
    """The dataset of that name, None if there is none."""
    return session.scalars(select(Dataset).where(Dataset.name == name)).one_or_none()


def get_dataset(session: Session, name: str) -> Dataset:
    """The dataset of that name. Raises NotFound, which lists the existing ones."""
    found = find_dataset(session, name)
    if found is None:
        query = select(Dataset.name).where(Dataset.archived_at.is_(None)).order_by(Dataset.name)
        names = session.scalars(query.limit(20)).all()
        there = f"existing ones: {', '.join(names)}" if names else "there is none yet"
        raise NotFound(
            f"no dataset {name!r}; {there}",
            "`datasets import NAME pairs=FILE` creates one",
            code="dataset_unknown",
        )
    return found


def require_active(session: Session, dataset: Dataset) -> None:
    """Raise Refused for an archived dataset: nothing new is made from it.

    Locks it against being archived until the transaction ends.
    """
    query = select(Dataset.archived_at).where(Dataset.id == dataset.id)
    # the lock of a foreign key: it waits for who archives (`lock_target`), for nobody else
    if session.scalar(query.with_for_update(read=True, key_share=True)) is not None:
        raise Refused(
            f"dataset {dataset.name!r} is archived",
            f"bring it back with `datasets unarchive {dataset.name}`, or use another name",
            code="dataset_archived",
        )


def list_datasets(session: Session, *, archived: bool = False) -> list[DatasetSummary]:
    """Datasets with their counts, by name; with `archived` the archived ones, too."""
    query = select(Dataset).order_by(Dataset.name)
    if not archived:
        query = query.where(Dataset.archived_at.is_(None))
    return _summaries(session, query)


def summarise_dataset(session: Session, dataset: Dataset) -> DatasetSummary:
    """One dataset as the list has it: only what it holds is counted."""
    (found,) = _summaries(session, select(Dataset).where(Dataset.id == dataset.id), dataset.id)
    return found


def _summaries(
    session: Session, query: Select[Dataset], only: int | None = None
) -> list[DatasetSummary]:
    """The datasets of a query with their counts, which are of `only` one where that is all."""
    of_pairs = select(Pair.dataset_id, func.count()).group_by(Pair.dataset_id)
    generated = func.sum(case((Passage.origin == "generated", 1), else_=0))
    of_passages = select(Passage.dataset_id, func.count(), generated).group_by(Passage.dataset_id)
    if only is not None:
        of_pairs = of_pairs.where(Pair.dataset_id == only)
        of_passages = of_passages.where(Passage.dataset_id == only)
    pairs = {dataset_id: int(number) for dataset_id, number in session.execute(of_pairs)}
    passages = {
        dataset_id: (int(total) - int(written), int(written))
        for dataset_id, total, written in session.execute(of_passages)
    }
    return [
        DatasetSummary(
            id=dataset.id,
            name=dataset.name,
            source=dataset.source,
            licence=dataset.licence,
            pairs=pairs.get(dataset.id, 0),
            passages=passages.get(dataset.id, (0, 0))[0],
            generated=passages.get(dataset.id, (0, 0))[1],
            created_at=dataset.created_at,
            archived_at=dataset.archived_at,
        )
        for dataset in session.scalars(query)
    ]


def dataset_names(session: Session) -> list[str]:
    """The names of the datasets that are not archived, without counting what they hold."""
    query = select(Dataset.name).where(Dataset.archived_at.is_(None))
    return list(session.scalars(query.order_by(Dataset.name)))


def get_or_create_dataset(
    session: Session, name: str, *, source: str = "", licence: str = ""
) -> Dataset:
    """The dataset of that name, created if missing; an empty source or licence is filled in.

    Raises Refused if it is stored with another source or licence, or archived. Does not commit.
    """
    dataset = find_dataset(session, name)
    if dataset is None:
        dataset = Dataset(name=name, source=source, licence=licence)
        session.add(dataset)
        session.flush()
        return dataset
    require_active(session, dataset)
    require_same_origin(dataset, source=source, licence=licence)
    dataset.source, dataset.licence = dataset.source or source, dataset.licence or licence
    return dataset


def require_same_origin(dataset: Dataset, *, source: str, licence: str) -> None:
    """Raise Refused if the dataset is stored with another source or licence."""
    for word, known, given in (
        ("source", dataset.source, source),
        ("licence", dataset.licence, licence),
    ):
        if known and given and known != given:
            raise Refused(
                f"dataset {dataset.name!r} has the {word} {known!r}, not {given!r}",
                f"import under another name, or omit `{word}=`",
                code="dataset_origin_differs",
            )


def content_sha256(content: Mapping[str, Any]) -> str:
    """The identity of a row's content: sha256 of its canonical JSON.

    1.0 and 1 hash alike: PostgreSQL's JSONB returns 1e20 as an integer.
    """
    return text_sha256(json.dumps(_whole_numbers(content), sort_keys=True, ensure_ascii=False))


@dataclass(frozen=True)
class StoredPassage:
    """The stored facts of a passage that an import compares."""

    id: int
    sha256: str
    origin: str
    content: str


def stored_passages(
    session: Session, dataset_id: int, external_ids: Sequence[str]
) -> dict[str, StoredPassage]:
    """Those of the passages that the dataset already has, by external id."""
    query = select(
        Passage.external_id,
        Passage.id,
        Passage.sha256,
        Passage.origin,
        Passage.title,
        Passage.meta,
    ).where(Passage.dataset_id == dataset_id)
    return {
        external_id: StoredPassage(
            id=key,
            sha256=sha256,
            origin=origin,
            content=passage_content(sha256=sha256, title=title, meta=meta),
        )
        for ids in _portions(external_ids)
        for external_id, key, sha256, origin, title, meta in session.execute(
            query.where(Passage.external_id.in_(ids))
        )
    }


def stored_pairs(session: Session, dataset_id: int, external_ids: Sequence[str]) -> dict[str, str]:
    """The content hash of those pairs that the dataset already has, by external id."""
    query = (
        select(Pair.external_id, Pair.query, Passage.external_id, Pair.meta)
        .join(Passage, Passage.id == Pair.passage_id)
        .where(Pair.dataset_id == dataset_id)
    )
    return {
        external_id: pair_content(query=text, passage_external_id=passage_id, meta=meta)
        for ids in _portions(external_ids)
        for external_id, text, passage_id, meta in session.execute(
            query.where(Pair.external_id.in_(ids))
        )
    }


def passage_content(*, sha256: str, title: str, meta: Mapping[str, Any]) -> str:
    """The content hash of a passage's text, title and metadata."""
    return content_sha256({"text": sha256, "title": title, "meta": meta})


def pair_content(*, query: str, passage_external_id: str, meta: Mapping[str, Any]) -> str:
    """The content hash of a pair's query, passage id and metadata."""
    return content_sha256({"query": query, "passage": passage_external_id, "meta": meta})


def add_passages(session: Session, rows: Sequence[Row]) -> None:
    """Insert passages in bulk; an id that the dataset already has is left unchanged.

    Does not commit.
    """
    _insert(session, Passage.__table__, rows)


def add_pairs(session: Session, rows: Sequence[Row]) -> None:
    """Insert pairs in bulk; an id that the dataset already has is left unchanged.

    Does not commit.
    """
    _insert(session, Pair.__table__, rows)


def add_negatives(session: Session, dataset_id: int, given: Mapping[str, Sequence[str]]) -> int:
    """Give pairs further negatives, passages of the dataset, all by their external ids; those that
    a pair has stay. Returns how many are new. Does not commit."""
    given = {pair: passages for pair, passages in given.items() if passages}
    passages = stored_passages(session, dataset_id, [one for of in given.values() for one in of])
    number = 0
    for ids in _portions(list(given)):
        query = select(Pair.external_id, Pair.id).where(Pair.dataset_id == dataset_id)
        pairs = dict(session.execute(query.where(Pair.external_id.in_(ids))).all())
        held = select(PairNegative.pair_id, PairNegative.passage_id).where(
            PairNegative.pair_id.in_(pairs.values())
        )
        known = {(pair, passage) for pair, passage in session.execute(held)}
        wanted = dict.fromkeys((pairs[one], passages[of].id) for one in ids for of in given[one])
        new = [
            {"pair_id": pair, "passage_id": of} for pair, of in wanted if (pair, of) not in known
        ]
        _insert(session, PairNegative.__table__, new)
        number += len(new)
    return number


def mark_as_seed(session: Session, passage_ids: Sequence[int]) -> None:
    """Turn pool passages that a pair now refers to into seed passages. Does not commit."""
    for ids in _portions(passage_ids):
        session.execute(
            update(Passage)
            .where(Passage.id.in_(ids), Passage.origin == "pool")
            .values(origin="seed")
        )


def _whole_numbers(value: Any) -> Any:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, Mapping):
        return {key: _whole_numbers(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_whole_numbers(inner) for inner in value]
    return value


def _insert(session: Session, table: Any, rows: Sequence[Row]) -> None:
    if not rows:
        return
    assert isinstance(table, Table)
    dialect = sqlite if session.get_bind().dialect.name == "sqlite" else postgresql
    session.execute(dialect.insert(table).on_conflict_do_nothing(), list(rows))


def _portions(keys: Sequence[Any]) -> Iterator[list[Any]]:
    unique = list(dict.fromkeys(keys))
    for start in range(0, len(unique), IDS_PER_QUERY):
        yield unique[start : start + IDS_PER_QUERY]
