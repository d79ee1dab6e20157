"""INF_FILES: two machines with a home each, one store, and a folder or object storage for files."""

import json
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest
from conftest import Ran, require
from job_metrics import metric_points
from ray_nodes import IdleRay
from records_world import make_run
from sentence_transformers import SentenceTransformer as StaticModel
from sentence_transformers.sentence_transformer.modules import StaticEmbedding
from sqlalchemy import delete
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from trainer_jobs import TINY, claim, config_for, train_until
from waiting import until

from analysis.embed.embedding import encode, model_identity
from analysis.files import shared
from analysis.files.shared import (
    here,
    is_there,
    newer_log,
    share,
    share_log,
    share_the_rest,
    those_there,
)
from app.access.identity import owner
from app.jobs import entry, launching, processes, supervisor, supervisors
from app.jobs.ray_cluster import environment_of
from app.jobs.ray_supervisor import supervise_ray
from app.jobs.supervisor import supervise
from app.operations import jobs as operations
from app.operations.jobs import JobLog
from app.operations.releases import new_folder
from db.errors import BadInput, InfError, NotFound, Refused
from db.home import home, home_ids, is_of_this_machine
from db.jobs import jobs
from db.jobs.runner import JobHandle
from db.outcome.checkpoints import list_checkpoints
from db.release.releases import list_releases
from db.store import schema
from db.store.store import Store, open_store
from db.tables import Checkpoint, Job, MetricPoint, Run
from trainer.data.release_files import find_release, read_release
from trainer.launch.here import train
from trainer.loop.best import newest_state

TESTS = Path(__file__).resolve().parent.parent
Machine = Callable[[str], Path]


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Machine:
    """Be the machine of that name: its INF_HOME; both have one INF_FILES, a folder."""
    monkeypatch.setenv("INF_FILES", f"file://{tmp_path}/common")

    def become(name: str) -> Path:
        monkeypatch.setenv("INF_HOME", str(tmp_path / name))
        return tmp_path / name

    return become


@pytest.fixture
def by_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs that do nothing, and no supervisor but those that a test runs."""
    monkeypatch.setattr(processes, "ENTRY", "toy_jobs")
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


@pytest.fixture(scope="module")
def s3_server() -> Iterator[str]:
    """The address of a server that speaks S3, which others wrote."""
    if find_spec("moto") is None or find_spec("s3fs") is None:
        require("s3", "moto[s3], flask, flask-cors and s3fs are not installed")
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    yield "http://{}:{}".format(*server.get_host_and_port())
    server.stop()


@pytest.fixture
def s3(
    request: pytest.FixtureRequest, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[fsspec.AbstractFileSystem]:
    """INF_FILES in a bucket of that server; empty."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", request.getfixturevalue("s3_server"))
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    monkeypatch.setenv("AWS_DEFAULT_REGION", "us-east-1")
    monkeypatch.setenv("INF_FILES", "s3://bucket/inf")
    monkeypatch.setattr(shared, "WAIT_SECONDS", 0.0)
    files = fsspec.filesystem("s3")
    files.mkdir("bucket")
    yield files
    files.rm("bucket", recursive=True)


