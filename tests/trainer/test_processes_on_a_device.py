"""Groups of processes on this machine's device against one process: NCCL, FSDP, gloo, a kill."""

import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import one_gradient
import pytest
import torch
import torch.distributed as dist
from one_gradient import gradient_of, tiny_settings
from torch import Tensor

from trainer.model.backbone import load_backbone
from trainer.parallel.processes import ALONE, Processes
from trainer.parallel.sharding import Sharded

MAX_DIFFERENCE = 1e-4  # of a gradient's component, relative to the largest of its tensor
CHILD_SECONDS = 240.0
ROOT = Path(__file__).parents[2]
Found = tuple[float, dict[str, Tensor]]


@contextmanager
def one_rank(backend: str) -> Iterator[Processes]:
    """This process as a group of one."""
    dist.init_process_group(
        backend, init_method=f"tcp://127.0.0.1:{free_port()}", rank=0, world_size=1
    )
    try:
        yield Processes(0, 1)
    finally:
        dist.destroy_process_group()


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port: int = free.getsockname()[1]
        return port


def alone() -> Found:
    settings = tiny_settings()
    return gradient_of(load_backbone(settings).train(), settings, ALONE)


def assert_equal(wanted: Found, found: Found) -> None:
    assert wanted[1].keys() == found[1].keys()
    for name, of in wanted[1].items():
        worst = float((found[1][name] - of).abs().max() / of.abs().max().clamp(min=1e-6))
        assert worst <= MAX_DIFFERENCE, name


def start(task: str, *words: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    here = {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(
        [sys.executable, one_gradient.__file__, task, *words],
        env=os.environ | here | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    printed, message = process.communicate(timeout=CHILD_SECONDS)
    assert process.returncode == 0, message[-500:]
    return printed


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU")
def test_ddp_by_nccl_has_the_gradients_of_one_process() -> None:
    wanted, settings = alone(), tiny_settings()
    with one_rank("nccl") as processes:
        found = gradient_of(load_backbone(settings).train(), settings, processes, ddp=True)
    assert_equal(wanted, found)


@pytest.mark.long
@pytest.mark.gpu
def test_shards_of_one_rank_have_the_gradients_of_one_process() -> None:
    wanted, settings = alone(), tiny_settings()
    with one_rank("nccl" if torch.cuda.is_available() else "gloo") as processes:
        model = load_backbone(settings).train()
        sharded = Sharded(model, processes)
        found = gradient_of(model, settings, processes)
        assert sharded.plain is not None
        for name, weights in sharded.weights().items():
            assert torch.equal(weights.cpu(), sharded.plain.state_dict()[name]), name
    assert_equal(wanted, found)


@pytest.mark.long
@pytest.mark.gpu
def test_two_gloo_ranks_on_one_device_have_the_gradients_of_one_process(tmp_path: Path) -> None:
    group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "WORLD_SIZE": "2"}
    group |= {"LOCAL_WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
    both = [
        start("gradient", str(tmp_path), environment=group | {"RANK": rank, "LOCAL_RANK": rank})
        for rank in ("0", "1")
    ]
    try:
        for process in both:
            finish(process)
    finally:  # where one fails the other waits for it
        for process in both:
            process.kill()
            process.wait()
    assert_equal(alone(), torch.load(tmp_path / "gradient.pt", weights_only=True))


@pytest.mark.long
@pytest.mark.gpu
def test_a_killed_training_resumes_to_the_byte(tmp_path: Path) -> None:
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    whole.mkdir()
    killed.mkdir()
    wanted = finish(start("train", str(whole), environment={})).split()[-1]
    process = start("train", str(killed), "3", environment={})
    _, message = process.communicate(timeout=CHILD_SECONDS)
    assert process.returncode == -9, message[-500:]
    assert finish(start("train", str(killed), environment={})).split()[-1] == wanted
