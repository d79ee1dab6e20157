"""A Ray cluster through its Jobs API: what each job requests and which environment it gets.

Settings from the environment: `INF_RAY_ADDRESS` (http://HEAD:8265), `INF_RAY_GPUS` and
`INF_RAY_CPUS` per process of a job, `INF_RAY_PYTHON` (the interpreter on the nodes),
`INF_RAY_WORKING_DIR` (a folder that Ray carries to them). Ray reads its own token
(`RAY_AUTH_MODE=token` with `RAY_AUTH_TOKEN` or `~/.ray/auth_token`).

A job's environment is visible in Ray's dashboard and logs. Passwords and keys are therefore never
sent: the nodes need them in their own environment or secrets file.
"""

import hashlib
import os
import shlex
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from sqlalchemy.engine import URL, make_url

from app.jobs.handed_over import sent_to_cluster
from app.jobs.kinds import KINDS
from app.jobs.processes import PROCESS_DEFAULTS, SAFE_PATH, command_of
from db.errors import BadInput, InfError
from db.home import files_root, home
from db.machine import is_loopback
from db.store.settings import database_schema
from db.store.store import Store
from db.tables import Job
from trainer.launch.request import TrainStart

if TYPE_CHECKING:
    from ray.job_submission import JobSubmissionClient

WAITING, RUNNING, OVER, UNKNOWN = "waiting", "running", "over", "unknown"
STATES = {"PENDING": WAITING, "RUNNING": RUNNING}


@dataclass(frozen=True)
class Resources:
    """What a process of a job requests from the cluster."""

    cpus: float = 1.0
    gpus: float = 0.0

    @classmethod
    def from_environment(cls) -> "Resources":
        return cls(_number("INF_RAY_CPUS", 1.0), _number("INF_RAY_GPUS", 0.0))

    def of_job(self, job: Job) -> dict[str, float]:
        """Ray's options for a job: only model kinds get GPUs; n processes get n times as much.

        Training on several nodes requests its workers itself: its first process only waits, on
        the head node.
        """
        wanted = TrainStart.stored(job.config if job.kind == "train" else {})
        if wanted.workers > 1:
            return {"entrypoint_num_cpus": 0.0, "entrypoint_num_gpus": 0.0}
        count = wanted.processes
        gpus = self.gpus * count if KINDS[job.kind].uses_gpu else 0.0
        return {"entrypoint_num_cpus": self.cpus * count, "entrypoint_num_gpus": gpus}


def _workers(job: Job) -> int:
    return TrainStart.stored(job.config).workers if job.kind == "train" else 1


def _number(name: str, default: float) -> float:
    given = os.environ.get(name) or str(default)
    try:
        number = float(given)
    except ValueError as error:
        raise BadInput(
            f"{name}={given!r}: a number is needed",
            "correct the environment variable",
            code="environment_value_invalid",
        ) from error
    if not 0 <= number < float("inf"):
        raise BadInput(
            f"{name}={given!r}: 0 or more",
            "correct the environment variable",
            code="environment_value_invalid",
        )
    return number


def checked_address(address: str) -> str:
    """The validated address of a cluster's dashboard. Raises BadInput, also for credentials in it,
    because the address is stored in rows and logs.
    """
    parts = urlsplit(address)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise BadInput(
            f"Ray's address {parts.path!r}",
            "give http://HEAD:8265, its dashboard",
            code="ray_address_invalid",
        )
    if parts.username or parts.password or parts.query:
        raise BadInput(
            "Ray's address holds a password or token",
            "leave it out, and set RAY_AUTH_MODE=token with RAY_AUTH_TOKEN in the environment",
            code="ray_address_holds_secret",
        )
    return address.rstrip("/")


def require_reachable_store(store: Store, address: str) -> None:
    """Raise BadInput if the nodes cannot reach the store: SQLite is for one machine."""
    host = urlsplit(address).hostname or ""
    if store.is_sqlite and not is_loopback(host):
        raise BadInput(
            f"the cluster at {host} cannot reach an SQLite file here",
            "use PostgreSQL (INF_DATABASE_URL=postgresql://USER@HOST/NAME)",
            code="cluster_needs_postgresql",
        )


