"""Training on the nodes of a Ray cluster, through Ray Train (extra `ray`).

The job's own process starts the workers, waits, and hands on how they ended. Each worker is one of
the processes of `trainer.processes`; Ray Train has introduced them to one another (gloo, with NCCL
where each has a GPU). The first is the job: it reads the store, scores, saves and stops on request;
the others follow it.

What would surprise: Ray Train's own retries are off. A worker that goes away, with its node for
instance, ends them all and the job is lost; the supervisor of the cluster queues it again, and the
next attempt goes on from the newest state. So nobody writes under the number of his successor.
"""

import logging
import os
import shutil
from typing import Any

from db.errors import BadInput, InfError
from db.job_runner import JobHandle, Lost, log_without_secrets, run_beside_heartbeat
from db.settings import home
from db.store import open_store
from trainer.processes import PATIENCE

log = logging.getLogger("inf.train")


def train_on_cluster(handle: JobHandle, workers: int) -> dict[str, Any]:
    """Train with so many workers, each with the processors and GPUs that a process may ask for.

    Returns what the first returned. Raises its InfError, or Lost where a worker went away.
    """
    try:
        import ray
        from ray.exceptions import RayError
        from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
        from ray.train.torch import TorchConfig, TorchTrainer
    except ImportError as error:
        raise BadInput('Ray is not installed: pip install "inf-studio[ray]"') from error
    if not os.environ.get("RAY_ADDRESS"):
        raise BadInput(f"{workers} workers are for a Ray cluster: give --launcher ray, or --nproc")
    handle.report(0, None, f"waits for {workers} free places in the cluster")
    handle.works_elsewhere = True
    each = {"CPU": _asked("INF_RAY_CPUS", 1.0), "GPU": _asked("INF_RAY_GPUS", 0.0)}
    notes = home() / "training" / f"ray-{handle.id}-{handle.attempt}"
    trainer = TorchTrainer(
        work,
        train_loop_config={"job_id": handle.id, "attempt": handle.attempt},
        torch_config=TorchConfig(
            backend="cuda:nccl,cpu:gloo" if each["GPU"] >= 1 else "gloo",
            timeout_s=int(PATIENCE.total_seconds()),
        ),
        scaling_config=ScalingConfig(
            num_workers=workers, use_gpu=each["GPU"] > 0, resources_per_worker=each
        ),
        run_config=RunConfig(
            name="notes",
            storage_path=str(notes),
            failure_config=FailureConfig(max_failures=0, max_preemption_failures=0),
        ),
    )
    try:
        done: dict[str, Any] = trainer.fit().return_value
    except (TrainingFailedError, RayError) as error:
        raise reason(error) from error
    finally:
        shutil.rmtree(notes, ignore_errors=True)
        ray.shutdown()
    return done


def work(given: dict[str, int]) -> dict[str, Any] | None:
    """What each worker does; the first returns the result of the job."""
    import ray
    import torch.distributed as dist

    from trainer.follow import follow_the_first
    from trainer.train_job import train_here

    log_without_secrets()
    node = ray.get_runtime_context().get_node_id()[:8]
    try:
        if dist.get_rank() > 0:
            follow_the_first(node)
            return None
        handle = JobHandle(open_store(), given["job_id"], given["attempt"])
        handle.meter.node = node
        handle.note_place()
        return run_beside_heartbeat(handle, train_here)
    except RuntimeError as error:
        if is_broken_connection(error):
            count = dist.get_world_size()
            raise Lost(f"one of the {count} workers no longer answers: {error}") from error
        raise


def is_broken_connection(error: RuntimeError) -> bool:
    """Whether another process went away: gloo says so in words, NCCL in its type."""
    from torch.distributed import DistError

    return isinstance(error, DistError) or "gloo" in str(error).lower()


def reason(error: Exception) -> Exception:
    """Why the workers ended: what one of them met, or that one is gone."""
    met = list(getattr(error, "worker_failures", {}).values())
    for each in met:
        if isinstance(each, InfError) and not isinstance(each, Lost):
            return each
    from ray.exceptions import RayError
    from ray.train.v2._internal.exceptions import RayTrainError

    is_gone = [isinstance(each, Lost | RayError | RayTrainError) for each in met]
    if not met or any(is_gone):
        return Lost(f"a worker of the training went away: {error}")
    return error


def _asked(name: str, default: float) -> float:
    """What the launcher has told this job: it has checked that it is a number."""
    return float(os.environ.get(name) or default)
