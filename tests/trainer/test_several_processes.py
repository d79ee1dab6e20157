"""Training in several processes, real ones over gloo: the same as one process."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from job_metrics import metric_points
from safetensors.torch import load_file
from several_ranks import CASES, STEP_SECONDS
from trainer_jobs import claim, config_for

from app.access.identity import owner
from app.jobs import launching
from db.errors import InfError
from db.jobs import jobs
from db.jobs.resources import parts_of
from db.modules import full_name, run_module
from db.store.store import Store
from trainer.launch.here import train
from trainer.model.backbone import load_model, read_memory
from trainer.parallel.processes import (
    Processes,
    count_from_environment,
    gathered_place,
    max_share,
    share_of,
)

TESTS = Path(__file__).parents[1]
# float32: bfloat16 would hide a wrong share behind its rounding.
QWEN = {
    "base_model": "tiny-random-qwen2",
    "objective": "P,I:multi",
    "rows_per_batch": "4",
    "precision": "fp32",
}


def start_ranks(folder: Path, count: int) -> list[subprocess.Popen[bytes]]:
    folder.mkdir()
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    seen = os.environ | {"PYTHONPATH": str(TESTS), "OMP_NUM_THREADS": "1"}
    seen |= {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": str(count)}
    words = [sys.executable, str(TESTS / "several_ranks.py"), str(folder)]
    return [subprocess.Popen(words, env=seen | {"RANK": str(rank)}) for rank in range(count)]


@pytest.mark.long
def test_two_gloo_ranks_have_the_loss_and_the_gradients_of_one_and_count_tokens_together(
    tmp_path: Path,
) -> None:
    alone = start_ranks(tmp_path / "one", 1)
    both = start_ranks(tmp_path / "two", 2)
    assert [process.wait(300) for process in (*alone, *both)] == [0, 0, 0]
    for number, case in enumerate(CASES):
        one = load_file(tmp_path / "one" / f"{number}.safetensors")
        two = load_file(tmp_path / "two" / f"{number}.safetensors")
        assert one.keys() == two.keys()
        for name, wanted in one.items():
            most = max(1.0, float(wanted.abs().max()))
            assert float((two[name] - wanted).abs().max()) < 1e-5 * most, (case, name)
        first, second = (
            json.loads((tmp_path / "two" / f"{number}.tokens-{rank}.json").read_text())
            for rank in range(2)
        )
        assert min(first["counted"], second["counted"]) > 0
        together = (first["counted"] + second["counted"]) / STEP_SECONDS
        assert first["per_second"] == second["per_second"] == together


def losses(store: Store, job_id: int) -> list[float]:
    with store.read() as session:
        points = metric_points(session, job_id)
    return [point.value for point in points if point.name == "loss"]


@pytest.mark.long
def test_a_training_of_two_processes_by_ddp_and_fsdp_has_the_losses_of_one(
    sqlite_store: Store, tmp_path: Path
) -> None:
    """10 groups, 2 held out, two batches of 4 in each of two epochs. Adam turns the last digits of
    a gradient near zero into a step: weights are compared by how far they moved altogether."""
    given = QWEN | {"epochs": "2", "learning_rate": "1e-4"}
    start = load_model(QWEN["base_model"])[0].model.state_dict()
    found, weights = [], []
    scores = []
    evaluated = {"evaluate_steps": "2", "best_by": "ndcg@10"}
    for count, extra in ((1, evaluated), (2, evaluated), (2, evaluated | {"fsdp": "on"})):
        folder = tmp_path / str(len(found))
        config: dict[str, Any] = config_for(folder, **given, **extra) | {"processes": count}
        job = launching.run_in_foreground(sqlite_store, "train", config, actor=owner("test"))
        assert job.result is not None and job.result["steps"] == 4
        assert [part["pid"] == job.pid for part in parts_of(job.resources)] == [True, False][:count]
        found.append(losses(sqlite_store, job.id))
        scores.append(job.result["held_out"] | {"best_step": job.result["best_step"]})
        weights.append(load_file(folder / "out" / "model.safetensors"))
    for theirs in scores[1:]:  # also where no process holds the whole model
        assert theirs["best_step"] == scores[0]["best_step"]
        for when in ("before", "after"):
            assert theirs[when] == pytest.approx(scores[0][when], abs=1e-6)
    assert job.log_path is not None
    told = re.search(r"FSDP: (\d+) of (\d+) weights", Path(job.log_path).read_text())
    assert told is not None
    here, whole = told.groups()
    assert 0 < int(here) < 0.6 * int(whole)
    alone = weights[0]
    moved = sum(float((alone[key] - start[key]).abs().sum()) for key in alone)
    assert len(found[0]) == 4 and moved > 0.1
    for other, theirs in zip(found[1:], weights[1:], strict=True):
        assert other == pytest.approx(found[0], rel=1e-3)
        assert theirs.keys() == alone.keys()
        apart = sum(float((theirs[key] - alone[key]).abs().sum()) for key in alone)
        assert apart < 0.02 * moved


@pytest.mark.long
def test_lora_with_sharded_weights_has_the_losses_of_one_process(
    sqlite_store: Store, tmp_path: Path
) -> None:
    given = QWEN | {"max_steps": "3", "learning_rate": "1e-3", "lora_rank": "4", "held_out": "0"}
    start = load_model(QWEN["base_model"])[0].model.state_dict()
    found, weights = [], []
    for count, extra in ((1, {}), (2, {"fsdp": "on"})):
        folder = tmp_path / str(count)
        config: dict[str, Any] = config_for(folder, **given, **extra) | {"processes": count}
        job = launching.run_in_foreground(sqlite_store, "train", config, actor=owner("test"))
        found.append(losses(sqlite_store, job.id))
        weights.append(load_file(folder / "out" / "model.safetensors"))
    alone, shared_out = weights
    assert len(found[0]) == 3 and found[1] == pytest.approx(found[0], rel=1e-3)
    assert shared_out.keys() == alone.keys() == start.keys()  # merged: an ordinary model
    moved = sum(float((alone[key] - start[key]).abs().sum()) for key in alone)
    apart = sum(float((shared_out[key] - alone[key]).abs().sum()) for key in alone)
    assert moved > 0.1 and apart < 0.02 * moved
    embedded = "embed_tokens.weight"
    assert torch.equal(alone[embedded], start[embedded])  # only linear layers have additions


@pytest.mark.long
def test_a_process_that_dies_ends_the_training_with_a_reason(
    sqlite_store: Store, tmp_path: Path
) -> None:
    config = config_for(tmp_path, **QWEN, epochs="100000") | {"processes": 2}

    def kill_the_other(job: Any) -> None:
        if job.done >= 1 and job.pid and psutil.pid_exists(job.pid):
            for child in psutil.Process(job.pid).children():
                child.kill()

    with pytest.raises(InfError, match=r"process 2 of 2 ended early \(status -9\)"):
        launching.run_in_foreground(
            sqlite_store, "train", config, actor=owner("test"), watch=kill_the_other
        )


SCORES = """
import os, signal, sys, time
from db.errors import InfError
from trainer.parallel.processes import joined
try:
    with joined(2) as processes:
        dead = processes.started[0] if sys.argv[1] == "other" else os.getpid()
        print(processes.started[0], flush=True)
        began = time.monotonic()
        os.kill(dead, signal.SIGKILL)
        while time.monotonic() < began + 150:  # as a first process that scores for hours
            time.sleep(0.05)
