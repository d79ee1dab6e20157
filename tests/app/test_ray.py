"""Jobs on a real Ray cluster: a head and two nodes as processes, a token, PostgreSQL."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from click.testing import CliRunner
from conftest import count_rows
from curation_runs import add_dataset, stored_calls
from job_metrics import metric_points
from openai_server import Server
from ray_nodes import WAIT_SECONDS, LocalRay, cluster_of, kill_node, until
from trainer_release import write_release

from app.access.identity import owner
from app.cli.main import inf as inf_command
from app.jobs import launching, processes, supervisors
from app.jobs.ray_cluster import (
    RayCluster,
    Resources,
    checked_address,
    environment_of,
    require_reachable_store,
)
from curation.run.starting import RunWork, start_run
from db.errors import BadInput
from db.jobs import jobs
from db.jobs.resources import missing_gpu_warning, parts_of, sum_of
from db.run.runs import funnel, get_run
from db.store.store import Store
from db.tables import Job, utc_now

PAIRS = 24
KEY = "sk-nobody-may-read-this-0123456789"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """The language model, which asks for a key."""
    with Server(latency_seconds=0.02, key=KEY) as running:
        yield running


@pytest.fixture(scope="module")
def ray(server: Server) -> Iterator[LocalRay]:
    """A head and two nodes of two processors; the nodes know the key, we do not."""
    with cluster_of(2, OPENAI_BASE_URL=server.url, OPENAI_API_KEY=KEY) as cluster:
        yield cluster


@pytest.fixture
def cluster(ray: LocalRay, monkeypatch: pytest.MonkeyPatch) -> RayCluster:
    """A client with the token, and this cluster as the place for jobs."""
    for name, value in ray.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("INF_RAY_ADDRESS", ray.address)
    return RayCluster(ray.address)


def now(store: Store, job_id: int) -> Job:
    return launching.job_now(store, job_id)


def is_over(store: Store, job_id: int) -> bool:
    return now(store, job_id).status in jobs.OVER


def queue(store: Store, address: str, kind: str, config: dict) -> int:
    with store.write() as session:
        job_id = jobs.enqueue_job(session, kind, config, launcher=address).id
        session.commit()
    return job_id


SUPERVISE = """
import os, sys
from app.jobs import processes
from app.jobs.ray_cluster import RayCluster
from app.jobs.ray_supervisor import supervise_ray
from inf_studio import open_store
processes.ENTRY = sys.argv[1]
supervise_ray(open_store(), RayCluster(os.environ["INF_RAY_ADDRESS"]), idle_seconds=2)
"""


def supervised(entry: str = processes.ENTRY) -> "subprocess.Popen[bytes]":
    """A supervisor (Ray keeps a process's first token); it ends 2 s after the last job."""
    return subprocess.Popen([sys.executable, "-c", SUPERVISE, entry], env=os.environ)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.long
def test_a_training_and_an_evaluation_run_on_the_cluster_and_survive_the_supervisor(
    cluster: RayCluster, postgres_store: Store, tmp_path: Path
) -> None:
    release = write_release(tmp_path / "release", 10)
    settings = {"base_model": "tiny-random-bert", "max_steps": "20", "rows_per_batch": "4"}
    settings |= {"natural_probe": "off", "precision": "fp32"}  # auto would time both types
    out = tmp_path / "model"
    config = {"release": str(release), "out": str(out), "settings": settings}
    training = queue(postgres_store, cluster.address, "train", config)
    supervisors.ensure_taken(postgres_store, cluster.address)
    until(lambda: now(postgres_store, training).pid)
    first = _supervisor_of(cluster.address)
    os.kill(first, 9)  # the app's machine goes down
    until(lambda: _supervisor_is_free(postgres_store, cluster.address))
    supervisors.ensure_taken(postgres_store, cluster.address)
    until(lambda: is_over(postgres_store, training))
    done = now(postgres_store, training)
    assert (done.status, done.attempt, done.error) == ("done", 1, None)
    assert done.result is not None and done.result["steps"] == 20
    asked = {"models": [str(out)], "release": str(release), "benchmark": None, "with_base": True}
    evaluation = queue(postgres_store, cluster.address, "evaluate", asked)
    until(lambda: is_over(postgres_store, evaluation))
    assert now(postgres_store, evaluation).status == "done"
    assert count_rows(postgres_store, "evaluation") == 2
    until(lambda: now(postgres_store, evaluation).log_path)
    os.kill(_supervisor_of(cluster.address), 9)


def _supervisor_of(address: str) -> int:
    wanted = ["work", "--launcher", "ray", "--address", address]
    for process in psutil.Process().children(recursive=True):
        if process.status() != psutil.STATUS_ZOMBIE and process.cmdline()[-5:] == wanted:
            return process.pid
    raise AssertionError("no supervisor of the cluster runs")


def _supervisor_is_free(store: Store, address: str) -> bool:
    lock = supervisors.try_supervisor_lock(store, address)
    if lock is not None:
        os.close(lock)
    return lock is not None


def losses(store: Store, job_id: int) -> dict[int, float]:
    with store.read() as session:
        points = metric_points(session, job_id)
    return {point.step: point.value for point in points if point.name == "loss"}


def cancel(store: Store, job_id: int) -> None:
    with store.write() as session:
        jobs.request_stop(session, job_id)
        session.commit()


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.long
def test_a_training_over_two_nodes_has_the_losses_of_one_process_and_outlives_a_node(
    cluster: RayCluster,
    ray: LocalRay,
    postgres_store: Store,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Both trainings are endless and stopped after some steps, so no machine is too fast.

    The model has no dropout: what is dropped would differ by process.
    """
    monkeypatch.setenv("INF_RAY_CPUS", "2")  # a worker fills a node
    release = write_release(tmp_path / "release", 10)
    settings = ["base_model=tiny-random-qwen2", "objective=P,I:multi", "rows_per_batch=4"]
    settings += [
        "natural_probe=off",
        "precision=fp32",
        "held_out=0.2",
        "epochs=100000",
        "save_steps=1",
        "learning_rate=1e-4",
    ]
    words = ["train", "--release", str(release), "--detach", "--json", *settings]

    def launched(out: str, *more: str) -> int:
        ran = CliRunner().invoke(inf_command, [*words, "--out", str(tmp_path / out), *more])
        assert ran.exit_code == 0, ran.output
        return int(json.loads(ran.output)["job_id"])

    monkeypatch.setattr(supervisors, "_start", lambda *words: None)  # ours are below
    there = ["--launcher", "ray", "--address", cluster.address, "--workers", "2"]
    spread = launched("spread", *there)
    supervisor = supervised()
    until(lambda: len(losses(postgres_store, spread)) >= 3)
    first = now(postgres_store, spread)
    assert first.config["workers"] == 2
    until(lambda: len(parts_of(now(postgres_store, spread).resources)) == 2)
    parts = parts_of(now(postgres_store, spread).resources)
    pids = [part["pid"] for part in parts]
    assert sum_of(parts)["nodes"] == 2 and pids[0] == first.pid
    assert all(part["memory_mb"] > 10 and part["cpu_seconds"] > 0 for part in parts)
    kill_node(ray.node_of(pids[1]))
    until(lambda: ray.alive() == 2)  # the head and the other node
    until(lambda: now(postgres_store, spread).attempt == 2)
    before = max(losses(postgres_store, spread))
    ray.add_nodes(1)  # the dead node is replaced
    until(lambda: max(losses(postgres_store, spread)) >= before + 3)
    cancel(postgres_store, spread)
    until(lambda: is_over(postgres_store, spread))
    ended = now(postgres_store, spread)
    assert (ended.status, ended.attempt) == ("cancelled", 2)
    parts = parts_of(ended.resources)
    assert len(parts) == 2
    until(lambda: not any(psutil.pid_exists(part["pid"]) for part in parts))
    found = losses(postgres_store, spread)
    assert list(found) == list(range(1, len(found) + 1))  # every step, once
    assert supervisor.wait(WAIT_SECONDS) == 0

    alone = launched("alone", "--launcher", "local")
    with postgres_store.write() as session:
        claimed = jobs.claim_job(session, alone)
        session.commit()
    assert claimed is not None
    child = launching.start_process(postgres_store, claimed)
    until(lambda: len(losses(postgres_store, alone)) >= len(found))
    cancel(postgres_store, alone)
    assert child.wait(WAIT_SECONDS) == 1
    wanted = losses(postgres_store, alone)
    assert list(found.values()) == pytest.approx([wanted[step] for step in found], rel=1e-3)


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.long
def test_a_gpu_for_each_worker_is_found_on_two_nodes_and_given_back_by_cancel(
    cluster: RayCluster, postgres_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each node offers one GPU that is not there: the processors of one node would do for both."""
    monkeypatch.setenv("INF_RAY_GPUS", "1")
    release = write_release(tmp_path / "release", 10)
    config = {"release": str(release), "out": str(tmp_path / "spread"), "workers": 2}
    settings = {"base_model": "tiny-random-bert", "rows_per_batch": "4", "epochs": "100000"}
    settings |= {"natural_probe": "off", "precision": "fp32"}  # auto would time both types
    spread = queue(postgres_store, cluster.address, "train", config | {"settings": settings})
    supervisor = supervised()
    until(lambda: losses(postgres_store, spread) or is_over(postgres_store, spread))
    assert now(postgres_store, spread).status == "running", now(postgres_store, spread).error
    until(lambda: "Process 1, 2 of 2 was given a GPU" in missing(postgres_store, spread))
    assert sum_of(parts_of(now(postgres_store, spread).resources))["nodes"] == 2
    config = {"release": str(release), "out": str(tmp_path / "alone")}
    settings = {**settings, "max_steps": "1"}
    alone = queue(postgres_store, cluster.address, "train", config | {"settings": settings})
    until(lambda: "free resources" in now(postgres_store, alone).message)
    cancel(postgres_store, spread)
    until(lambda: is_over(postgres_store, spread))
    until(lambda: is_over(postgres_store, alone))
    assert supervisor.wait(WAIT_SECONDS) == 0
    assert now(postgres_store, spread).status == "cancelled"
    assert now(postgres_store, alone).status == "done"
    assert "The job was given a GPU" in missing(postgres_store, alone)
    assert "PyTorch sees none" in launching.log_tail(now(postgres_store, alone), lines=10_000)


def missing(store: Store, job_id: int) -> str:
    return missing_gpu_warning(parts_of(now(store, job_id).resources))


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.long
def test_four_workers_curate_a_node_dies_and_nothing_is_done_twice(
    cluster: RayCluster, ray: LocalRay, postgres_store: Store, server: Server
) -> None:
    add_dataset(postgres_store, pairs=PAIRS, pool=6)
    with postgres_store.write() as session:
        asked = {"dataset": "small", "provider": "openai", "settings": ["model=small"]}
        run_id = start_run(session, **asked, concurrency=4).id
        session.commit()
    server.hold_after = sum(server.answered.values()) + PAIRS  # nobody is done before the kill
    config = RunWork(run_id=run_id).config()
    workers = [queue(postgres_store, cluster.address, "curate", config) for _ in range(4)]
    supervisor = supervised()
    until(lambda: all(now(postgres_store, each).pid for each in workers))
    until(lambda: sum(server.answered.values()) >= server.hold_after)
    victim = ray.node_of(now(postgres_store, workers[0]).pid or 0)
    kill_node(victim)
    until(lambda: ray.alive() == 2)  # the head and the other node
    server.hold_after = None
    until(lambda: all(now(postgres_store, each).status == "done" for each in workers))
    assert supervisor.wait(WAIT_SECONDS) == 0
    assert {now(postgres_store, each).attempt for each in workers} == {1, 2}
    with postgres_store.read() as session:
        assert get_run(session, run_id).status == "done"
        found = funnel(session, run_id)
    assert found.finished == PAIRS
    assert stored_calls(postgres_store) == PAIRS * 8
    probes = 2 * len(workers)  # at most, of calls that the server held: whether they hang
    assert PAIRS * 8 <= len(server.answered) <= PAIRS * 8 + probes
    ray.add_nodes(1)  # the dead node is replaced


@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.long
def test_cancel_frees_what_the_job_held_and_the_next_one_runs(
    cluster: RayCluster, postgres_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("INF_RAY_CPUS", "2")  # a node each: two run, the third waits
    held = [queue(postgres_store, cluster.address, "train", {"steps": 100_000}) for _ in range(2)]
    supervisor = supervised("toy_jobs")
    until(lambda: all(now(postgres_store, each).pid for each in held))
    third = queue(postgres_store, cluster.address, "train", {"steps": 2})
    until(lambda: "free resources" in now(postgres_store, third).message)
    for each in held:
        cancel(postgres_store, each)
        until(lambda each=each: is_over(postgres_store, each))
    until(lambda: is_over(postgres_store, third))
    assert supervisor.wait(WAIT_SECONDS) == 0
    assert [now(postgres_store, each).status for each in held] == ["cancelled"] * 2
    assert now(postgres_store, third).status == "done"


@pytest.mark.long
def test_without_the_token_nothing_is_taken_and_the_job_says_so(
    cluster: RayCluster, sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RAY_AUTH_TOKEN", "0" * 48)
    job_id = queue(sqlite_store, cluster.address, "train", {})
    assert supervised().wait(WAIT_SECONDS) == 0
    job = now(sqlite_store, job_id)
    assert job.status == "failed" and "could not be submitted" in (job.error or "")


def test_no_password_is_told_to_the_cluster(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    store = Store("postgresql+psycopg://ann:open-sesame@db.example/inf?sslpassword=open-sesame")
    job = Job(kind="curate", config={})
    job.id, job.created_at = 1, utc_now()
    told = " ".join(environment_of(store, job).values())
    assert "ann@db.example/inf" in told
    assert "open-sesame" not in told and KEY not in told


@pytest.mark.parametrize(
    ("address", "words"),
    [("head:8265", "http://HEAD:8265"), ("http://ann:secret@head:8265", "leave it out")],
)
def test_an_address_that_cannot_be_or_holds_a_secret_is_refused(address: str, words: str) -> None:
    with pytest.raises(BadInput, match=words) as told:
        checked_address(address)
    assert "secret" not in str(told.value)


def test_an_sqlite_store_is_refused_for_a_cluster_elsewhere(sqlite_store: Store) -> None:
    require_reachable_store(sqlite_store, "http://127.0.0.1:8265")
    with pytest.raises(BadInput, match="use PostgreSQL"):
        require_reachable_store(sqlite_store, "http://10.0.0.9:8265")


def test_a_training_in_several_processes_asks_for_as_many_gpus() -> None:
    training = Job(kind="train", config={"processes": 4})
    curation = Job(kind="curate", config={})
    spread = Job(kind="train", config={"workers": 4})  # Ray Train asks for the workers
    asked = Resources(cpus=2, gpus=1)
    assert asked.of_job(spread) == {"entrypoint_num_cpus": 0.0, "entrypoint_num_gpus": 0.0}
    assert asked.of_job(training) == {"entrypoint_num_cpus": 8, "entrypoint_num_gpus": 4}
    assert asked.of_job(curation) == {"entrypoint_num_cpus": 2, "entrypoint_num_gpus": 0.0}


@pytest.mark.parametrize("more", [[], ["--launcher", "ray", "--nproc", "2"]])
def test_workers_are_for_a_cluster_alone(more: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INF_RAY_ADDRESS", "http://head:8265" if more else "")
    ran = CliRunner().invoke(
        inf_command, ["train", "--release", "1", "--out", "x", "--workers", "2", *more]
    )
    assert ran.exit_code == 2 and "--workers requires --launcher ray" in ran.output


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--launcher", "ray"], "--launcher ray requires --address URL"),
        (["--address", "http://head:8265"], "--address requires --launcher ray"),
        (["--launcher", "ray", "--address", "head"], "http://HEAD:8265"),
    ],
)
def test_half_a_launcher_is_refused_as_wrong_arguments(
    words: list[str], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("INF_RAY_ADDRESS", raising=False)
    ran = CliRunner().invoke(inf_command, ["jobs", "work", *words])
    assert ran.exit_code == 2 and told in ran.output


def test_the_address_of_the_environment_chooses_the_cluster_for_every_button_and_command(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    taken: list[str] = []
    monkeypatch.setattr(supervisors, "_start", lambda *words: taken.append(words[-1]))
    monkeypatch.setenv("INF_RAY_ADDRESS", "http://127.0.0.1:8265/")
    job_id = launching.launch(sqlite_store, "train", {}, actor=owner("ann"))
    assert now(sqlite_store, job_id).launcher == "http://127.0.0.1:8265" == taken[0]
    with sqlite_store.write() as session:
        assert jobs.claim_job(session, launcher=jobs.LOCAL) is None
