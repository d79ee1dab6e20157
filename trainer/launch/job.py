"""The job `train`: in this process, or by workers on the nodes of a Ray cluster."""

from typing import Any

from pydantic import ConfigDict

from db.jobs.runner import JobHandle
from db.rows import Row, SparseRow
from trainer.launch.request import TrainStart


class Trained(SparseRow):
    """A checkpoint, how it was trained, and what it scores on the held-out groups and the guard.

    `best_step`: the step whose weights it has; `dtypes` and `precision`: what was computed in. A
    folder that an earlier version completed may remember more.
    """

    model_config = ConfigDict(extra="allow")

    checkpoint_id: int
    path: str
    offline: bool
    steps: int
    epochs: float | None = None
    seconds: float
    best_step: int | None
    loss_first: float | None
    loss_last: float | None
    dtypes: dict[str, Any]
    precision: dict[str, Any]
    held_out: dict[str, Any]
    natural_probe: dict[str, Any] | None = None
    scoring_seconds: dict[str, float]
    guard: dict[str, Any] | None = None


class TrainingEstimated(Row):
    """What a training would take, measured on a few steps."""

    estimate: dict[str, Any]


def train(handle: JobHandle) -> Trained | TrainingEstimated:
    """Train as the job's config says, a `TrainStart`. Raises BadInput for an unusable one."""
    wanted = TrainStart.read(handle.config)
    if wanted.workers > 1:
        from trainer.launch.ray_workers import train_on_cluster

        found = train_on_cluster(handle, wanted.workers)
    else:
        from trainer.launch.here import train as train_here

        found = train_here(handle)
    return (TrainingEstimated if wanted.estimate else Trained).model_validate(found)
