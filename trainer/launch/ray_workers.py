"""Training on the nodes of a Ray cluster, through Ray Train (extra `ray`).

The job's own process starts the workers, waits, and hands on how they ended. Each worker is one of
the processes of `trainer.parallel.processes`; Ray Train has introduced them to one another over
gloo, and where each has a GPU of its own they meet again with NCCL beside it. The first is the job:
it reads the store, scores, saves and stops on request; the others follow it.

A cluster believes a node that says it has GPUs. Where no worker sees the one it was given, all
compute on their CPUs and the job's log has a warning; where some do and some do not, it is
refused.

Note: Ray Train's own retries are off. A worker that goes away, with its node for
instance, ends them all and the job is lost; the supervisor of the cluster queues it again, and the
next attempt goes on from the newest state. So nobody writes under the number of his successor.
"""

import logging
import os
import shutil
import socket
from typing import Any

from db.errors import BadInput, InfError
from db.home import home
from db.jobs.runner import JobHandle, Lost, log_without_secrets, run_beside_heartbeat
from db.store.settings import owners_process
from db.store.store import open_store
from trainer.parallel.processes import PATIENCE

log = logging.getLogger("inf.train")
WORKER_LOST = "resume the job, where the cluster does not: it goes on from the newest state"


def train_on_cluster(handle: JobHandle, workers: int) -> dict[str, Any]:
    """Train with `workers` workers, each with the CPU cores and GPUs that a process may ask for.

    Returns what the first returned. Raises its InfError, or Lost where a worker went away.
    """
    try:
        import ray
        from ray.exceptions import RayError
        from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
        from ray.train.torch import TorchConfig, TorchTrainer
    except ImportError as error:
        raise BadInput(
            "Ray is not installed", 'pip install "inf-studio[ray]"', code="ray_missing"
        ) from error
    if not os.environ.get("RAY_ADDRESS"):
        raise BadInput(
            f"{workers} workers are for a Ray cluster",
            "give `launcher=ray`, or `nproc=`",
            code="workers_need_ray",
        )
    os.chdir(home())  # Ray puts the driver's current folder on every worker's import path
    handle.report(0, None, f"waits for {workers} free places in the cluster")
    handle.works_elsewhere = True
    each = {"CPU": _resource("INF_RAY_CPUS", 1.0), "GPU": _resource("INF_RAY_GPUS", 0.0)}
    notes = home() / "training" / f"ray-{handle.id}-{handle.attempt}"
    # ray.train's type hints are those of its first version, at run time it is the second.
    build: Any = TorchTrainer
    failures: Any = FailureConfig
    trainer = build(
        work,
        train_loop_config={
            **{"job_id": handle.id, "attempt": handle.attempt, "gpus": each["GPU"]},
        },
        torch_config=TorchConfig(backend="gloo", timeout_s=int(PATIENCE.total_seconds())),
        scaling_config=ScalingConfig(
            num_workers=workers, use_gpu=each["GPU"] > 0, resources_per_worker=each
        ),
        run_config=RunConfig(
            name="notes",
            storage_path=str(notes),
            failure_config=failures(max_failures=0, max_preemption_failures=0),
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


def work(given: dict[str, Any]) -> dict[str, Any] | None:
    """What each worker does; the first returns the result of the job."""
    import ray
    import torch
    import torch.distributed as dist

    from trainer.launch.follow import follow_the_first
    from trainer.launch.here import train as train_here

    log_without_secrets()
    owners_process(True)
    node = ray.get_runtime_context().get_node_id()[:8]
    seen: list[Any] = [None] * dist.get_world_size()
    dist.all_gather_object(seen, (node, torch.cuda.is_available()))
    if given["gpus"] and not every_worker_sees_its_gpu(seen):
        os.environ["ACCELERATE_TORCH_DEVICE"] = "cpu"  # Ray named the GPU that it gave
    elif given["gpus"] >= 1:
        meet_again("cuda:nccl,cpu:gloo", ray.util.get_node_ip_address())
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
            raise Lost(
                f"one of the {count} workers no longer answers: {error}",
                WORKER_LOST,
                code="worker_lost",
            ) from error
        raise


def every_worker_sees_its_gpu(seen: list[tuple[str, bool]]) -> bool:
    """Whether all (node, sees its GPU) do; False where none does. Raises BadInput for a mixture."""
    blind = sorted({node for node, sees in seen if not sees})
    if blind and any(sees for _, sees in seen):
        raise BadInput(
            f"the workers on node {', '.join(blind)} were given a GPU that PyTorch does not see "
            "there, the others see theirs",
            "install the driver and a PyTorch for CUDA on every node "
            "that offers GPUs, or train on CPUs alone (INF_RAY_GPUS=0)",
            code="worker_gpu_not_visible",
        )
    return not blind


def meet_again(backend: str, address: str) -> None:
    """Part, and meet again over another backend, where the first is. Every process must call it."""
    import torch.distributed as dist

    rank, count = dist.get_rank(), dist.get_world_size()
    with socket.socket() as free:
        free.bind(("", 0))
        place = [f"tcp://{address}:{free.getsockname()[1]}"]
    dist.broadcast_object_list(place, src=0)
    dist.destroy_process_group()
    dist.init_process_group(
        backend, init_method=place[0], rank=rank, world_size=count, timeout=PATIENCE
    )


def is_broken_connection(error: RuntimeError) -> bool:
    """Whether another process went away: gloo reports it in the message, NCCL in the type."""
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
        gone = f"a worker of the training went away: {error}"
        return Lost(gone, WORKER_LOST, code="worker_lost")
    return error


def _resource(name: str, default: float) -> float:
    """The launcher's value, which it has checked to be a number."""
    return float(os.environ.get(name) or default)
