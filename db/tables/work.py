"""Jobs and the numbers they stream while they run."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index
from sqlalchemy.orm import Mapped, mapped_column

from db.tables.base import Base, HomePath, HomePaths, created, key


class Job(Base, kw_only=True):
    """Any long work, with progress, heartbeat and log.

    `slot` is the device slot of its machine (NULL: in the foreground of a command); `pid` one of
    the process ids of `space` (`db.machine.process_space`; NULL: of an earlier version);
    `resources` the last reported use of each of its processes, by rank; `launcher` is `local`, or
    the address of a Ray cluster; `home` the INF_HOME that has its files (NULL: of an earlier
    version); `shown` are texts from its work (of a batch, of the probe items of a training), and
    how often it died. Of one that did not end well `error` is what happened, `error_code` and
    `remedy` are those of its InfError (NULL: of an earlier version, whose `error` has the remedy
    within).
    """

    __tablename__ = "job"
    id: Mapped[int] = key()
    kind: Mapped[str]
    config: Mapped[dict[str, Any]] = mapped_column(HomePaths)
    status: Mapped[str] = mapped_column(default="queued")
    done: Mapped[int] = mapped_column(default=0)
    total: Mapped[int | None] = mapped_column(default=None)
    message: Mapped[str] = mapped_column(default="")
    result: Mapped[dict[str, Any] | None] = mapped_column(HomePaths, default=None)
    error: Mapped[str | None] = mapped_column(default=None)
    error_code: Mapped[str | None] = mapped_column(default=None)
    remedy: Mapped[str | None] = mapped_column(default=None)
    log_path: Mapped[str | None] = mapped_column(HomePath, default=None)
    home: Mapped[str | None] = mapped_column(default=None)
    host: Mapped[str | None] = mapped_column(default=None)
    pid: Mapped[int | None] = mapped_column(default=None)
    space: Mapped[str | None] = mapped_column(default=None)
    slot: Mapped[str | None] = mapped_column(default=None)
    launcher: Mapped[str] = mapped_column(default="local")
    resources: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    shown: Mapped[dict[str, Any]] = mapped_column(default_factory=dict)
    attempt: Mapped[int] = mapped_column(default=0)
    stop_requested: Mapped[bool] = mapped_column(default=False)
    started_by: Mapped[str] = mapped_column(default="")
    created_at: Mapped[datetime] = created()
    started_at: Mapped[datetime | None] = mapped_column(default=None)
    heartbeat_at: Mapped[datetime | None] = mapped_column(default=None)
    finished_at: Mapped[datetime | None] = mapped_column(default=None)
    __table_args__ = (
        CheckConstraint(
            "kind IN ('curate', 'judge', 'embed', 'project', 'train', 'evaluate', 'export',"
            " 'push', 'backup', 'import', 'pull', 'restore', 'study', 'mine')",
            name="kind",
        ),
        CheckConstraint(
            "status IN ('queued', 'running', 'done', 'failed', 'cancelled', 'lost')",
            name="status",
        ),
        Index("ix_job_status", "status", "id"),
    )


class MetricPoint(Base, kw_only=True):
    """One metric of a job at one step: a point of a loss curve."""

    __tablename__ = "metric_point"
    job_id: Mapped[int] = mapped_column(ForeignKey("job.id", ondelete="CASCADE"), primary_key=True)
    name: Mapped[str] = mapped_column(primary_key=True)
    step: Mapped[int] = mapped_column(primary_key=True)
    value: Mapped[float]
    created_at: Mapped[datetime] = created()