except InfError as error:
    print(time.monotonic() - began)
    print(error)
"""


@pytest.mark.long
@pytest.mark.parametrize("dead", ["other", "first"])
def test_a_dead_process_ends_the_others_in_a_minute_whatever_they_are_doing(dead: str) -> None:
    """No collective call reports it: the first is scoring, the other waits for the first."""
    ran = subprocess.run(
        [sys.executable, "-c", SCORES, dead], capture_output=True, text=True, timeout=400
    )
    other, *rest = ran.stdout.splitlines()
    if dead == "other":
        seconds, reason = rest
        assert float(seconds) < 60
        assert reason.startswith("process 2 of 2 ended early (status -9)")
    else:
        assert ran.returncode == -9
        deadline = time.monotonic() + 60
        while psutil.pid_exists(int(other)) and time.monotonic() < deadline:
            time.sleep(0.1)
    assert not psutil.pid_exists(int(other))


def test_a_process_that_others_started_ends_when_they_died_although_it_hangs() -> None:
    """As inside NCCL: nothing but the watch can end it."""
    code = (
        "import time, subprocess, sys, os\n"
        "inner = 'import time; from trainer.parallel.processes import end_with_the_first as end;'\n"
        "inner += 'end(); print(1, flush=True); time.sleep(300)'\n"
        "env = os.environ | {'TRAINING_STARTED_BY': str(os.getpid())}\n"
        "child = subprocess.Popen([sys.executable, '-c', inner], env=env, stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
        "print(child.pid, flush=True)\n"
        "os.kill(os.getpid(), 9)\n"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=200)
    deadline = time.monotonic() + 60
    while psutil.pid_exists(int(ran.stdout)) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not psutil.pid_exists(int(ran.stdout))


@pytest.mark.slow
@pytest.mark.parametrize("fsdp", ["off", "on"])
@pytest.mark.long
def test_a_killed_training_of_two_processes_resumes_exactly(
    sqlite_store: Store, tmp_path: Path, fsdp: str
) -> None:
    given = QWEN | {"epochs": "12", "save_steps": "1", "learning_rate": "1e-4"}
    whole = claim(sqlite_store, config_for(tmp_path / "one", **given))
    train(whole)
    with sqlite_store.write() as session:
        more = {"fsdp": fsdp, "evaluate_steps": "8", "best_by": "mrr"}
        config: dict[str, Any] = config_for(tmp_path / "two", **given, **more) | {"processes": 2}
        job = jobs.enqueue_job(session, "train", config)
        claimed = jobs.claim_job(session, job.id)
        assert claimed is not None
        session.commit()
    child = launching.start_process(sqlite_store, claimed)
    deadline = time.monotonic() + 240
    while len(losses(sqlite_store, claimed.id)) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    others = psutil.Process(child.pid).children() if child.poll() is None else []
    child.kill()
    if child.wait() != 0:  # a very fast machine may have been done
        for other in others:
            other.wait(120)  # it sees that the first is gone
        again = launching.start_process(sqlite_store, claimed)
        assert again.wait(300) == 0
    assert losses(sqlite_store, claimed.id) == pytest.approx(
        losses(sqlite_store, whole.id), rel=1e-3
    )
    with sqlite_store.read() as session:
        points = metric_points(session, claimed.id)
    scores = {point.step: point.value for point in points if point.name == "mrr" and point.step}
    memory = read_memory(str(tmp_path / "two" / "out"))["result"]
    assert memory["best_step"] == max(scores, key=lambda step: (scores[step], -step))
    assert memory["held_out"]["after"]["mrr"] == pytest.approx(scores[memory["best_step"]])


@pytest.mark.long
def test_torchrun_starts_the_same_training(sqlite_store: Store, tmp_path: Path) -> None:
    config = config_for(tmp_path, **QWEN, max_steps="1")
    words = [f"{name}={value}" for name, value in config["settings"].items()]
    ran = subprocess.run(
        [
            *(sys.executable, "-m", "torch.distributed.run", "--standalone"),
            *("--nproc-per-node", "2", "-m", full_name("app.cli.main"), "train"),
            *("--release", config["release"], "--out", config["out"], *words, "--json"),
        ],
        env=os.environ | {"INF_DATABASE_URL": sqlite_store.url},
        capture_output=True,
        text=True,
        timeout=400,
    )
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "out" / "model.safetensors").exists()
    with sqlite_store.read() as session:
        (job,) = jobs.list_jobs(session)
    assert job.status == "done"


@pytest.mark.long
def test_a_process_that_python_aborts_at_its_end_has_ended_well(tmp_path: Path) -> None:
    """gloo's threads can abort Python's own end: torchrun took a finished training for a failed
    one. Here a function that is called at that end aborts, and a training that another process
    refused ends with its own status 1 all the same."""
    (tmp_path / "sitecustomize.py").write_text("import atexit, os\natexit.register(os.abort)\n")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = str(free.getsockname()[1])
    place = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port, "WORLD_SIZE": "1", "RANK": "0"}
    ran = subprocess.run(
        [sys.executable, *run_module("trainer.launch.follow")],
        env=os.environ | place | {"PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert ran.returncode == 1
    assert "the first process refused the training" in ran.stderr


def test_shares_and_places_by_hand() -> None:
    """Five texts, two processes: 0 2 4 and 1 3; gathered they stand at 0 1 2 and 3 4 (5 is empty).

    A third process of one text's share gets that text again, and nobody looks at it.
    """
    texts = list("abcde")
    assert share_of(texts, Processes(0, 2)) == ["a", "c", "e"]
    assert share_of(texts, Processes(1, 2)) == ["b", "d"]
    assert max_share(5, Processes(0, 2)) == 3
    assert gathered_place(torch.arange(5), 2, 3).tolist() == [0, 3, 1, 4, 2]
    assert share_of(["a"], Processes(2, 3)) == ["a"]


def test_only_torchruns_environment_counts() -> None:
    assert count_from_environment({"WORLD_SIZE": "8"}) == 1
    assert count_from_environment({"WORLD_SIZE": "8", "RANK": "0", "MASTER_ADDR": "x"}) == 8
    with pytest.raises(InfError, match="is not a number of processes"):
        count_from_environment({"WORLD_SIZE": "many"})
