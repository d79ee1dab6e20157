"""The job `train`: in this process, or by workers on the nodes of a Ray cluster."""

from typing import Any

from db.jobs.runner import JobHandle


def train(handle: JobHandle) -> dict[str, Any]:
    """Train as the config says; `workers` (optional): how many on the nodes of a Ray cluster."""
    if (workers := int(handle.config.get("workers") or 1)) > 1:
        from trainer.launch.ray_workers import train_on_cluster

        return train_on_cluster(handle, workers)
    from trainer.launch.here import train as train_here

    return train_here(handle)
