"""Resource use of a job's processes: measured by each for itself, kept in the job's row by rank.

A job of one process has one part, `{"0": …}`; a distributed training has one for each process,
wherever it runs. Note: the CPU share is over the time since the previous reading (since process
start at the first one), and the GPU load is the driver's figure for all users of that GPU.
"""

import logging
import os
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import psutil

from db.errors import Refused
from db.jobs import jobs
from db.jobs.gpus import query_gpus
from db.store.scope import unscoped
from db.store.store import open_store

log = logging.getLogger("inf.job")
Part = Mapping[str, Any]


class Meter:
    """Measures this process and its children, at most once a heartbeat.

    `node` names its place in a cluster; `left_out` are children that report for themselves.
    """

    node = ""
    left_out: Sequence[int] = ()

    def __init__(self) -> None:
        self._read_at = 0.0
        self._seconds: dict[int, float] = {}  # CPU seconds by process id
        self._last: dict[str, Any] = {}
        self._one_at_a_time = threading.Lock()  # the heartbeat thread and the work both read

    def read(self) -> dict[str, Any]:
        """CPU cores in use, CPU seconds, MB of memory; name, MB and load of the GPU.

        The GPU is queried only if this process has loaded PyTorch itself.
        """
        with self._one_at_a_time:
            now = time.time()
            if not self._last or now - self._read_at >= jobs.HEARTBEAT_SECONDS:
                self._last = self._measured(now)
            return self._last

    def _measured(self, now: float) -> dict[str, Any]:
        me = psutil.Process()
        since = self._read_at or me.create_time()
        seconds: dict[int, float] = {}
        megabytes = 0.0
        for process in self._counted(me):
            try:
                times = process.cpu_times()
                megabytes += process.memory_info().rss / 1e6
            except psutil.Error:  # it has ended
                continue
            seconds[process.pid] = times.user + times.system
        newly = sum(spent - self._seconds.get(pid, 0.0) for pid, spent in seconds.items())
        self._read_at, self._seconds = now, seconds
        return {
            "host": socket.gethostname(),
            "node": self.node,
            "pid": me.pid,
            "cpus": round(max(0.0, newly) / max(0.1, now - since), 2),
            "cpu_seconds": round(sum(seconds.values()), 1),
            "memory_mb": round(megabytes),
            **_gpu_used(),
        }

    def _counted(self, me: psutil.Process) -> list[psutil.Process]:
        counted = [me]
        for child in me.children():
            if child.pid not in self.left_out:
                try:
                    counted += [child, *child.children(recursive=True)]
                except psutil.Error:  # it has ended
                    continue
        return counted


def _gpu_used() -> dict[str, Any]:
    """Use of the GPU this process computes on; empty without one."""
    torch = sys.modules.get("torch")
    cuda = getattr(torch, "cuda", None)
    if cuda is not None and (missing := missing_gpu()):
        return {"gpu_missing": missing}
    if cuda is None or not cuda.is_available() or not cuda.is_initialized():
        return {}
    uuid = f"GPU-{cuda.get_device_properties(cuda.current_device()).uuid}"
    used = {
        "gpu": cuda.get_device_name(),
        "gpu_id": uuid,
        "gpu_mb": round(cuda.memory_reserved() / 1e6),
    }
    busy = query_gpus("utilization.gpu", uuid)  # a MIG slice reports none
    return used | {"gpu_percent": busy[0]} if busy else used


def missing_gpu() -> str:
    """The GPU this process was given (CUDA_VISIBLE_DEVICES) where PyTorch sees none; "" elsewhere.

    A cluster node may advertise GPUs that it does not have, or have a CPU-only PyTorch.
    """
    given = os.environ.get("CUDA_VISIBLE_DEVICES", "").strip()
    if given in ("", "-1"):
        return ""
    import torch

    return "" if torch.cuda.is_available() else given


@contextmanager
def report_resources(job_id: int, attempt: int, rank: int, node: str) -> Iterator[None]:
    """Store what this process of a job uses, at every heartbeat until the end of the block.

    Only if the environment names the store: a process on a machine without it reports nothing. A
    store that cannot be reached for a moment does not stop the work.
    """
    over = threading.Event()
    reporter = threading.Thread(
        target=_report_until, args=(over, job_id, attempt, rank, node), daemon=True
    )
    if "INF_DATABASE_URL" in os.environ:
        reporter.start()
    try:
        yield
    finally:
        over.set()
        if reporter.ident is not None:
            reporter.join()


def _report_until(over: threading.Event, job_id: int, attempt: int, rank: int, node: str) -> None:
    store, meter = open_store(), Meter()
    meter.node = node
    while True:
        try:
            with unscoped(), store.write() as session:
                jobs.note_resources(session, job_id, attempt, rank, meter.read())
                session.commit()
        except Refused:
            return  # the job has ended, or another attempt has taken over
        except Exception:  # the store may be unreachable for a moment; the next beat tries again
            log.exception("process %d could not report its resource use", rank)
        if over.wait(jobs.HEARTBEAT_SECONDS):
            return


def parts_of(resources: Mapping[str, Any]) -> list[Part]:
    """The last reported use of each process of a job, by rank."""
    if "memory_mb" in resources:  # a job from before each process reported for itself
        return [resources]
    return [resources[rank] for rank in sorted(resources, key=int)]


def missing_gpu_warning(parts: Sequence[Part]) -> str:
    """A warning that processes compute without the GPU they were given; "" if none does."""
    blind = [str(number + 1) for number, part in enumerate(parts) if "gpu_missing" in part]
    if not blind:
        return ""
    which_ones = f"Process {', '.join(blind)} of {len(parts)}" if len(parts) > 1 else "The job"
    return (
        f"{which_ones} was given a GPU that PyTorch does not see there: the work is done by the "
        "CPU, slowly. Is there a driver, and a PyTorch build for CUDA? Without GPUs, offer none "
        "(`ray start --num-gpus=0`) or request none (INF_RAY_GPUS=0)."
    )


def sum_of(parts: Sequence[Part]) -> dict[str, Any]:
    """All parts together: sums, and how many processes, machines and different GPUs there are.

    `cpus`, `gpus`, `gpu_mb` and `gpu_percent` are omitted if no part has them; the load is the
    mean over the different GPUs. Empty without parts.
    """
    if not parts:
        return {}
    found: dict[str, Any] = {
        "processes": len(parts),
        "nodes": len({(part.get("host"), part.get("node")) for part in parts}),
    }
    for name in ("cpus", "cpu_seconds", "memory_mb", "gpu_mb"):
        values = [part[name] for part in parts if name in part]
        if values:
            found[name] = round(sum(values), 2)
    gpus = {
        (part.get("host"), part.get("gpu_id")): part.get("gpu_percent")
        for part in parts
        if "gpu" in part
    }
    loads = [percent for percent in gpus.values() if percent is not None]
    if gpus:
        found["gpus"] = len(gpus)
    if loads:
        found["gpu_percent"] = round(sum(loads) / len(loads))
    return found