@pytest.fixture(params=["memory", "s3"])
def bucket(
    request: pytest.FixtureRequest, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> Iterator[fsspec.AbstractFileSystem]:
    """INF_FILES as an object storage, in memory or S3's; empty."""
    if request.param == "s3":
        yield request.getfixturevalue("s3")
        return
    monkeypatch.setenv("INF_FILES", "memory://bucket/inf")
    monkeypatch.setattr(shared, "WAIT_SECONDS", 0.0)
    files = fsspec.filesystem("memory")
    yield files
    files.store.clear()
    files.pseudo_dirs[:] = [""]


def made(home: Path, content: str = "weights", name: str = "checkpoints/one") -> Path:
    folder = home / name
    (folder / "deep").mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text("card")
    (folder / "deep/model.bin").write_text(content)
    (folder / ".unfinished").write_text("no")
    return folder


def made_by(name: str) -> Path:
    return home().parent / name / "checkpoints"


def content_of(folder: Path) -> str:
    return (folder / "deep/model.bin").read_text()


def test_another_machine_gets_what_one_made_and_newer_ones(
    machine: Machine, bucket: fsspec.AbstractFileSystem
) -> None:
    share(made(machine("one")))
    there = machine("two") / "checkpoints/one"
    assert is_there(there) and not there.exists()
    assert here(there) == there and content_of(there) == "weights"
    assert not (there / ".unfinished").exists()
    share(made(machine("one"), "better"))
    machine("two")
    assert content_of(here(there)) == "better"
    names = [name for name in bucket.find("bucket/inf") if name.endswith("model.bin")]
    assert len(names) == 1, "the replaced ones are deleted"


def test_a_copy_cut_short_is_not_there_and_the_next_start_completes_it(
    machine: Machine, bucket: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    put = bucket.put_file

    def cut(source: str, target: str) -> None:
        if target.endswith("model.bin"):
            raise OSError("connection lost")
        put(source, target)

    folder = made(machine("one"))
    with monkeypatch.context() as patched:
        patched.setattr(bucket, "put_file", cut)
        with pytest.raises(InfError, match="connection lost"):
            share(folder)
        share_the_rest()  # as at the start of a supervisor: logged, and tried again by the next
    there = machine("two") / "checkpoints/one"
    assert not is_there(there) and not here(there).exists()
    machine("one")
    share_the_rest()
    machine("two")
    assert content_of(here(there)) == "weights"


def test_a_process_killed_between_two_copies_leaves_nothing_to_see(machine: Machine) -> None:
    made(machine("one"))
    program = (
        "import os; from fsspec.implementations.local import LocalFileSystem as L\n"
        "put = L.put_file\n"
        "def once(*given, **named): put(*given, **named); os.kill(os.getpid(), 9)\n"
        "L.put_file = once\n"
        "from analysis.files.shared import share_the_rest; share_the_rest()"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == -9
    there = machine("two") / "checkpoints/one"
    assert not is_there(there)
    machine("one")
    share_the_rest()
    machine("two")
    assert content_of(here(there)) == "weights"


def test_a_model_that_another_machine_trained_is_loaded(
    machine: Machine, bucket: fsspec.AbstractFileSystem
) -> None:
    folder = machine("one") / "checkpoints/tiny"
    tokenizer = Tokenizer(WordLevel({"one": 0, "[UNK]": 1}, unk_token="[UNK]"))
    StaticModel(modules=[StaticEmbedding(tokenizer, np.eye(2, dtype=np.float32))]).save(str(folder))
    share(folder)
    there = str(machine("two") / "checkpoints/tiny")
    assert "@" in model_identity(there), "the cache knows it by its content"
    assert np.allclose(encode(["one"], there), [[1, 0]])


def test_one_replaced_by_halves_stays_as_it_was(
    machine: Machine, bucket: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    share(made(machine("one")))
    monkeypatch.setattr(shared, "TRIES", 1)
    with monkeypatch.context() as patched:
        patched.setattr(bucket, "pipe_file", lambda *_: (_ for _ in ()).throw(OSError("cut")))
        with pytest.raises(InfError, match="cut"):
            share(made(machine("one"), "better"))
    machine("two")
    assert content_of(here(machine("two") / "checkpoints/one")) == "weights"


def test_a_damaged_copy_is_refused_and_nothing_of_it_stays(
    machine: Machine, bucket: fsspec.AbstractFileSystem
) -> None:
    share(made(machine("one")))
    (name,) = [name for name in bucket.find("bucket/inf") if name.endswith("model.bin")]
    bucket.pipe_file(name, b"weighty")
    there = machine("two") / "checkpoints/one"
    with pytest.raises(InfError, match=r"model\.bin of checkpoints/one .* differs"):
        here(there)
    assert not list(there.parent.glob("*")) and not list(there.parent.glob(".*"))


def test_of_two_copies_at_once_the_last_is_whole(
    machine: Machine, bucket: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, two = made(machine("one"), "of one"), made(machine("two"), "of two")
    write = shared._write

    def after_the_other(files: Any, target: str, content: bytes) -> None:
        monkeypatch.setattr(shared, "_write", write)
        machine("one")
        share(one)
        machine("two")
        write(files, target, content)

    monkeypatch.setattr(shared, "_write", after_the_other)
    share(two)
    assert content_of(here(machine("three") / "checkpoints/one")) == "of two"


@pytest.mark.parametrize("name", ["../../out", "/out", "deep/../../../out"])
def test_no_file_is_written_outside_of_its_folder(
    machine: Machine, bucket: fsspec.AbstractFileSystem, name: str
) -> None:
    manifest = json.dumps({"files": {name: [1, "0" * 64]}}).encode()
    bucket.pipe_file("bucket/inf/checkpoints/one.json", manifest)
    with pytest.raises(InfError, match="outside of it"):
        here(machine("two") / "checkpoints/one")


def test_a_file_that_cannot_be_read_keeps_no_supervisor_from_its_work(
    machine: Machine,
    bucket: fsspec.AbstractFileSystem,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made(machine("one"))

    def refused(_: Path) -> tuple[int, str]:
        raise PermissionError("model.bin is another's")

    monkeypatch.setattr(shared, "_size_and_hash", refused)
    share_the_rest()
    assert "is another's" in caplog.text


def test_a_password_in_the_address_is_refused_and_not_repeated(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("INF_FILES", "s3://KEY:hidden@bucket/inf")
    with pytest.raises(BadInput, match="a password in it") as refused:
        home_ids()
    assert "hidden" not in str(refused.value)
    monkeypatch.setenv("INF_FILES", "sftp://ada@host/inf")
    assert len(home_ids()) == 2


def test_a_text_that_is_too_long_for_a_path_is_none() -> None:
    assert not is_of_this_machine({"why": "/" + "a" * 5000})


def test_a_folder_of_ones_own_by_a_name_that_is_taken_is_left_alone(
    machine: Machine, bucket: fsspec.AbstractFileSystem
) -> None:
    share(made(machine("one")))
    own = made(machine("two"), "of my own")
    share_the_rest()
    with pytest.raises(InfError, match="another than checkpoints/one") as refused:
        here(own)
    assert content_of(own) == "of my own"
    machine("one")
    assert content_of(here(machine("one") / "checkpoints/one")) == "weights"
    machine("two")
    subprocess.run(refused.value.remedy.split("`")[1], shell=True, check=True)  # the way out
    assert content_of(here(own)) == "weights"
    share_the_rest()
    machine("one")
    (kept,) = set(made_by("two").iterdir()) - {own}
    assert content_of(here(machine("one") / "checkpoints" / kept.name)) == "of my own"


def test_a_log_is_shown_as_far_as_it_was_copied(
    machine: Machine, bucket: fsspec.AbstractFileSystem
) -> None:
    log = machine("one") / "logs/job-1-1.log"
    log.parent.mkdir(parents=True)
    there = machine("two") / "logs/job-1-1.log"
    for text in ("one\n", "one\ntwo\n"):
        log.write_text(text)
        machine("one")
        share_log(log)
        machine("two")
        assert newer_log(there).read_text() == text
    log.write_text("one\ntwo\nthree\n")
    machine("one")
    assert newer_log(log).read_text() == "one\ntwo\nthree\n", "where it is written it is newest"


def test_a_storage_that_is_away_hides_no_local_log(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = machine("one") / "logs/job-1-1.log"
    log.parent.mkdir(parents=True)
    log.write_text("here\n")
    monkeypatch.setenv("INF_FILES", "nosuchprotocol://bucket")
    assert newer_log(log).read_text() == "here\n"
    share_log(log)


@pytest.mark.long
@pytest.mark.parametrize("storage", ["file", "s3"])
def test_a_release_and_the_log_of_one_machine_are_used_on_another(
    storage: str,
    request: pytest.FixtureRequest,
    store: Store,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    inf_process: Callable[..., Ran],
    there: dict[str, str],
) -> None:
    monkeypatch.setattr(supervisors, "ensure_taken", lambda *_: None)  # here: by hand, below
    if storage == "s3":
        request.getfixturevalue("s3")
    one = machine("one")
    make_run(store)
    config = {"dataset": "books", "out": str(one / "releases/mine"), "split_by": "dataset"}
    job_id = launching.launch(store, "export", config, actor=owner("Ada"))
    assert supervise(store, idle_seconds=0.5) == 1
    done = launching.job_now(store, job_id)
    assert done.status == "done" and done.result is not None, done.error
    log = (one / f"logs/job-{job_id}-1.log").read_text()
    two = machine("two")
    assert not two.exists()
    assert "Found credentials" not in log
    assert log == operations.log(owner("Ada"), JobLog(job_id=job_id))
    found = find_release(store, str(done.result["release_id"]))
    assert found == two / "releases/mine" and read_release(found).groups
    words = ("releases", "push", str(done.result["release_id"]), "--repo", "ada/mine", "--dry-run")
    machine("three")
    pushed = inf_process(*words, **there)
    assert pushed.code == 0, pushed.err
    with pytest.raises(Refused, match="already exists"):
        new_folder(owner("Ada"), "mine")


def test_a_node_of_a_cluster_without_the_files_refuses_what_reads_or_makes_some(
    sqlite_store: Store, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    def handled(
        config: dict[str, object],
        kind: str = "curate",
        kept: Callable[[Job], None] = lambda job: None,
    ) -> None:
        with sqlite_store.write() as session:
            job = jobs.enqueue_job(session, kind, config, launcher="http://head:8265")
            kept(job)
            session.commit()
        machine("node")
        entry.handle(JobHandle(sqlite_store, job.id, 1))

    monkeypatch.delenv("INF_FILES")
    one = machine("one")
    with pytest.raises(Refused, match="mount that folder on every node"):
        handled({"dataset": "books", "out": str(one / "releases/mine")}, "export")
    machine("one")
    with pytest.raises(Refused, match="or set INF_FILES"):
        handled({"benchmark": str(one / "releases/mine")}, "evaluate")
    machine("one")
    with pytest.raises(NotFound):  # its run: it names no file
        handled({"run_id": 7})
    monkeypatch.setenv("INF_FILES", f"file://{one}/common")
    machine("one")
    with pytest.raises(NotFound):  # what it names is shared, what is its launcher's are variables
        handled({"name": "books", "out": str(one / "mined.jsonl")}, "mine", jobs.keep_here)


def test_nodes_of_a_cluster_have_a_home_of_their_own_where_files_are_shared(
    sqlite_store: Store, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = machine("one")
    run, training = Job(kind="curate", config={}), Job(kind="train", config={"workers": 2})
    sent = environment_of(sqlite_store, run)
    assert "INF_HOME" not in sent and sent["INF_FILES"].startswith("file://")
    assert environment_of(sqlite_store, training)["INF_HOME"] == str(one), "its nodes meet there"
    monkeypatch.delenv("INF_FILES")
    assert environment_of(sqlite_store, run)["INF_HOME"] == str(one)


@pytest.mark.long
def test_a_job_of_one_machine_is_run_by_the_other_unless_it_names_a_file_there(
    store: Store, by_hand: None, machine: Machine, tmp_path: Path
) -> None:
    machine("one")
    (tmp_path / "only-here.jsonl").write_text("{}\n")
    config = {"steps": 1, "ending": "talks"}
    both = launching.launch(store, "curate", config, actor=owner("Ada"))
    named = config | {"file": str(tmp_path / "only-here.jsonl")}
    alone = launching.launch(store, "curate", named, actor=owner("Ada"))
    machine("two")
    assert supervise(store, idle_seconds=0.5) == 1
    assert launching.job_now(store, both).status == "done"
    assert jobs.is_elsewhere(launching.job_now(store, alone))
    machine("one")
    assert len(home_ids()) == 2
    assert "counted to 1" in operations.log(owner("Ada"), JobLog(job_id=both))
    assert supervise(store, idle_seconds=0.5) == 1


@pytest.mark.long
def test_a_run_of_the_environments_server_is_worked_on_where_it_was_launched_or_resumed(
    store: Store,
    by_hand: None,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    inf: Callable[..., Ran],
) -> None:
    """Another server's supervisor has the variables of another server, and leaves it alone."""
    ada = owner("Ada")

    def server_of(name: str) -> None:
        machine(name)
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://{name}.example/v1")
        monkeypatch.setenv("LAB_API_KEY", f"key of {name}")

    def result_of(job_id: int) -> Any:
        job = launching.job_now(store, job_id)
        return job.result["url"] if job.result else job.status

    run_id = make_run(store, offline=False)
    with store.write() as session:
        session.get_one(Run, run_id).server = {}  # as of before it was stored
        session.commit()
    server_of("one")
    config = {"run_id": run_id, "steps": 1, "ending": "tells"}
    first, second = (launching.launch(store, "curate", config, actor=ada) for _ in range(2))
    pushed = launching.launch(store, "push", {"ending": "tells"}, actor=ada)
    judged = {"study_id": 1, "ending": "tells", "judge": "openai:small"}
    judging = launching.launch(store, "judge", judged, actor=ada)
    embedded = {"models": ["openai:small"], "ending": "tells"}
    evaluating = launching.launch(store, "evaluate", embedded, actor=ada)
    server_of("two")
    assert supervise(store, idle_seconds=0.5) == 0
    shown = inf("status").out
    assert f"waiting for the server {socket.gethostname()}" in shown
    operations.cancel(ada, second)
    operations.resume(ada, second)
    assert supervise(store, idle_seconds=0.5) == 1
    assert result_of(second) == "http://two.example/v1", "by who resumed it"
    server_of("one")
    assert supervise(store, idle_seconds=0.5) == 4
    kept = (first, pushed, judging, evaluating)
    assert {result_of(each) for each in kept} == {"http://one.example/v1"}
    server_of("two")
    assert "another server" not in operations.log(ada, JobLog(job_id=first))
    with store.write() as session:
        session.get_one(Run, run_id).server = {"connection": "lab", "url": "any"}
        session.commit()
    free = launching.launch(store, "curate", config, actor=ada)
    server_of("one")
    assert supervise(store, idle_seconds=0.5) == 1, "a connection's run is any server's"
    assert result_of(free) == "http://one.example/v1"


@pytest.mark.parametrize("shared", [True, False], ids=["INF_FILES", "no INF_FILES"])
def test_a_clusters_run_of_the_environments_server_is_submitted_where_it_was_launched_or_resumed(
    store: Store,
    by_hand: None,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    inf: Callable[..., Ran],
    shared: bool,
) -> None:
    """Both servers' supervisors watch all jobs of the cluster, whose nodes have a server too."""
    if not shared:
        monkeypatch.delenv("INF_FILES")
    sent: dict[int, str] = {}

    def note(job: Job) -> bool:
        sent[job.id] = environment_of(store, job).get("OPENAI_BASE_URL", "the node's")
        with store.write() as session:
            jobs.finish_job(session, job.id, job.attempt, "done")
            session.commit()
        return True

    cluster, ada = IdleRay(note), owner("Ada")
    monkeypatch.setenv("INF_RAY_ADDRESS", cluster.address)
    config = {"run_id": make_run(store, offline=False)}
    machine("one")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://one.example/v1")
    first, second, third = (launching.launch(store, "curate", config, actor=ada) for _ in range(3))
    free = launching.launch(store, "train", {}, actor=ada)
    with store.write() as session:
        jobs.claim_job(session, first)  # its supervisor ends before it submits the job
        session.commit()
    machine("two")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://two.example/v1")
    operations.cancel(ada, third)
    operations.resume(ada, third)
    other = threading.Thread(
        target=partial(supervise_ray, store, cluster, idle_seconds=1), daemon=True
    )
    other.start()
    until(lambda: {third, free} <= sent.keys())
    time.sleep(1.5)  # a further round
    assert sent.keys() == {third, free}, "its own, and one that any server may submit"
    assert f"waiting for the server {socket.gethostname()}" in inf("status").out
    with store.write() as session:
        jobs.request_stop(session, first)
        session.commit()
    other.join(60)
    machine("one")
    supervise_ray(store, cluster, idle_seconds=0.5)
    assert (sent[second], sent[third]) == ("http://one.example/v1", "http://two.example/v1")
    assert first not in sent and launching.job_now(store, first).status == "cancelled"


@pytest.mark.long
def test_a_training_goes_on_where_another_machine_left_it(
    sqlite_store: Store, machine: Machine, bucket: fsspec.AbstractFileSystem, tmp_path: Path
) -> None:
    config = config_for(tmp_path, epochs="3", save_steps="1")
    config.pop("out")
    machine("one")
    whole = claim(sqlite_store, config)
    train(whole)
    assert not bucket.find("bucket/inf/training"), "nothing of it is kept when it is over"
    again = train_until(sqlite_store, config, step=4)
    two = machine("two")
    assert newest_state(here(states(again))) == (
        5,
        two / f"training/{again.key}/checkpoint-5",
    )
    assert train(again)["steps"] == 6
    assert losses_of(sqlite_store, again.id) == losses_of(sqlite_store, whole.id)
    assert not bucket.find("bucket/inf/training") and not states(again).exists()


def states(job: JobHandle) -> Path:
    return home() / "training" / job.key


def test_a_training_whose_states_cannot_be_copied_goes_on(
    sqlite_store: Store,
    machine: Machine,
    bucket: fsspec.AbstractFileSystem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def cut(*_: str) -> None:
        raise OSError("connection lost")

    machine("one")
    with monkeypatch.context() as patched:
        patched.setattr(bucket, "put_file", cut)
        config = config_for(tmp_path, epochs="1", save_steps="1")
        again = train_until(sqlite_store, config, step=1)
    assert "connection lost" in caplog.text
    machine("two")
    made(home(), "of two", f"training/{again.key}")
    share(states(again))  # meanwhile another machine began it anew
    machine("one")
    assert content_of(here(states(again))) == "of two", "who went on has the newest states"


def test_what_was_made_before_its_upload_failed_is_uploaded_when_the_job_is_resumed(
    sqlite_store: Store,
    machine: Machine,
    bucket: fsspec.AbstractFileSystem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def cut(*_: str) -> None:
        raise OSError("connection lost")

    def handled(job: JobHandle) -> Any:
        return entry.handle(job).as_json()

    one = machine("one")
    make_run(sqlite_store)
    config = {"dataset": "books", "out": str(one / "releases/mine"), "split_by": "dataset"}
    export = claim(sqlite_store, config, "export")
    training = claim(sqlite_store, config_for(tmp_path, max_steps="1") | {"out": None})
    for job, path in ((export, "releases/mine"), (training, f"checkpoints/job-{training.id}")):
        with monkeypatch.context() as patched:
            patched.setattr(bucket, "put_file", cut)
            with pytest.raises(InfError, match="connection lost"):
                handled(job)
        before = sorted(each.stat().st_mtime_ns for each in (one / path).rglob("*"))
        assert before, "it was made"
        result = handled(job)
        assert sorted(each.stat().st_mtime_ns for each in (one / path).rglob("*")) == before
        machine("two")
        assert here(home() / path).is_dir() and result["path"].endswith(path)
        machine("one")
    with sqlite_store.read() as session:
        assert len(list_releases(session)) == len(list_checkpoints(session)) == 1


def test_a_release_of_another_machine_is_trained_on(
    sqlite_store: Store, machine: Machine, s3: fsspec.AbstractFileSystem
) -> None:
    one = machine("one")
    make_run(sqlite_store, kept=8)
    config = {"dataset": "books", "out": str(one / "releases/mine"), "split_by": "dataset"}
    made = entry.handle(claim(sqlite_store, config, "export")).as_json()
    two = machine("two")
    settings = TINY | {"held_out": "0", "max_steps": "1"}
    config = {"release": str(made["release_id"]), "settings": settings}
    trained = entry.handle(claim(sqlite_store, config)).as_json()
    assert trained["path"].startswith(f"{two}/checkpoints")
    three = machine("three")
    assert (here(three / f"checkpoints/{Path(trained['path']).name}") / "README.md").is_file()
    assert not (three / "releases").exists(), "only what is needed is fetched"


def losses_of(store: Store, job_id: int) -> dict[int, float]:
    with store.read() as session:
        points = metric_points(session, job_id)
    return {point.step: point.value for point in points if point.name == "loss"}


@pytest.mark.long
@pytest.mark.parametrize("is_finished", [False, True])
def test_a_number_given_again_after_a_restore_meets_no_files_of_the_older_life(
    is_finished: bool,
    sqlite_store: Store,
    machine: Machine,
    bucket: fsspec.AbstractFileSystem,
    tmp_path: Path,
) -> None:
    config = config_for(tmp_path, epochs="3", save_steps="1")
    config.pop("out")
    machine("one")
    before = train_until(sqlite_store, config, step=4)
    if is_finished:
        train(before)
    with sqlite_store.write() as session:  # as in a backup that was made before it
        session.execute(delete(Checkpoint))
        session.execute(delete(Job))
        session.commit()
    after = claim(sqlite_store, config | {"settings": config["settings"] | {"seed": "8"}})
    assert after.id == before.id and after.key != before.key
    machine("two")
    result = train(after)
    name = after.key if is_finished else f"job-{after.id}"
    assert result["path"] == str(home() / "checkpoints" / name)
    assert len(losses_of(sqlite_store, after.id)) == 6, "from the first step on"
    supervisor._share_the_rest(sqlite_store)
    left = bucket.find("bucket/inf/checkpoints" if is_finished else "bucket/inf/training")
    assert any(f"job-{before.id}" in each for each in left), "the older life's are left alone"


@pytest.mark.long
def test_a_training_killed_while_its_states_go_is_trained_no_second_time(
    sqlite_store: Store, machine: Machine, tmp_path: Path
) -> None:
    config = config_for(tmp_path, epochs="3", save_steps="1")
    config.pop("out")
    one = machine("one")
    job = claim(sqlite_store, config)
    program = (
        "import os, sys\n"
        "from app.jobs import entry\n"
        "from db.jobs.runner import JobHandle\n"
        "from db.store.store import open_store\n"
        "from db.store.settings import owners_process\n"
        "from trainer.launch import here\n"
        "owners_process(True)\n"
        "withdraw = here.withdraw\n"
        "def killed(path): withdraw(path); os.kill(os.getpid(), 9)\n"
        "here.withdraw = killed\n"
        "entry.handle(JobHandle(open_store(sys.argv[1]), int(sys.argv[2]), 1))"
    )
    words = [sys.executable, "-c", program, sqlite_store.url, str(job.id)]
    assert subprocess.run(words, check=False).returncode == -9
    trained = losses_of(sqlite_store, job.id)
    assert len(trained) == 6 and not states(job).exists() and (one / "checkpoints").is_dir()
    two = machine("two")
    with sqlite_store.write() as session:
        session.execute(delete(MetricPoint))
        session.commit()
    result = entry.handle(JobHandle(sqlite_store, job.id, 1)).as_json()
    assert result["path"] == f"{two}/checkpoints/job-{job.id}" and result["steps"] == 6
    assert not losses_of(sqlite_store, job.id), "the copy is taken"


def test_states_that_a_finished_training_left_elsewhere_are_deleted(
    sqlite_store: Store,
    machine: Machine,
    bucket: fsspec.AbstractFileSystem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    config = config_for(tmp_path, epochs="3", save_steps="1")
    machine("one")
    again = train_until(sqlite_store, config, step=4)
    other = train_until(sqlite_store, config, step=1)
    left = states(again)
    machine("two")
    with monkeypatch.context() as patched:
        patched.setattr(bucket, "rm", lambda *_, **__: (_ for _ in ()).throw(OSError("away")))
        train(again)
    with sqlite_store.write() as session:
        jobs.finish_job(session, again.id, 1, status="done", result={})
        session.commit()
    assert left.is_dir() and bucket.find(f"bucket/inf/training/{again.key}.files")
    machine("one")
    supervisor._share_the_rest(sqlite_store)
    assert not left.exists() and states(other).is_dir()
    assert {name.split("/")[-1] for name in bucket.ls("bucket/inf/training", False)} == {
        f"{other.key}{ending}" for ending in (".json", ".files")
    }


@pytest.mark.parametrize("storage", ["file", "s3"])
def test_of_two_stores_that_begin_together_one_has_the_files(
    storage: str, request: pytest.FixtureRequest, machine: Machine, tmp_path: Path
) -> None:
    rounds = 20
    program = (
        "import os, sys, time\n"
        "from analysis.files import shared\n"
        "from db.errors import Refused\n"
        "shared.WAIT_SECONDS = 0.0\n"
        "where, found = os.environ['INF_FILES'], ''\n"
        "shared.file_system(where)\n"
        "for each in range(int(sys.argv[2])):\n"
        "    os.environ['INF_FILES'] = f'{where}/{each}'\n"
        "    sys.stdin.readline()\n"
        "    try: shared.require_own_files([sys.argv[1]]); found = 'has it'\n"
        "    except Refused: found = 'refused'\n"
        "    print(found, flush=True)\n"
    )
    if storage == "s3":
        request.getfixturevalue("s3")
    machine("one")
    words = [sys.executable, "-c", program]
    pipes: Any = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with ExitStack() as both:
        racers = [
            both.enter_context(subprocess.Popen([*words, name, str(rounds)], **pipes))
            for name in ("one", "two")
        ]
        for _ in range(rounds):
            for racer in racers:
                racer.stdin.write("\n")
                racer.stdin.flush()
            assert sorted(racer.stdout.readline() for racer in racers) == ["has it\n", "refused\n"]


def test_two_stores_do_not_share_their_files(
    sqlite_store: Store,
    machine: Machine,
    bucket: fsspec.AbstractFileSystem,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    machine("one")
    entry.require_own_files(sqlite_store)
    machine("two")
    entry.require_own_files(sqlite_store)
    other = open_store(f"sqlite:///{tmp_path}/other.db")
    schema.upgrade(other)
    job = claim(other, {"run_id": 7}, "curate")
    with pytest.raises(Refused, match="the files of another store"):
        entry.handle(job)
    monkeypatch.setenv("INF_DATABASE_URL", other.url)
    with pytest.raises(Refused, match="the files of another store"):
        operations.ensure_worked(owner("Ada"))  # as a server begins
    made(home())
    assert supervise(other, idle_seconds=0.5) == 0
    assert not bucket.find("bucket/inf/checkpoints"), "what this machine has is not copied there"
    other.close()
    bucket.rm("bucket/inf/store.json")  # its own is gone
    job = claim(sqlite_store, {"run_id": 7}, "curate")
    with pytest.raises(NotFound):  # its run
        entry.handle(job)


def test_a_store_that_is_away_ends_no_copying_with_a_traceback(
    machine: Machine, bucket: fsspec.AbstractFileSystem, caplog: pytest.LogCaptureFixture
) -> None:
    machine("one")
    supervisor._share_the_rest(open_store("postgresql+psycopg://nobody@127.0.0.1:1/none"))
    assert "127.0.0.1" in caplog.text


def test_what_was_there_before_keeps_no_job_waiting(
    sqlite_store: Store, by_hand: None, machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    made(machine("one"))
    is_done, upload = threading.Event(), shared._upload

    def slow(*given: Any) -> None:
        is_done.wait(60)
        upload(*given)

    monkeypatch.setattr(shared, "_upload", slow)
    job_id = launching.launch(sqlite_store, "curate", {"steps": 1}, actor=owner("Ada"))
    supervising = threading.Thread(
        target=supervise, args=(sqlite_store,), kwargs={"idle_seconds": 0.5}
    )
    supervising.start()
    until(lambda: launching.job_now(sqlite_store, job_id).status == "done", 50)
    is_done.set()
    supervising.join(60)
    assert content_of(here(machine("two") / "checkpoints/one")) == "weights", "and it is copied"


def test_releases_of_others_are_found_by_one_look_into_the_storage(
    machine: Machine, bucket: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two", "three"):
        share(made(machine("one"), name, f"releases/{name}"))
    here_now = machine("two")
    own, gone = str(made(here_now, "own", "releases/own")), str(here_now / "releases/gone")
    others = [str(here_now / f"releases/{name}") for name in ("one", "two", "three")]
    looks = []
    listing = bucket.ls
    monkeypatch.setattr(bucket, "ls", lambda *given, **named: looks.append(1) or listing(*given))
    monkeypatch.setattr(bucket, "cat_file", lambda *_: pytest.fail("it looks at each"))
    assert those_there([own, gone, *others]) == {own, *others}
    assert those_there([own]) == {own} and looks == [1]
    machine("three")
    assert those_there([str(home() / "trec/none")]) == set()


def test_a_long_log_is_copied_less_often_and_never_twice(
    machine: Machine, bucket: fsspec.AbstractFileSystem, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = machine("one") / "logs/job-1-1.log"
    log.parent.mkdir(parents=True)
    log.write_text("one\n")
    monkeypatch.setattr(shared, "LOG_SECONDS", 0.05)
    copies: list[int] = []
    monkeypatch.setattr(shared, "share_log", lambda path: copies.append(path.stat().st_size))
    with shared.copied_log(log):
        until(lambda: copies == [4], 10)
        time.sleep(0.5)
        assert copies == [4], "nothing new, no copy"
        os.truncate(log, 100_000_000)
        until(lambda: len(copies) == 2, 10)
        os.truncate(log, 100_000_001)
        time.sleep(0.5)
        assert len(copies) == 2, "its size is worth 5 s of waiting now"
    assert copies == [4, 100_000_000, 100_000_001]


def test_a_mount_without_hard_links_may_be_the_root(
    sqlite_store: Store, machine: Machine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("analysis.files.shared.os.link", refuse)
    machine("one")
    shared.require_own_files(["one"])
    with pytest.raises(Refused):
        shared.require_own_files(["two"])
    root = Path(os.environ["INF_FILES"].removeprefix("file://"))
    assert [path.name for path in root.iterdir()] == ["store.json"]
