"""Processes on this machine: NCCL, gloo with two ranks, FSDP, and a training that is killed."""

import os
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist

from db.modules import run_module
from trainer.check.report import Clock, Part, Skip
from trainer.check.tasks import gradient_of, settings_of_check
from trainer.model.backbone import load_backbone
from trainer.parallel.processes import ALONE, Processes
from trainer.parallel.sharding import Sharded

MAX_DIFFERENCE = 1e-4  # of a gradient's component, relative to the largest of its tensor
CHILD_SECONDS = 240.0


def check_processes(part: Part, clock: Clock) -> None:
    """Each way against one process; what fails fails alone."""
    for name, check in (
        ("NCCL, one rank", _check_nccl),
        ("FSDP, one rank", _check_fsdp),
        ("gloo, two ranks on one device", _check_two_ranks),
        ("kill -9 and resume", _check_resume),
    ):
        if clock.left() <= 0:
            part.skip(name, "the time is used up")
            continue
        try:
            part.add(what=name, **check(part))
        except Skip as reason:
            part.skip(name, reason)
        except (RuntimeError, OSError, subprocess.SubprocessError) as error:
            part.add(what=name, result=f"{type(error).__name__}: {error}")
            part.require(False, f"{name}: {error}")


@contextmanager
def one_rank(backend: str) -> Iterator[Processes]:
    """This process as a group of one."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        place = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    dist.init_process_group(backend, init_method=place, rank=0, world_size=1)
    try:
        yield Processes(0, 1)
    finally:
        dist.destroy_process_group()


def _check_nccl(part: Part) -> dict[str, Any]:
    if not torch.cuda.is_available():
        raise Skip("PyTorch sees no GPU")
    if not dist.is_nccl_available():
        raise Skip("this PyTorch was built without NCCL")
    wanted = _alone()
    settings = settings_of_check()
    with one_rank("nccl") as processes:
        model = load_backbone(settings).train()
        found = gradient_of(model, settings, processes, ddp=True)
    return _difference(part, "NCCL", wanted, found)


def _check_fsdp(part: Part) -> dict[str, Any]:
    wanted = _alone()
    settings = settings_of_check()
    with one_rank("nccl" if torch.cuda.is_available() else "gloo") as processes:
        model = load_backbone(settings).train()
        sharded = Sharded(model, processes)
        found = gradient_of(model, settings, processes)
        same = all(
            torch.equal(weights.cpu(), sharded.plain.state_dict()[name])
            for name, weights in sharded.weights().items()
            if sharded.plain is not None
        )
    part.require(same, "FSDP: gathered weights are not those that were sharded")
    return _difference(part, "FSDP", wanted, found)


def _check_two_ranks(part: Part) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="inf-check-") as folder:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = str(free.getsockname()[1])
        group = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "2"}
        group |= {"LOCAL_WORLD_SIZE": "2", "OMP_NUM_THREADS": "1"}
        both = [
            _start("gradient", folder, environment=group | {"RANK": rank, "LOCAL_RANK": rank})
            for rank in ("0", "1")
        ]
        try:
            for process in both:
                _finish(process)
        finally:  # where one fails the other waits for it
            for process in both:
                process.kill()
                process.wait()
        *found, device = torch.load(Path(folder) / "gradient.pt", weights_only=True)
    return _difference(part, "gloo", _alone(), tuple(found)) | {"device": device}


def _check_resume(part: Part) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="inf-check-") as folder:
        hashes = {}
        for name, kill_at in (("whole", ""), ("killed", "3"), ("resumed", "")):
            place = Path(folder) / ("whole" if name == "whole" else "killed")
            place.mkdir(exist_ok=True)
            process = _start("train", str(place), kill_at, environment={})
            if name == "killed":
                _, message = process.communicate(timeout=CHILD_SECONDS)
                if process.returncode != -9:
                    raise RuntimeError(f"the training was not killed: {message[-500:]}")
            else:
                hashes[name] = _finish(process).split()[-1]
    is_same = hashes["whole"] == hashes["resumed"]
    part.require(is_same, "a training killed at step 3 and resumed has other weights")
    return {"result": "byte-identical" if is_same else "other weights", "device": _device()}


def _alone() -> tuple[float, dict[str, torch.Tensor]]:
    settings = settings_of_check()
    return gradient_of(load_backbone(settings).train(), settings, ALONE)


def _difference(part: Part, what: str, wanted: Any, found: Any) -> dict[str, Any]:
    worst = max(
        float((found[1][name] - of).abs().max() / of.abs().max().clamp(min=1e-6))
        for name, of in wanted[1].items()
    )
    part.require(wanted[1].keys() == found[1].keys(), f"{what}: other weights have gradients")
    part.require(worst <= MAX_DIFFERENCE, f"{what}: gradients differ by {worst:.2g}")
    return {
        "loss_difference": abs(found[0] - wanted[0]),
        "gradient_difference": worst,
        "device": _device(),
    }


def _device() -> str:
    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


def _start(task: str, *words: str, environment: dict[str, str]) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, *run_module("trainer.check.child"), task, *filter(None, words)],
        env=os.environ | environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def _finish(process: subprocess.Popen[str]) -> str:
    """What it printed. Raises RuntimeError with its last words where it failed."""
    try:
        printed, message = process.communicate(timeout=CHILD_SECONDS)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
        raise
    if process.returncode:
        raise RuntimeError(f"a process ended with status {process.returncode}: {message[-500:]}")
    return printed
