"""The job `train`: in this process, or by workers on the nodes of a Ray cluster."""

from typing import Any

from db.jobs.runner import JobHandle
from trainer.launch.request import TrainStart


def train(handle: JobHandle) -> dict[str, Any]:
    """Train as the job's config says, a `TrainStart`. Raises BadInput for an unusable one."""
    wanted = TrainStart.read(handle.config)
    if wanted.workers > 1:
        from trainer.launch.ray_workers import train_on_cluster

        return train_on_cluster(handle, wanted.workers)
    from trainer.launch.here import train as train_here

    return train_here(handle)
