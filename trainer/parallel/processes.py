"""Training in several processes: joining them, agreeing on what happens, sharing a batch's texts.

Every process holds the whole batch's rows and embeds its share of the different texts; embeddings
are gathered and each process computes the whole loss. So the batch, its duplicates and its
negatives are those of one process, however many share the work (`rows_per_batch` is of all
together), and the gradients of DDP are those of one process too.

The first process (rank 0) is the job: it reads the store, scores, saves, and decides when to stop.
The others (`python -m trainer.launch.follow`) are started by it (`--nproc`), by torchrun or by Ray
Train (`trainer.launch.ray_workers`), and receive everything else from the first.
"""

import ctypes
import datetime
import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeVar

from db.errors import BadInput, InfError
from db.modules import run_module

if TYPE_CHECKING:
    from torch import Tensor

log = logging.getLogger("inf.train")
Value = TypeVar("Value")
# The first process scores held-out groups while the others wait at a collective call.
PATIENCE = datetime.timedelta(hours=12)
END_SECONDS = 30.0
WATCH_SECONDS = 1.0
FIRST = "TRAINING_STARTED_BY"  # the id of the process that started this one


@dataclass(frozen=True)
class Processes:
    """This process's place among those that train together, and the others that it started."""

    rank: int = 0
    count: int = 1
    started: tuple[int, ...] = ()

    @property
    def is_first(self) -> bool:
        return self.rank == 0

    def agree(self, value: Value) -> Value:
        """The first process's value, in all of them. Every process must call it."""
        if self.count == 1:
            return value
        import torch.distributed as dist

        box = [value]
        dist.broadcast_object_list(box, src=0)
        return box[0]

    def total(self, count: int) -> int:
        """The sum of every process's count, in all of them. Every process must call it."""
        if self.count == 1:
            return count
        import torch
        import torch.distributed as dist

        summed = torch.tensor(count)
        dist.all_reduce(summed)
        return int(summed)


ALONE = Processes()


def count_from_environment(environment: Mapping[str, str]) -> int:
    """How many processes torchrun started; 1 without it. Raises BadInput for a broken setting."""
    given = environment.get("WORLD_SIZE", "1")
    if not given.isdigit() or int(given) < 1:
        raise BadInput(
            f"WORLD_SIZE={given!r} is not a number of processes",
            "start with torchrun",
            code="world_size_invalid",
        )
    return int(given) if "RANK" in environment and "MASTER_ADDR" in environment else 1


@contextmanager
def joined(wanted: int) -> Iterator[Processes]:
    """The processes of this training: torchrun's, or `wanted` on this machine, or this one alone.

    What it starts, it ends. Raises InfError where another process ended before its time.
    """
    count = count_from_environment(os.environ)
    if count == 1 and wanted <= 1:
        yield ALONE
        return
    others: list[subprocess.Popen[bytes]] = []
    if count == 1:
        count = wanted
        others = start_others(count)
    try:
        with ended_by_a_dead_process(others), joined_group(count) as processes:
            yield replace(processes, started=tuple(other.pid for other in others))
        with suppress(subprocess.TimeoutExpired):
            for other in others:
                other.wait(END_SECONDS)
    # A connection that another process no longer answers, or this process was at other work.
    except (RuntimeError, ProcessEnded) as error:
        for number, other in enumerate(others, start=1):
            with suppress(subprocess.TimeoutExpired):
                other.wait(END_SECONDS / count)
            if other.returncode:
                raise InfError(
                    _ended(number, count, other.returncode), code="process_ended"
                ) from error
        raise
    finally:
        for other in others:
            if other.poll() is None:
                other.kill()
                other.wait()


class ProcessEnded(Exception):
    """Raised in the first process's main thread, wherever it is, when another process died."""