def submission_of(store: Store, job: Job) -> str:
    """The name of an attempt in the cluster; deterministic, so that nothing starts twice."""
    named = hashlib.sha256(without_password(store.url).encode()).hexdigest()[:10]
    return f"inf-{named}-job-{job.id}-{job.attempt}"


def without_password(url: str) -> str:
    """The store's URL without password, as the nodes get it."""
    whole = make_url(url)
    shown = URL.create(
        whole.drivername,
        username=whole.username,
        host=whole.host,
        port=whole.port,
        database=whole.database,
        query={name: value for name, value in whole.query.items() if "password" not in name},
    )
    return shown.render_as_string(hide_password=False)


def environment_of(store: Store, job: Job) -> dict[str, str]:
    """The environment of a job on the cluster: store, shared files, its launcher's settings; no
    secrets.

    With INF_FILES a node has an INF_HOME of its own; a training over several nodes shares one.
    """
    is_shared = not files_root() or _workers(job) > 1
    return (
        sent_to_cluster(job)
        | PROCESS_DEFAULTS
        | SAFE_PATH
        | {
            "INF_DATABASE_URL": without_password(store.url),
            "PYTHONUNBUFFERED": "1",
        }
        | ({"INF_HOME": str(home())} if is_shared else {})
        | ({"INF_FILES": files_root()} if files_root() else {})
        | ({"INF_DATABASE_SCHEMA": database_schema()} if database_schema() else {})
    )


def entrypoint_of(job: Job) -> str:
    """The command line that a node runs for a job."""
    python = os.environ.get("INF_RAY_PYTHON") or "python"
    return shlex.join([python, *command_of(job)])


class RayCluster:
    """The Jobs API of one cluster. Every failure is raised as an InfError with the address."""

    def __init__(self, address: str) -> None:
        self.address = checked_address(address)
        self._client: JobSubmissionClient | None = None

    def submit(self, store: Store, job: Job, resources: Resources) -> str:
        """Submit a claimed job unless the cluster already has it. Returns its name."""
        name = submission_of(store, job)
        if self.state(name) != UNKNOWN:
            return name
        each = {"INF_RAY_CPUS": str(resources.cpus), "INF_RAY_GPUS": str(resources.gpus)}
        runtime: dict[str, Any] = {"env_vars": environment_of(store, job) | each}
        if folder := os.environ.get("INF_RAY_WORKING_DIR"):
            runtime["working_dir"] = folder
        self._ask(
            "submit_job",
            entrypoint=entrypoint_of(job),
            submission_id=name,
            runtime_env=runtime,
            metadata={"inf_job": str(job.id), "inf_attempt": str(job.attempt)},
            **resources.of_job(job),
        )
        return name

    def state(self, name: str) -> str:
        """`waiting` for resources, `running`, `over`, or `unknown` to the cluster."""
        try:
            status = self._ask("get_job_status", name)
        except InfError as error:
            if "does not exist" in str(error):
                return UNKNOWN
            raise
        return STATES.get(str(getattr(status, "value", status)), OVER)

    def end_message(self, name: str) -> str:
        """Ray's message on how a job ended."""
        return str(self._ask("get_job_info", name).message or "")

    def log(self, name: str) -> str:
        """The complete log of a job."""
        return str(self._ask("get_job_logs", name))

    def stop(self, name: str) -> None:
        """End a job and every process it started; its resources become free."""
        self._ask("stop_job", name)

    def _ask(self, method: str, *given: Any, **named: Any) -> Any:
        client = self._connected()
        from ray.exceptions import RayError

        try:
            return getattr(client, method)(*given, **named)
        except (RayError, RuntimeError, OSError) as error:
            raise self._error(error) from error

    def _error(self, error: Exception) -> InfError:
        return InfError(
            f"Ray cluster at {self.address}: {error}",
            "check that the cluster runs and INF_RAY_ADDRESS names it",
            code="ray_cluster_failed",
        )

    def _connected(self) -> "JobSubmissionClient":
        if self._client is None:
            try:
                from ray.exceptions import RayError
                from ray.job_submission import JobSubmissionClient
            except ImportError as error:
                raise BadInput(
                    "Ray is not installed",
                    'pip install "inf-studio[ray]"',
                    code="ray_missing",
                ) from error
            try:
                self._client = JobSubmissionClient(self.address)
            except (RayError, RuntimeError, OSError) as error:
                raise self._error(error) from error
        return self._client
