"""Results: releases, checkpoints, evaluations, analyses and cached vectors."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, UniqueConstraint
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, HomePath, created, key


class Release(Base, kw_only=True):
    """An immutable, exported set of groups, with its dataset card."""

    __tablename__ = "release"
    id: Mapped[int] = key()
    dataset_id: Mapped[int] = mapped_column(ForeignKey("dataset.id"))
    name: Mapped[str]
    content_sha256: Mapped[str]
    path: Mapped[str] = mapped_column(HomePath)
    format: Mapped[str]
    filter: Mapped[dict[str, Any]]
    counts: Mapped[dict[str, Any]]
    card: Mapped[str]
    offline: Mapped[bool]
    created_by: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = created()
    __table_args__ = (Index("ix_release_dataset_id", "dataset_id"),)


class ReleaseGroup(Base, kw_only=True):
    """A group in a release: its split, and the sha256 of its row as exported."""

    __tablename__ = "release_group"
    release_id: Mapped[int] = mapped_column(
        ForeignKey("release.id", ondelete="CASCADE"), primary_key=True
    )
    group_id: Mapped[int] = mapped_column(ForeignKey("group.id"), primary_key=True)
    split: Mapped[str]
    row_sha256: Mapped[str] = mapped_column(default="")
    __table_args__ = (Index("ix_release_group_group_id", "group_id"),)


class ReleaseRun(Base, kw_only=True):
    """A run with groups in a release; most releases have one."""

    __tablename__ = "release_run"
    release_id: Mapped[int] = mapped_column(
        ForeignKey("release.id", ondelete="CASCADE"), primary_key=True
    )
    run_id: Mapped[int] = mapped_column(ForeignKey("run.id"), primary_key=True)
    __table_args__ = (Index("ix_release_run_run_id", "run_id"),)


class Checkpoint(Base, kw_only=True):
    """A trained model on disk, with its release and settings."""

    __tablename__ = "checkpoint"
    id: Mapped[int] = key()
    release_id: Mapped[int | None] = mapped_column(ForeignKey("release.id"), default=None)
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id"), default=None)
    path: Mapped[str] = mapped_column(HomePath)
    base_model: Mapped[str]
    config: Mapped[dict[str, Any]]
    summary: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    created_at: Mapped[datetime] = created()


class Evaluation(Base, kw_only=True):
    """Scores of one model on one benchmark; `per_query` allows paired comparisons.

    `questions`: {query id: {cluster, scored}}: which queries belong together, and which count in
    the means. Empty in evaluations made before migration 0002.
    `record`: content hashes of the data, pool, depth, model, template, prefixes, first tokens and
    library versions (`trainer.records.record`). Empty in evaluations made before migration 0005:
    these are compared with nothing.
    """

    __tablename__ = "evaluation"
    id: Mapped[int] = key()
    checkpoint_id: Mapped[int | None] = mapped_column(ForeignKey("checkpoint.id"), default=None)
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id"), default=None)
    model: Mapped[str] = mapped_column(HomePath)
    benchmark: Mapped[str]
    metrics: Mapped[dict[str, Any]]
    per_query: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    questions: Mapped[dict[str, Any]] = mapped_column(default_factory=dict, server_default="{}")
    record: Mapped[dict[str, Any]] = mapped_column(default_factory=dict, server_default="{}")
    created_at: Mapped[datetime] = created()
    __table_args__ = (Index("ix_evaluation_benchmark", "benchmark"),)


class Analysis(Base, kw_only=True):
    """A stored result: numbers as JSON, points as an Arrow file in `payload`.

    `inputs_sha256` identifies the data: the same inputs are not computed twice.
    """

    __tablename__ = "analysis"
    id: Mapped[int] = key()
    kind: Mapped[str]
    inputs_sha256: Mapped[str]
    config: Mapped[dict[str, Any]]
    result: Mapped[dict[str, Any]]
    payload: Mapped[bytes | None] = mapped_column(default=None)
    dataset_id: Mapped[int | None] = mapped_column(
        ForeignKey("dataset.id", ondelete="CASCADE"), default=None
    )
    job_id: Mapped[int | None] = mapped_column(ForeignKey("job.id"), default=None)
    created_at: Mapped[datetime] = created()
    __table_args__ = (
        UniqueConstraint("kind", "inputs_sha256"),
        CheckConstraint(
            "kind IN ('diversity', 'coverage', 'agreement', 'near_duplicates', 'contamination')",
            name="kind",
        ),
    )


class Embedding(Base, kw_only=True):
    """A cached vector: float32, little-endian, by (model, sha256 of the text)."""

    __tablename__ = "embedding"
    model: Mapped[str] = mapped_column(primary_key=True)
    text_sha256: Mapped[str] = mapped_column(primary_key=True)
    vector: Mapped[bytes]