@contextmanager
def ended_by_a_dead_process(others: Sequence["subprocess.Popen[bytes]"]) -> Iterator[None]:
    """Within it a death among the others ends the calling thread, also while it scores for hours.

    gloo reports a death where a process waits for the dead one, NCCL not before `PATIENCE`. Where
    the exception does not arrive (the thread waits inside NCCL) this process ends itself.
    """
    over, thread = threading.Event(), threading.get_ident()

    def watch() -> None:
        while not over.wait(WATCH_SECONDS):
            if not any(other.poll() for other in others):
                continue
            if over.wait(WATCH_SECONDS):  # gloo reported it
                return
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread), ctypes.py_object(ProcessEnded)
            )
            if not over.wait(END_SECONDS):
                log.error("another process died; this one waits for it and ends too")
                for other in others:
                    other.kill()
                os._exit(1)
            return

    watcher = threading.Thread(target=watch, daemon=True, name="watch-processes")
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


@contextmanager
def joined_group(count: int) -> Iterator[Processes]:
    """Connect to the others (addresses from the environment), on this place's GPU if it has one.

    Where Ray Train has introduced them to one another, that is kept.
    """
    import torch
    import torch.distributed as dist

    if dist.is_initialized():
        yield Processes(dist.get_rank(), dist.get_world_size())
        return
    if torch.cuda.is_available():
        # Also where there are fewer GPUs than processes: accelerate, sentence-transformers and DDP
        # each take cuda:LOCAL_RANK.
        place = int(os.environ.get("LOCAL_RANK", "0")) % torch.cuda.device_count()
        os.environ["LOCAL_RANK"] = str(place)
        torch.cuda.set_device(place)
    backend = "cuda:nccl,cpu:gloo" if _one_gpu_each() else "gloo"
    dist.init_process_group(backend, timeout=PATIENCE)
    try:
        yield Processes(dist.get_rank(), count)
    finally:
        dist.destroy_process_group()


def start_others(count: int) -> list[subprocess.Popen[bytes]]:
    """Start the other processes on this machine; this one becomes the first of them."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    threads = max(1, (os.cpu_count() or 1) // count)
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        WORLD_SIZE=str(count),
        LOCAL_WORLD_SIZE=str(count),
        RANK="0",
        LOCAL_RANK="0",
    )
    os.environ.setdefault("OMP_NUM_THREADS", str(threads))
    log.info("%d processes train together, each with about %d threads", count, threads)
    return [
        subprocess.Popen(
            [sys.executable, *run_module("trainer.launch.follow")],
            env=os.environ | {"RANK": str(rank), "LOCAL_RANK": str(rank), FIRST: str(os.getpid())},
            stdin=subprocess.DEVNULL,
        )
        for rank in range(1, count)
    ]


def end_with_the_first() -> None:
    """Let this process end when the one that started it has died, whatever it waits for."""
    first = os.environ.get(FIRST)

    def watch() -> None:
        while os.getppid() == int(first or 0):
            time.sleep(WATCH_SECONDS)
        log.error("the first process died; this one ends too")
        logging.shutdown()
        os._exit(1)

    if first:  # torchrun and Ray see to theirs
        threading.Thread(target=watch, daemon=True, name="watch-first").start()


def warn_of_missing_gpu() -> None:
    """Log that this process was assigned a GPU that PyTorch does not see; it trains on the CPU."""
    from db.jobs.resources import missing_gpu  # loads the store

    if gpu := missing_gpu():
        log.warning(
            "GPU %s was given to this process, but PyTorch sees none: training on the CPU", gpu
        )


def share_of(texts: Sequence[str], processes: Processes) -> list[str]:
    """This process's texts: every `count`-th, at least one (a model must be called everywhere)."""
    return list(texts[processes.rank :: processes.count]) or list(texts[:1])


def max_share(texts: int, processes: Processes) -> int:
    """How many texts the largest share has."""
    return -(-texts // processes.count)


def gathered_place(place: "Tensor", count: int, rows: int) -> "Tensor":
    """Where text `place` stands after gathering shares that are filled up to `rows` rows each."""
    return (place % count) * rows + place // count


def _one_gpu_each() -> bool:
    import torch

    wanted = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    return torch.cuda.is_available() and torch.cuda.device_count() >= wanted


def _ended(number: int, count: int, status: int | None) -> str:
    return (
        f"process {number + 1} of {count} ended early (status {status}): the reason is above "
        "in the job's log"
    )
