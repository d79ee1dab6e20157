"""Datasets, their passages and their pairs."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, created, key


class Dataset(Base, kw_only=True):
    """A named collection of passages and pairs, with source and licence.

    `archived_at`: since when lists hide it and nothing new is made from it (`db.archive`).
    """

    __tablename__ = "dataset"
    id: Mapped[int] = key()
    name: Mapped[str] = mapped_column(unique=True)
    source: Mapped[str] = mapped_column(default="")
    licence: Mapped[str] = mapped_column(default="")
    archived_at: Mapped[datetime | None] = mapped_column(default=None)
    created_at: Mapped[datetime] = created()


class Passage(Base, kw_only=True):
    """A text with its sha256 (of the UTF-8 text); origin `seed`, `pool` or `generated`."""

    __tablename__ = "passage"
    id: Mapped[int] = key()
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.id", ondelete="CASCADE"))
    external_id: Mapped[str]
    title: Mapped[str] = mapped_column(default="")
    text: Mapped[str]
    sha256: Mapped[str]
    origin: Mapped[str]
    meta: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    __table_args__ = (
        UniqueConstraint("dataset_id", "external_id"),
        CheckConstraint("origin IN ('seed', 'pool', 'generated')", name="origin"),
        CheckConstraint("text <> ''", name="text_not_empty"),
        Index("ix_passage_dataset_id_origin", "dataset_id", "origin"),
        Index("ix_passage_sha256", "sha256"),
    )


class PairNegative(Base, kw_only=True):
    """A passage that was given with a pair as one that is wrong for it; in the order of `id`."""

    __tablename__ = "pair_negative"
    id: Mapped[int] = key()
    pair_id: Mapped[int] = mapped_column(ForeignKey("pair.id", ondelete="CASCADE"))
    passage_id: Mapped[int] = mapped_column(ForeignKey("passage.id"))
    __table_args__ = (
        UniqueConstraint("pair_id", "passage_id"),
        Index("ix_pair_negative_passage_id", "passage_id"),
    )


class Pair(Base, kw_only=True):
    """A real query Q+ and the passage P+ that answers it."""

    __tablename__ = "pair"
    id: Mapped[int] = key()
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.id", ondelete="CASCADE"))
    external_id: Mapped[str]
    query: Mapped[str]
    passage_id: Mapped[int] = mapped_column(ForeignKey("passage.id"))
    meta: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    __table_args__ = (
        UniqueConstraint("dataset_id", "external_id"),
        CheckConstraint("query <> ''", name="query_not_empty"),
        Index("ix_pair_passage_id", "passage_id"),
    )
