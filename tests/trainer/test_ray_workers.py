"""How the workers of a cluster end: what one of them met, or that one is gone (no cluster here)."""

import os
import socket
import subprocess
import sys

import pytest
from ray.exceptions import ActorDiedError
from ray.train import ControllerError, TrainingFailedError, WorkerGroupError

from db.errors import BadInput
from db.jobs.runner import Cancelled, Lost
from trainer.launch.ray_workers import every_worker_sees_its_gpu, is_broken_connection, reason

MEET_AND_DIE = """
import os, torch, torch.distributed as dist
from trainer.launch.ray_workers import is_broken_connection
dist.init_process_group("gloo")
dist.barrier()
if dist.get_rank() == 1:
    os._exit(9)
try:
    while True:
        dist.all_reduce(torch.zeros(1000))
except RuntimeError as error:
    assert is_broken_connection(error), error
    os._exit(0)  # without taking the group apart, which aborts now and then
"""
MEET_AGAIN = """
import torch, torch.distributed as dist
from trainer.launch.ray_workers import meet_again
dist.init_process_group("gloo")
meet_again("cpu:gloo", "127.0.0.1")
summed = torch.tensor(dist.get_rank() + 1)
dist.all_reduce(summed)
assert (dist.get_world_size(), int(summed)) == (2, 3)
dist.barrier()
dist.destroy_process_group()
"""
BROKEN = RuntimeError("[gloo/transport/tcp/pair.cc:547] Connection closed by peer [10.0.0.7]:4711")


def start_two(program: str) -> list["subprocess.Popen[bytes]"]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        seen = os.environ | {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free.getsockname()[1])}
    seen |= {"WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    return [
        subprocess.Popen([sys.executable, "-c", program], env=seen | {"RANK": rank})
        for rank in "01"
    ]


@pytest.mark.long
def test_a_process_sees_that_another_has_died() -> None:
    first, second = start_two(MEET_AND_DIE)
    assert (second.wait(240), first.wait(240)) == (9, 0)


@pytest.mark.long
def test_processes_reconnect_over_another_backend() -> None:
    assert [process.wait(240) for process in start_two(MEET_AGAIN)] == [0, 0]


def test_workers_that_see_their_gpus_and_workers_that_do_not_are_not_mixed() -> None:
    assert every_worker_sees_its_gpu([("a", True), ("b", True)])
    assert not every_worker_sees_its_gpu([("a", False), ("b", False)])
    with pytest.raises(BadInput, match="workers on node b, c were given a GPU that PyTorch does"):
        every_worker_sees_its_gpu([("a", True), ("c", False), ("b", False)])


def test_only_a_broken_connection_counts_as_a_lost_worker() -> None:
    assert is_broken_connection(BROKEN)
    assert not is_broken_connection(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


@pytest.mark.parametrize(
    ("met", "ended"),
    [
        ({0: Cancelled("stopped", code="stopped")}, Cancelled),
        ({0: BadInput("the loss is nan", code="nan"), 1: Lost("gone", code="gone")}, BadInput),
        ({0: Lost("no answer", code="gone"), 1: ActorDiedError()}, Lost),
        ({1: ActorDiedError()}, Lost),
        ({0: ZeroDivisionError("ours")}, WorkerGroupError),
    ],
)
def test_the_job_ends_as_the_workers_did(met: dict[int, Exception], ended: type[Exception]) -> None:
    assert type(reason(WorkerGroupError("…", met))) is ended


def test_a_training_that_ray_gave_up_is_lost() -> None:
    error: TrainingFailedError = ControllerError(RuntimeError("no placement group"))
    assert isinstance(reason(error), Lost)
